#include "core/models/cuda/device_module.h"

#include "core/base/random.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

template <typename A>
void DeviceContext<A>::ReserveColumnSums(int64_t columns, int64_t place_rows) {
  // Chunks of a leaf: at most its rows / kSumRows + 1.
  const int64_t bytes = columns * static_cast<int64_t>(sizeof(float));
  workspace_.Scratch({.row = (bytes * place_rows + kSumRows - 1) / kSumRows, .leaf = bytes});
}

template <typename A>
void DeviceContext<A>::SetWeights(const float* weights) {
  weights_ = weights;
  if constexpr (kRounded) Round(*stream_, weights, rounded_.data(), layout_->flat_size());
}

template <typename A>
void ApplyDropout(const DeviceContext<A>& context, const DevicePass& pass, double rate,
                  uint32_t layer, Activations<A> values) {
  if (!pass.training || rate == 0) return;
  DeviceDropout dropout;
  dropout.key = MakeRandomKey(context.options().seed, RandomPurpose::kDropout, layer);
  dropout.rate = rate;
  dropout.step = pass.inputs.step;
  dropout.first_row = pass.inputs.first_row;
  dropout.place_row = pass.inputs.place_row;
  Dropout<A>(context.stream(), dropout, values);
}

template <typename A>
void DeliverBias(DeviceContext<A>* context, const ModulePass& pass, int parameter,
                 Activations<const A> dy) {
  const LeafGradients::Target target = pass.gradients->Open(parameter, dy.tokens);
  LeafColumnSums<A>(context->stream(), LeavesOf(pass, dy.rows), dy, target.data, target.map_stride,
                    target.leaf_stride, context->workspace().scratch());
  pass.gradients->Close(parameter);
}

LeafShape LeavesOf(const DevicePass& pass, int64_t rows) {
  const int64_t places = pass.shape.rows();
  CHECK_EQ(rows % places, 0);
  return {pass.shape.leaves, pass.shape.leaf_rows * (rows / places)};
}

#define ELASTOR_INSTANTIATE(A)                                                             \
  template class DeviceContext<A>;                                                         \
  template void ApplyDropout(const DeviceContext<A>&, const DevicePass&, double, uint32_t, \
                             Activations<A>);                                              \
  template void DeliverBias(DeviceContext<A>*, const ModulePass&, int, Activations<const A>);
ELASTOR_INSTANTIATE(float)
ELASTOR_INSTANTIATE(BFloat16)
#undef ELASTOR_INSTANTIATE

}  // namespace elastor::cuda
