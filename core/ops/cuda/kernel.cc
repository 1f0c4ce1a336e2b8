#include "core/ops/cuda/kernel.h"

#include <algorithm>

#include "core/base/instantiate.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

template <typename A>
void DeviceEnvironment<A>::SetWeights(const float* weights) {
  weights_ = weights;
  if constexpr (kRounded) Round(*stream_, weights, rounded_.data(), layout_->flat_size());
}

template <typename A>
DeviceKernelContext<A>::DeviceKernelContext(DeviceEnvironment<A>* environment,
                                            std::vector<Shape> inputs, Shape output,
                                            std::vector<Parameter> parameters)
    : environment_(environment),
      inputs_(std::move(inputs)),
      output_(output),
      parameters_(std::move(parameters)) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].first_use) continue;
    const int64_t bytes = size(static_cast<int>(i)) * static_cast<int64_t>(sizeof(float));
    parameters_[i].scratch = Reserve(DeviceLife::kBackward, {.leaf = bytes});
  }
}

template <typename A>
bool DeviceKernelContext<A>::regroups_inputs(int64_t tokens) const {
  // One token lies alike in any layout.
  return std::ranges::any_of(
      inputs_, [&](const Shape& input) { return input.tokens > 1 && input.tokens != tokens; });
}

template <typename A>
LeafGradients::Target DeviceKernelContext<A>::Open(const KernelPass& pass, int index,
                                                   int64_t maps) {
  Parameter& parameter = parameters_[index];
  LeafGradients::Target target = pass.gradients->Open(parameter.number, maps);
  parameter.sum = target.data;
  if (!parameter.first_use) target.data = Data<float>(parameter.scratch);
  return target;
}

template <typename A>
void DeviceKernelContext<A>::Close(const KernelPass& pass, int index) {
  const Parameter& parameter = parameters_[index];
  if (!parameter.first_use) {
    const auto flat = [&](float* data) {
      return Activations<float>::RowMajor(data, pass.shape.leaves, 1, size(index));
    };
    const Activations<float> sum = flat(parameter.sum);
    Add<float>(stream(), flat(Data<float>(parameter.scratch)), sum, sum);
  }
  if (parameter.last_use) pass.gradients->Close(parameter.number);
}

template <typename A>
int DeviceKernelContext<A>::ReserveColumnSums(int64_t columns, int64_t rows_per_device_row) {
  // Chunks of a leaf: at most its rows / kSumRows + 1.
  const int64_t bytes = columns * static_cast<int64_t>(sizeof(float));
  return Reserve(DeviceLife::kBackward,
                 {.row = (bytes * rows_per_device_row + kSumRows - 1) / kSumRows, .leaf = bytes});
}

template <typename A>
void DeliverBias(DeviceKernelContext<A>* context, const KernelPass& pass, int index,
                 Activations<const A> dy, int scratch) {
  const LeafGradients::Target target = context->Open(pass, index, dy.tokens);
  LeafColumnSums<A>(context->stream(), pass.LeavesOf(dy.rows), dy, target.data, target.map_stride,
                    target.leaf_stride, context->template Data<float>(scratch));
  context->Close(pass, index);
}

template class DeviceEnvironment<float>;
template class DeviceEnvironment<BFloat16>;
template class DeviceKernelContext<float>;
template class DeviceKernelContext<BFloat16>;
ELASTOR_INSTANTIATE(DeliverBias, float, BFloat16)

}  // namespace elastor::cuda
