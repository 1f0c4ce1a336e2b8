#include "core/graph/schedule.h"

#include <algorithm>
#include <numeric>

#include "core/base/log.h"

namespace elastor {
namespace {

using Rule = InputGradient::Rule;
using OutputRead = KernelTraits::OutputRead;

Rule RuleOf(const Node& node, int input) {
  return std::visit([&](const auto& op) { return op.gradient(input).rule; }, node.op);
}

int64_t FirstPassedOn(const Node& node, int input) {
  return std::visit([&](const auto& op) { return op.gradient(input).first_feature; }, node.op);
}

class Scheduler {
 public:
  Scheduler(const Graph& graph, std::span<const KernelTraits> traits)
      : graph_(graph), traits_(traits), n_(graph.size()), readers_(n_), gradients_(n_) {
    schedule_.nodes.resize(n_);
    for (int i = 0; i < n_; ++i) {
      schedule_.nodes[i].dinputs.resize(graph[i].inputs.size());
      schedule_.nodes[i].addends.resize(graph[i].inputs.size());
      for (int k = 0; k < Inputs(i); ++k) readers_[graph[i].inputs[k]].push_back({i, k});
    }
  }

  Schedule Run() {
    FindSegments();
    ChooseLayouts();
    PlaceValues();
    PlaceRecomputed();
    PlaceGradients();
    return std::move(schedule_);
  }

 private:
  int BackwardStep(int node) const { return 2 * n_ - node; }
  int LossStep() const { return n_; }
  int LastStep() const { return 2 * n_ + 1; }
  bool Probed(int node) const { return graph_.probed(node); }
  int Inputs(int node) const { return static_cast<int>(graph_[node].inputs.size()); }
  // Whether the backward pass of a node reads the value of its input `input`.
  bool ReadsBackward(int node, int input) const { return input < traits_[node].reads_inputs; }

  void FindSegments() {
    recomputed_at_.assign(n_, -1);
    for (int end = n_; end > 0;) {
      const int segment = graph_[end - 1].segment;
      int begin = end - 1;
      while (begin > 0 && graph_[begin - 1].segment == segment) --begin;
      if (segment >= 0) {
        schedule_.segments.push_back({begin, end});
        for (int i = begin; i < end; ++i) recomputed_at_[i] = BackwardStep(end - 1);
      }
      end = begin;
    }
  }
  // The step at which a node runs forward once more; -1: it does not.
  int RecomputedAt(int node) const { return recomputed_at_[node]; }
  bool OneSegment(int i, int j) const {
    return RecomputedAt(i) >= 0 && RecomputedAt(i) == RecomputedAt(j);
  }

  // A value is row-major where its producer or a reader needs it so, else token-major where a
  // reader wants that. A gradient is what the producer of its value, who reads it, wants. A value
  // of one token has one layout.
  void ChooseLayouts() {
    layouts_.assign(n_, TokenLayout::kRowMajor);
    gradient_layouts_.assign(n_, TokenLayout::kRowMajor);
    std::vector<bool> needed(n_), wanted(n_);
    for (int i = n_ - 1; i >= 0; --i) {
      const KernelTraits& traits = traits_[i];
      const bool token_major =
          wanted[i] && !needed[i] && !traits.row_major_output && graph_[i].shape.tokens > 1;
      if (token_major) layouts_[i] = TokenLayout::kTokenMajor;
      for (const int input : graph_[i].inputs) {
        needed[input] = needed[input] || traits.row_major_input;
        wanted[input] =
            wanted[input] || traits.wants_token_major || (traits.any_layout && token_major);
      }
    }
    for (int i = 0; i < n_; ++i) {
      const KernelTraits& traits = traits_[i];
      bool wants = traits.wants_token_major;
      if (traits.any_layout) {
        wants = wants || layouts_[i] == TokenLayout::kTokenMajor;
        for (const int input : graph_[i].inputs) {
          wants = wants || gradient_layouts_[input] == TokenLayout::kTokenMajor;
        }
      }
      if (wants && !traits.row_major_doutput && graph_[i].shape.tokens > 1) {
        gradient_layouts_[i] = TokenLayout::kTokenMajor;
      }
    }
  }

  // The step after which a value's memory may hold something else.
  int LastRead(int node) const {
    int last = node;
    if (Probed(node) || node == n_ - 1) last = LossStep();
    if (traits_[node].reads_output != OutputRead::kNone && RecomputedAt(node) < 0) {
      last = BackwardStep(node);
    }
    for (const auto& [i, k] : readers_[node]) {
      last = std::max(last, i);
      if (OneSegment(i, node)) continue;
      last = std::max(last, RecomputedAt(i));
      if (ReadsBackward(i, k)) last = std::max(last, BackwardStep(i));
    }
    return last;
  }

  // Whether node i may write its output over its input `input`.
  bool MayOverwrite(int i, int input) const {
    if (repeated_[input] || Probed(input) || layouts_[i] != layouts_[input] ||
        graph_[i].shape.features() != graph_[input].shape.features()) {
      return false;
    }
    if (LastRead(input) == i) return true;
    if (RecomputedAt(i) != RecomputedAt(input)) return false;
    // A producer that reads no more than signs on the way back.
    return traits_[input].reads_output == OutputRead::kSign && traits_[i].keeps_sign &&
           graph_.uses(input) == 1;
  }

  void PlaceValues() {
    std::vector<int> buffer_of(n_, -1);
    repeated_.assign(n_, false);
    for (int i = 0; i < n_; ++i) {
      const std::vector<int>& inputs = graph_[i].inputs;
      int64_t first_feature = 0;
      if (traits_[i].repeats_input && layouts_[i] == layouts_[inputs[0]]) {
        buffer_of[i] = buffer_of[inputs[0]];
        first_feature = schedule_.nodes[inputs[0]].output.first_feature + traits_[i].first_repeated;
        repeated_[i] = repeated_[inputs[0]] = true;
      }
      if (buffer_of[i] < 0) {
        const int candidates = std::min(traits_[i].in_place_inputs, Inputs(i));
        for (int k = 0; k < candidates && buffer_of[i] < 0; ++k) {
          if (MayOverwrite(i, inputs[k])) buffer_of[i] = buffer_of[inputs[k]];
        }
      }
      if (buffer_of[i] < 0) {
        // What comes after may need room behind this value.
        int widest = i;
        for (int reader; (reader = Extends(widest)) >= 0;) widest = reader;
        buffer_of[i] = NewBuffer(graph_[widest].shape.features(), i, i);
        for (int reader = i; reader != widest;) {
          reader = Extends(reader);
          buffer_of[reader] = buffer_of[i];
        }
      }
      BufferLife& life = schedule_.buffers[buffer_of[i]];
      if (i == 0) life.first = -1;  // filled before the pass
      life.last = std::max(life.last, LastRead(i));
      schedule_.nodes[i].output = {buffer_of[i], first_feature, graph_[i].shape, layouts_[i]};
    }
  }

  // Every value of a segment lies once more in memory of its own, unless it is its input.
  void PlaceRecomputed() {
    for (int i = 0; i < n_; ++i) {
      NodeSchedule& node = schedule_.nodes[i];
      const std::vector<int>& inputs = graph_[i].inputs;
      const auto read_by = [&](int reader, int value) {
        const NodeSchedule& of = schedule_.nodes[value];
        return OneSegment(reader, value) ? of.recomputed : of.output;
      };
      if (const int step = node.recomputed_at = RecomputedAt(i); step >= 0) {
        if (traits_[i].repeats_input && layouts_[i] == layouts_[inputs[0]]) {
          node.recomputed = read_by(i, inputs[0]);
          node.recomputed.first_feature += traits_[i].first_repeated;
          node.recomputed.shape = graph_[i].shape;
        } else {
          node.recomputed = NewView(graph_[i].shape, layouts_[i], step);
        }
        int last = step;
        if (traits_[i].reads_output != OutputRead::kNone) last = BackwardStep(i);
        for (const auto& [reader, k] : readers_[i]) {
          if (OneSegment(reader, i) && ReadsBackward(reader, k)) {
            last = std::max(last, BackwardStep(reader));
          }
        }
        Use(node.recomputed, last);
      }
      node.backward_output = read_by(i, i);
      for (const int input : inputs) node.backward_inputs.push_back(read_by(i, input));
    }
  }

  // The node whose output begins with the output of `node`, in the same memory; -1: none.
  int Extends(int node) const {
    if (node == 0 || readers_[node].size() != 1 || Probed(node)) return -1;
    const int reader = readers_[node][0].node;
    const bool extends = Inputs(reader) == 1 && traits_[reader].extends_input;
    return extends && layouts_[reader] == layouts_[node] ? reader : -1;
  }

  int NewBuffer(int64_t features, int first, int last) {
    schedule_.buffers.push_back({features, first, last});
    holders_.push_back(0);
    return static_cast<int>(schedule_.buffers.size()) - 1;
  }

  // A gradient that has been summed up so far; `holders_` counts the values whose it is.
  void Hold(int value, const BufferView& view) {
    gradients_[value] = view;
    ++holders_[view.buffer];
  }
  void Release(int value) {
    if (!gradients_[value].empty()) --holders_[gradients_[value].buffer];
    gradients_[value] = {};
  }
  void Use(const BufferView& view, int step) {
    if (view.empty()) return;
    BufferLife& life = schedule_.buffers[view.buffer];
    life.last = std::max(life.last, step);
  }
  BufferView NewView(const Shape& shape, TokenLayout layout, int step) {
    return {NewBuffer(shape.features(), step, step), 0, shape, layout};
  }

  void PlaceGradients() {
    const BufferView doutputs = NewView(graph_[n_ - 1].shape, TokenLayout::kRowMajor, LossStep());
    Hold(n_ - 1, doutputs);
    for (int i = n_ - 1; i >= 0; --i) {
      const int step = BackwardStep(i);
      NodeSchedule& node = schedule_.nodes[i];
      Settle(i, step - 1);
      node.doutput = gradients_[i];
      Use(node.doutput, i == 0 ? LastStep() : step);
      Release(i);
      const int inputs = Inputs(i);
      for (int k = inputs - 1; k >= 0; --k) {
        const Rule rule = RuleOf(graph_[i], k);
        if (rule == Rule::kComputed) PlaceComputed(i, k, step);
        if (rule == Rule::kPassedOn) PassOn(i, k, step);
      }
      for (int k = 1; k < inputs; ++k) {
        if (RuleOf(graph_[i], k) != Rule::kLikeFirst) continue;
        CHECK(node.addends[0].empty()) << "node " << i << ": a sum would be passed on";
        Contribute(i, k, node.dinputs[0], step);
      }
    }
  }

  // The gradient of `node` is complete; where its layout or its place is not the one that is
  // wanted, it is copied at the end of what ran before.
  void Settle(int node, int step) {
    const BufferView found = gradients_[node];
    CHECK(!found.empty()) << "no gradient of node " << node;
    const bool fits = found.layout == gradient_layouts_[node] || found.shape.tokens == 1;
    const bool part = schedule_.buffers[found.buffer].features > found.shape.features();
    if (node == n_ - 1 || (fits && !(traits_[node].own_doutput && part))) return;
    const BufferView wanted = NewView(found.shape, gradient_layouts_[node], step);
    Use(found, step);
    schedule_.nodes[node + 1].sums.push_back({found, {}, wanted});
    Release(node);
    Hold(node, wanted);
  }

  void PlaceComputed(int i, int k, int step) {
    NodeSchedule& node = schedule_.nodes[i];
    const KernelTraits& traits = traits_[i];
    const int value = graph_[i].inputs[k];
    const Shape& shape = graph_[value].shape;
    const TokenLayout wanted =
        traits.row_major_dinput ? TokenLayout::kRowMajor : gradient_layouts_[value];
    const BufferView so_far = gradients_[value];
    const bool added_by_kernel =
        !so_far.empty() && traits.adds_addend &&
        (!traits.row_major_dinput || so_far.layout == TokenLayout::kRowMajor);
    BufferView own;
    if (added_by_kernel && holders_[so_far.buffer] == 1 && so_far.buffer != node.doutput.buffer &&
        so_far.layout == wanted) {
      own = so_far;
    } else if (traits.gradient_in_place && holders_[node.doutput.buffer] == 0 &&
               node.doutput.shape.features() == shape.features() && node.doutput.layout == wanted &&
               !ComputesBefore(i, k)) {
      own = {node.doutput.buffer, node.doutput.first_feature, shape, wanted};
    } else {
      own = NewView(shape, wanted, step);
    }
    Use(own, step);
    node.dinputs[k] = own;
    if (so_far.empty()) return Hold(value, own);
    Use(so_far, step);
    Release(value);
    if (added_by_kernel) {
      node.addends[k] = so_far;
      return Hold(value, own);
    }
    Hold(value, own);
    AddTo(i, value, so_far, step);
  }

  // Whether node i computes the gradient of an input before `input` too.
  bool ComputesBefore(int i, int input) const {
    for (int k = 0; k < input; ++k) {
      if (RuleOf(graph_[i], k) == Rule::kComputed) return true;
    }
    return false;
  }

  void PassOn(int i, int k, int step) {
    BufferView view = schedule_.nodes[i].doutput;
    view.first_feature += FirstPassedOn(graph_[i], k);
    Contribute(i, k, view, step);
  }

  // Adds what `view` holds to the gradient of input k.
  void Contribute(int i, int k, BufferView view, int step) {
    const int value = graph_[i].inputs[k];
    const Shape& shape = graph_[value].shape;
    CHECK(view.layout == TokenLayout::kRowMajor || view.shape == shape) << "node " << i;
    view.shape = shape;
    Use(view, step);
    if (gradients_[value].empty()) return Hold(value, view);
    AddTo(i, value, view, step);
  }

  // The gradient of `value` becomes what it is so far + `other`.
  void AddTo(int i, int value, const BufferView& other, int step) {
    const BufferView so_far = gradients_[value];
    BufferView sum = so_far;
    if (holders_[so_far.buffer] > 1 || so_far.layout != gradient_layouts_[value] ||
        so_far.buffer == schedule_.nodes[i].doutput.buffer) {
      sum = NewView(so_far.shape, gradient_layouts_[value], step);
    }
    Use(so_far, step);
    Use(other, step);
    schedule_.nodes[i].sums.push_back({other, so_far, sum});
    Release(value);
    Hold(value, sum);
  }

  const Graph& graph_;
  std::span<const KernelTraits> traits_;
  const int n_;
  struct Reader {
    int node;
    int input;  // which of its inputs
  };
  std::vector<std::vector<Reader>> readers_;  // by node that they read, in order
  std::vector<int> recomputed_at_;            // by node
  std::vector<TokenLayout> layouts_;
  std::vector<TokenLayout> gradient_layouts_;
  std::vector<bool> repeated_;         // by value: another node's output is the same memory
  std::vector<BufferView> gradients_;  // by value, as far as summed up
  std::vector<int> holders_;           // by buffer
  Schedule schedule_;
};

}  // namespace

Schedule MakeSchedule(const Graph& graph, std::span<const KernelTraits> traits) {
  CHECK_EQ(graph.size(), static_cast<int>(traits.size()));
  return Scheduler(graph, traits).Run();
}

BufferPlacement PlaceBuffers(std::span<const BufferLife> lives, std::span<const int64_t> bytes,
                             int64_t alignment) {
  CHECK_EQ(lives.size(), bytes.size());
  BufferPlacement placement;
  placement.offsets.resize(lives.size());
  // The largest first, each at the lowest offset where it fits between those that live with it.
  std::vector<int> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return bytes[a] > bytes[b]; });
  struct Placed {
    int64_t begin, end;
    int first, last;
  };
  std::vector<Placed> placed;  // by begin
  placed.reserve(lives.size());
  for (const int buffer : order) {
    const auto [features, first, last] = lives[buffer];
    const int64_t size = (bytes[buffer] + alignment - 1) / alignment * alignment;
    int64_t offset = 0;
    for (const Placed& other : placed) {
      if (other.first > last || first > other.last) continue;
      if (offset + size <= other.begin) break;
      offset = std::max(offset, other.end);
    }
    placement.offsets[buffer] = offset;
    placement.total = std::max(placement.total, offset + size);
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::begin),
                  {offset, offset + size, first, last});
  }
  return placement;
}

}  // namespace elastor
