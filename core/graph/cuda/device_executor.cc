#include "core/graph/cuda/device_executor.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "core/graph/rewrites.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {
namespace {

constexpr int64_t kAlignment = 256;  // bytes: what cudaMalloc gives

// The sum of logits always becomes part of the last linear map, whose output is not rounded.
elastor::Graph Rewritten(const elastor::Graph& graph, DeviceRewrites rewrites) {
  const elastor::Graph fused = FuseResidualIntoLogits(graph);
  return rewrites == DeviceRewrites::kAll ? FuseResidualIntoNorm(fused) : fused;
}

}  // namespace

template <typename A>
DeviceExecutor<A>::DeviceExecutor(const elastor::Graph& graph, const DeviceModelOptions& options,
                                  Stream* stream, DeviceRewrites rewrites)
    : graph_(Rewritten(graph, rewrites)),
      environment_(&graph_.parameters(), options, stream),
      memory_(stream) {
  const Op& logits = graph_.nodes().back().op;
  CHECK(std::holds_alternative<LinearOp>(logits) || std::holds_alternative<LogitSumOp>(logits) ||
        std::holds_alternative<JointLogitOp>(logits) ||
        std::holds_alternative<MeanLogitOp>(logits));
  MakeKernels();
  std::vector<KernelTraits> traits;
  for (const auto& kernel : kernels_) traits.push_back(kernel->traits());
  schedule_ = MakeSchedule(graph_, traits);
  DeclareMemory();
}

template <typename A>
void DeviceExecutor<A>::MakeKernels() {
  std::vector<int> uses_before(graph_.parameters().parameters().size());  // by earlier nodes
  for (const Node& node : graph_.nodes()) {
    std::vector<Shape> inputs;
    for (const int input : node.inputs) inputs.push_back(graph_[input].shape);
    std::vector<typename DeviceKernelContext<A>::Parameter> parameters;
    for (const int parameter : node.parameters) {
      const int before = uses_before[parameter]++;
      // The backward pass comes to the last node first.
      parameters.push_back({.number = parameter,
                            .first_use = before + 1 == graph_.parameter_uses(parameter),
                            .last_use = before == 0});
    }
    contexts_.push_back(std::make_unique<DeviceKernelContext<A>>(
        &environment_, std::move(inputs), node.shape, std::move(parameters)));
    kernels_.push_back(std::visit(
        [&](const auto& op) { return MakeDeviceKernel<A>(op, contexts_.back().get()); }, node.op));
  }
}

template <typename A>
int DeviceExecutor<A>::Declare(int first, int last, const DeviceBytes& bytes) {
  lives_.push_back({.first = first, .last = last});
  bytes_.push_back(bytes);
  return static_cast<int>(lives_.size()) - 1;
}

template <typename A>
void DeviceExecutor<A>::DeclareMemory() {
  const int n = graph_.size();  // also the step of the loss
  constexpr int64_t kBytes = sizeof(A);
  for (const BufferLife& buffer : schedule_.buffers) {
    Declare(buffer.first, buffer.last, {.row = buffer.features * kBytes});
  }
  for (int i = 0; i < n; ++i) {
    const int backward = 2 * n - i;
    // For a run forward at one step, and the backward pass at another.
    const auto declare = [&](int run, int last) {
      const int first = static_cast<int>(lives_.size());
      for (const auto& [life, bytes, data] : contexts_[i]->slots()) {
        Declare(life == DeviceLife::kBackward ? last : run,
                life == DeviceLife::kForward ? run : last, bytes);
      }
      return first;
    };
    const int recomputed_at = schedule_.nodes[i].recomputed_at;
    first_slot_.push_back(declare(i, recomputed_at < 0 ? backward : i));
    first_recomputed_.push_back(recomputed_at < 0 ? first_slot_.back()
                                                  : declare(recomputed_at, backward));
  }
  int64_t widest = 0;
  for (const Probe& probe : graph_.probes()) {
    if (schedule_.nodes[probe.node].output.layout == TokenLayout::kRowMajor) continue;
    widest = std::max(widest, probe.shape.features());
  }
  if (widest > 0) probe_ = Declare(n, n, {.row = widest * kBytes});
  if (kRounded) {
    const DeviceBytes bytes = {.row = graph_.outputs() * static_cast<int64_t>(sizeof(float))};
    logits_ = Declare(n - 1, n, bytes);
    dlogits_ = Declare(n, n + 1, bytes);
  } else {
    logits_ = schedule_.nodes.back().output.buffer;
    dlogits_ = schedule_.nodes.back().doutput.buffer;
  }
}

template <typename A>
void DeviceExecutor<A>::Reserve(const LeafShape& shape) {
  if (shape.rows() <= rows_ && shape.leaves <= leaves_) return;
  rows_ = std::max(shape.rows(), rows_);
  leaves_ = std::max(shape.leaves, leaves_);
  std::vector<int64_t> sizes;
  for (const DeviceBytes& bytes : bytes_) {
    sizes.push_back(bytes.row * rows_ + bytes.leaf * leaves_ + bytes.once);
  }
  BufferPlacement placement = PlaceBuffers(lives_, sizes, kAlignment);
  offsets_ = std::move(placement.offsets);
  environment_.stream().Synchronize();
  memory_.Resize(placement.total);
  for (int i = 0; i < graph_.size(); ++i) GiveMemory(i, first_slot_[i]);
}

template <typename A>
void DeviceExecutor<A>::GiveMemory(int node, int first_slot) {
  for (auto& slot : contexts_[node]->slots()) slot.data = Data<char>(first_slot++);
}

template <typename A>
Activations<A> DeviceExecutor<A>::View(const LeafShape& shape, const BufferView& view) const {
  if (view.empty()) return {};
  A* const data = Data<A>(view.buffer);
  const auto [tokens, width] = view.shape;
  const int64_t features = schedule_.buffers[view.buffer].features;
  if (view.layout == TokenLayout::kTokenMajor) {
    CHECK(view.first_feature == 0 && view.shape.features() == features);
    return Activations<A>::TokenMajor(data, shape.rows(), tokens, width);
  }
  return {data + view.first_feature, shape.rows(), tokens, width, features, width};
}

template <typename A>
Activations<A> DeviceExecutor<A>::Embeddings(const LeafShape& shape) const {
  return View(shape, schedule_.nodes[0].output).WithTokens(1);
}

template <typename A>
Activations<const A> DeviceExecutor<A>::EmbeddingGradients(const LeafShape& shape) const {
  return View(shape, schedule_.nodes[0].doutput).WithTokens(1);
}

template <typename A>
float* DeviceExecutor<A>::Logits() const {
  return Data<float>(logits_);
}

template <typename A>
float* DeviceExecutor<A>::LogitGradients() const {
  return Data<float>(dlogits_);
}

template <typename A>
void DeviceExecutor<A>::Forward(const DevicePass& pass) {
  for (int i = 0; i < graph_.size(); ++i) {
    ForwardOperands<A> operands;
    for (size_t k = 0; k < graph_[i].inputs.size(); ++k) {
      operands.inputs[k] = View(pass.shape, schedule_.nodes[graph_[i].inputs[k]].output);
    }
    if (i + 1 < graph_.size()) {
      operands.output = View(pass.shape, schedule_.nodes[i].output);
    } else {
      const auto [tokens, width] = graph_[i].shape;
      operands.logits = Activations<float>::RowMajor(Logits(), pass.shape.rows(), tokens, width);
    }
    GiveMemory(i, first_slot_[i]);
    kernels_[i]->Forward(pass, operands);
  }
}

template <typename A>
void DeviceExecutor<A>::Backward(const DevicePass& pass, LeafGradients* gradients) {
  CHECK_EQ(pass.shape.leaves, gradients->leaves());
  const KernelPass kernel_pass{pass, gradients};
  const auto view = [&](const BufferView& of) { return View(pass.shape, of); };
  if constexpr (kRounded) {
    const Activations<A> rounded = view(schedule_.nodes.back().doutput);
    Round(environment_.stream(), LogitGradients(), rounded.data, rounded.rows * graph_.outputs());
  }
  for (int i = graph_.size() - 1; i >= 0; --i) {
    schedule_.BeforeBackward(i, [&](int again) {
      const NodeSchedule& node = schedule_.nodes[again];
      ForwardOperands<A> operands;
      for (size_t k = 0; k < graph_[again].inputs.size(); ++k) {
        operands.inputs[k] = view(node.backward_inputs[k]);
      }
      operands.output = view(node.recomputed);
      GiveMemory(again, first_recomputed_[again]);
      kernels_[again]->Forward(pass, operands);
    });
    const NodeSchedule& node = schedule_.nodes[i];
    BackwardOperands<A> operands;
    operands.output = view(node.backward_output);
    operands.doutput = view(node.doutput);
    for (size_t k = 0; k < graph_[i].inputs.size(); ++k) {
      operands.inputs[k] = view(node.backward_inputs[k]);
      operands.dinputs[k] = view(node.dinputs[k]);
      operands.addends[k] = view(node.addends[k]);
    }
    kernels_[i]->Backward(kernel_pass, operands);
    for (const GradientSum& sum : node.sums) {
      if (sum.b.empty()) {
        Copy<A>(environment_.stream(), view(sum.a), view(sum.sum));
      } else {
        Add<A>(environment_.stream(), view(sum.a), view(sum.b), view(sum.sum));
      }
    }
  }
}

template <typename A>
Activations<const A> DeviceExecutor<A>::ProbeOutput(const LeafShape& shape, int probe) {
  const Probe& measured = graph_.probes()[probe];
  Activations<A> output = View(shape, schedule_.nodes[measured.node].output);
  if (!output.row_major()) {
    const auto copy =
        Activations<A>::RowMajor(Data<A>(probe_), shape.rows(), output.tokens, output.features);
    Copy<A>(environment_.stream(), output, copy);
    output = copy;
  }
  return output.WithTokens(measured.matrices * measured.shape.tokens);
}

template class DeviceExecutor<float>;
template class DeviceExecutor<BFloat16>;

}  // namespace elastor::cuda
