#include "core/graph/cpu/cpu_executor.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "core/base/clock.h"
#include "core/graph/rewrites.h"
#include "core/kernels/elementwise.h"
#include "core/ops/cpu/deliver.h"

namespace elastor {
namespace {

int64_t Aligned(int64_t elements) { return (elements + kPanelRows - 1) / kPanelRows * kPanelRows; }

Graph Rewritten(const Graph& graph, CpuRewrites rewrites) {
  return rewrites == CpuRewrites::kAll ? FuseResidualIntoLinear(graph) : graph;
}

// Adds the time of each node to what it is given, if that is not null.
class NodeClock {
 public:
  explicit NodeClock(std::vector<double>* seconds) : seconds_(seconds) {
    if (seconds_ != nullptr) last_ = Clock::now();
  }
  void Add(int node) {
    if (seconds_ == nullptr) return;
    (*seconds_)[node] += SecondsSince(last_);
    last_ = Clock::now();
  }

 private:
  std::vector<double>* seconds_;
  Clock::time_point last_;
};

}  // namespace

// Sums the gradients of a parameter that several nodes use, in the order in which they come, before
// the sum goes on to the pass's sink. One a backward pass.
template <typename T>
class CpuExecutor<T>::SharedParameters final : public GradientSink<T> {
 public:
  SharedParameters(const CpuExecutor& executor, const Pass<T>& pass)
      : executor_(executor), pass_(pass), uses_(executor.shared_slots_.size()) {}

  typename GradientSink<T>::Target Open(int parameter) override {
    if (executor_.shared_slots_[parameter] < 0) return pass_.sink->Open(parameter);
    return {Sum(parameter), uses_[parameter]++ == 0 ? Store::kOverwrite : Store::kAdd};
  }
  void Close(int parameter) override {
    if (executor_.shared_slots_[parameter] < 0) return pass_.sink->Close(parameter);
    const Graph& graph = executor_.graph_;
    if (uses_[parameter] < graph.parameter_uses(parameter)) return;
    DeliverCopy(pass_.sink, parameter, graph.parameters()[parameter].size, Sum(parameter));
  }

 private:
  T* Sum(int parameter) const { return pass_.workspace->Flat(executor_.shared_slots_[parameter]); }

  const CpuExecutor& executor_;
  const Pass<T>& pass_;
  std::vector<int> uses_;  // by parameter: how many nodes have opened it
};

template <typename T>
CpuExecutor<T>::CpuExecutor(const Graph& graph, CpuRewrites rewrites, Precision precision)
    : graph_(Rewritten(graph, rewrites)) {
  CHECK(precision == Precision::kFloat32 ||
        (precision == Precision::kBFloat16 && std::is_same_v<T, float>));
  std::vector<CpuKernelContext> contexts;
  std::vector<KernelTraits> traits;
  for (const Node& node : graph_.nodes()) {
    std::vector<Shape> inputs;
    for (const int input : node.inputs) inputs.push_back(graph_[input].shape);
    CHECK_LE(inputs.size(), static_cast<size_t>(kMaxInputs));
    contexts.emplace_back(&graph_.parameters(), &node.parameters, std::move(inputs), precision);
    kernels_.push_back(std::visit(
        [&](const auto& op) { return MakeCpuKernel<T>(op, &contexts.back()); }, node.op));
    traits.push_back(kernels_.back()->traits());
    int& last_bucket = last_buckets_.emplace_back(-1);
    for (const int parameter : node.parameters) {
      last_bucket = std::max(last_bucket, graph_.parameters()[parameter].bucket);
    }
  }
  schedule_ = MakeSchedule(graph_, traits);
  PlanMemory(contexts);
}

template <typename T>
void CpuExecutor<T>::PlanMemory(const std::vector<CpuKernelContext>& contexts) {
  std::vector<BufferLife> lives = schedule_.buffers;
  const auto keep_flat = [&](int64_t elements) {
    plan_.flat_offsets.push_back(plan_.flat_elements);
    plan_.flat_elements += Aligned(elements);
    return static_cast<int>(plan_.flat_offsets.size()) - 1;
  };
  for (int i = 0; i < graph_.size(); ++i) {
    first_saved_.push_back(static_cast<int>(lives.size()));
    first_flat_.push_back(static_cast<int>(plan_.flat_offsets.size()));
    const auto save = [&](int first, int last) {
      for (const int64_t features : contexts[i].saved()) lives.push_back({features, first, last});
    };
    const int backward = 2 * graph_.size() - i;
    const int recomputed_at = schedule_.nodes[i].recomputed_at;
    if (recomputed_at < 0) {
      save(i, backward);
      first_recomputed_.push_back(first_saved_.back());
    } else {
      save(i, i);
      first_recomputed_.push_back(static_cast<int>(lives.size()));
      save(recomputed_at, backward);
    }
    for (const int64_t elements : contexts[i].flat()) keep_flat(elements);
    plan_.scratch_elements = std::max(plan_.scratch_elements, Aligned(contexts[i].scratch()));
  }
  for (int p = 0; p < static_cast<int>(graph_.parameters().parameters().size()); ++p) {
    const bool shared = graph_.parameter_uses(p) > 1;
    shared_slots_.push_back(shared ? keep_flat(graph_.parameters()[p].size) : -1);
  }
  std::vector<int64_t> sizes;
  for (const BufferLife& life : lives) sizes.push_back(ActivationsPerPanel(life.features));
  const BufferPlacement placement = PlaceBuffers(lives, sizes, /*alignment=*/1);
  for (size_t b = 0; b < lives.size(); ++b) {
    plan_.activations.push_back({lives[b].features, placement.offsets[b]});
  }
  plan_.elements_per_panel = placement.total;
}

template <typename T>
void CpuExecutor<T>::Prepare(const T* parameters, ThreadPool* pool) {
  for (const auto& kernel : kernels_) kernel->Prepare(parameters);
  const int parts = pool == nullptr ? 1 : pool->threads();
  const auto repack = [&](int part) {
    for (const auto& kernel : kernels_) kernel->Repack(parameters, part, parts);
  };
  if (parts == 1) return repack(0);
  pool->Run(repack);
}

template <typename T>
void CpuExecutor<T>::Prepare(const T* parameters, int bucket) {
  for (int i = 0; i < graph_.size(); ++i) {
    if (last_buckets_[i] == bucket) kernels_[i]->Prepare(parameters);
  }
}

template <typename T>
void CpuExecutor<T>::Repack(const T* parameters, int bucket, int part, int parts) {
  for (int i = 0; i < graph_.size(); ++i) {
    if (last_buckets_[i] == bucket) kernels_[i]->Repack(parameters, part, parts);
  }
}

template <typename T>
Panels<T> CpuExecutor<T>::View(const Pass<T>& pass, const BufferView& view) const {
  if (view.empty()) return {};
  return pass.workspace->Activations(view.buffer, pass.rows())
      .Slice(view.first_feature, view.shape.features());
}

template <typename T>
void CpuExecutor<T>::Forward(const Pass<T>& pass, std::vector<double>* seconds) const {
  NodeClock clock(seconds);
  for (int i = 0; i < graph_.size(); ++i) {
    if (pass.await != nullptr) (*pass.await)(last_buckets_[i]);
    ForwardOperands<T> operands;
    for (size_t k = 0; k < graph_[i].inputs.size(); ++k) {
      operands.inputs[k] = View(pass, schedule_.nodes[graph_[i].inputs[k]].output);
    }
    operands.output = View(pass, schedule_.nodes[i].output);
    kernels_[i]->Forward(pass, MemoryOf(pass, i), operands);
    clock.Add(i);
  }
}

template <typename T>
void CpuExecutor<T>::Backward(const Pass<T>& pass, std::vector<double>* seconds) const {
  NodeClock clock(seconds);
  Pass<T> inner = pass;
  std::optional<SharedParameters> sums;
  if (graph_.shares_parameters()) {
    // The uses are added before the leaf meets another.
    CHECK_EQ(pass.leaves.leaves().size(), 1u);
    inner.sink = &sums.emplace(*this, pass);
  }
  for (int i = graph_.size() - 1; i >= 0; --i) {
    schedule_.BeforeBackward(i, [&](int again) {
      const NodeSchedule& node = schedule_.nodes[again];
      ForwardOperands<T> operands;
      for (size_t k = 0; k < graph_[again].inputs.size(); ++k) {
        operands.inputs[k] = View(pass, node.backward_inputs[k]);
      }
      operands.output = View(pass, node.recomputed);
      kernels_[again]->Forward(pass, BackwardMemoryOf(pass, again), operands);
    });
    const NodeSchedule& node = schedule_.nodes[i];
    BackwardOperands<T> operands;
    for (size_t k = 0; k < graph_[i].inputs.size(); ++k) {
      operands.inputs[k] = View(pass, node.backward_inputs[k]);
      operands.dinputs[k] = View(pass, node.dinputs[k]);
      operands.addends[k] = View(pass, node.addends[k]);
    }
    operands.output = View(pass, node.backward_output);
    operands.doutput = View(pass, node.doutput);
    kernels_[i]->Backward(inner, BackwardMemoryOf(pass, i), operands);
    for (const GradientSum& sum : node.sums) {
      Add<T>(View(pass, sum.a), View(pass, sum.b), View(pass, sum.sum));
    }
    clock.Add(i);
  }
}

template class CpuExecutor<float>;
template class CpuExecutor<double>;

}  // namespace elastor
