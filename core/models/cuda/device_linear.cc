#include "core/models/cuda/device_linear.h"

#include <utility>

#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

template <typename A>
DeviceMap<A>::DeviceMap(DeviceContext<A>* context, const std::string& name, int64_t maps,
                        int64_t out, int64_t in)
    : context_(context), maps_(maps), out_(out), in_(in), parameter_(context->layout().Find(name)) {
  CHECK_EQ(context->layout()[parameter_].size, maps * out * in) << name;
}

template <typename A>
int64_t DeviceMap<A>::CanonicalRows(const ModulePass& pass, int64_t rows) const {
  return context_->options().canonical_rows * (rows / pass.shape.rows());
}

template <typename A>
template <typename Out>
void DeviceMap<A>::Forward(const ModulePass& pass, Activations<const A> x, Activations<Out> y,
                           const Epilogue& epilogue) {
  CHECK(x.tokens == maps_ && x.features == in_ && y.tokens == maps_ && y.features == out_);
  CHECK_EQ(x.rows, y.rows);
  Product<A, Out> product;
  product.m = x.rows;
  product.n = out_;
  product.k = in_;
  product.a = {x.data, x.row_stride, x.token_stride};
  product.b = {context_->factors(parameter_), in_, out_ * in_, 0, /*transposed=*/true};
  product.c = {y.data, y.row_stride, y.token_stride};
  product.batch = maps_;
  product.accumulate = epilogue.store == Store::kAdd;
  product.bias = epilogue.bias;
  product.relu = epilogue.relu;
  product.canonical_m = CanonicalRows(pass, x.rows);
  context_->matmul().Run(product);
}

template <typename A>
void DeviceMap<A>::InputGradient(const ModulePass& pass, Activations<const A> dy, Activations<A> dx,
                                 Store store) {
  CHECK(dy.tokens == maps_ && dy.features == out_ && dx.tokens * dx.features == maps_ * in_);
  CHECK(dx.tokens == maps_ || maps_ == 1);
  CHECK_EQ(dx.rows, dy.rows);
  const bool cut = dx.tokens > maps_;  // W's columns, a token's at a time
  Product<A, A> product;
  product.m = dy.rows;
  product.n = dx.features;
  product.k = out_;
  product.a = {dy.data, dy.row_stride, cut ? 0 : dy.token_stride};
  product.b = {context_->factors(parameter_), in_, cut ? dx.features : out_ * in_};
  product.c = {dx.data, dx.row_stride, dx.token_stride};
  product.batch = dx.tokens;
  product.accumulate = store == Store::kAdd;
  product.canonical_m = CanonicalRows(pass, dy.rows);
  context_->matmul().Run(product);
}

template <typename A>
void DeviceMap<A>::WeightGradient(const ModulePass& pass, Activations<const A> dy,
                                  Activations<const A> x) {
  CHECK(dy.tokens == maps_ && dy.features == out_ && x.tokens == maps_ && x.features == in_);
  const LeafGradients::Target target = pass.gradients->Open(parameter_, maps_);
  const LeafShape leaves = LeavesOf(pass, x.rows);
  Product<A, float> product;  // batch: leaves; outer: tokens
  product.m = out_;
  product.n = in_;
  product.k = leaves.leaf_rows;
  product.a = {dy.data, dy.row_stride, leaves.leaf_rows * dy.row_stride, dy.token_stride,
               /*transposed=*/true};
  product.b = {x.data, x.row_stride, leaves.leaf_rows * x.row_stride, x.token_stride};
  product.c = {target.data, in_, target.leaf_stride, target.map_stride};
  product.batch = leaves.leaves;
  product.outer = maps_;
  product.canonical_problems = context_->options().canonical_leaves * maps_;
  context_->matmul().Run(product);
  pass.gradients->Close(parameter_);
}

template <typename A>
DeviceLinear<A>::DeviceLinear(DeviceContext<A>* context, const std::string& name, int64_t tokens,
                              int64_t in, int64_t out, Sharing sharing, Bias bias)
    : context_(context),
      merged_(sharing == Sharing::kSharedWeights),
      maps_(merged_ ? 1 : tokens),
      map_(context, name + ".weight", maps_, out, in) {
  if (bias == Bias::kNone) return;
  bias_ = context->layout().Find(name + ".bias");
  context->ReserveColumnSums(maps_ * out, tokens / maps_);
}

template <typename A>
template <typename T>
Activations<T> DeviceLinear<A>::Merged(Activations<T> view) const {
  if (!merged_ || view.data == nullptr) return view;
  CHECK(view.row_major());
  return Activations<T>::RowMajor(view.data, view.rows * view.tokens, 1, view.features);
}

template <typename A>
template <typename Out>
void DeviceLinear<A>::Forward(const ModulePass& pass, Activations<const A> x, Activation activation,
                              Activations<Out> z, Activations<Out> y) {
  const float* bias = bias_ >= 0 ? context_->values(bias_) : nullptr;
  typename DeviceMap<A>::Epilogue epilogue;
  if (maps_ == 1) std::swap(epilogue.bias, bias);
  epilogue.relu = epilogue.bias != nullptr && activation == Activation::kRelu;
  const bool done = epilogue.relu || (bias == nullptr && activation == Activation::kIdentity);
  map_.Forward(pass, Merged(x), Merged(done ? y : z), epilogue);
  if (!done) BiasActivation<Out>(context_->stream(), activation, bias, false, z, y);
}

template <typename A>
void DeviceLinear<A>::Backward(const ModulePass& pass, Activations<const A> x,
                               Activations<const A> dz, Activations<A> dx) {
  map_.WeightGradient(pass, Merged(dz), Merged(x));
  if (bias_ >= 0) DeliverBias<A>(context_, pass, bias_, Merged(dz));
  if (dx.data != nullptr) {
    map_.InputGradient(pass, Merged(dz), Merged(dx), Store::kOverwrite);
  }
}

template class DeviceMap<float>;
template class DeviceMap<BFloat16>;
template class DeviceLinear<float>;
template class DeviceLinear<BFloat16>;

#define ELASTOR_INSTANTIATE(A, Out)                                                              \
  template void DeviceMap<A>::Forward(const ModulePass&, Activations<const A>, Activations<Out>, \
                                      const Epilogue&);                                          \
  template void DeviceLinear<A>::Forward(const ModulePass&, Activations<const A>, Activation,    \
                                         Activations<Out>, Activations<Out>);
ELASTOR_INSTANTIATE(float, float)
ELASTOR_INSTANTIATE(BFloat16, BFloat16)
ELASTOR_INSTANTIATE(BFloat16, float)
#undef ELASTOR_INSTANTIATE

}  // namespace elastor::cuda
