#include "core/ops/cuda/linear_products.h"

#include "core/kernels/cuda/single_output.h"

namespace elastor::cuda {

template <typename A>
LinearProducts<A>::LinearProducts(DeviceKernelContext<A>* context, int parameter, int64_t maps,
                                  int64_t out, int64_t in)
    : context_(context), parameter_(parameter), maps_(maps), out_(out), in_(in) {
  CHECK_EQ(context->size(parameter), maps * out * in);
}

template <typename A>
int64_t LinearProducts<A>::CanonicalRows(const DevicePass& pass, int64_t rows) const {
  return context_->options().canonical_rows * (rows / pass.shape.rows());
}

template <typename A>
template <typename Out>
void LinearProducts<A>::Forward(const DevicePass& pass, Activations<const A> x, Activations<Out> y,
                                const Epilogue& epilogue) {
  CHECK(x.tokens == maps_ && x.features == in_ && y.tokens == maps_ && y.features == out_);
  CHECK_EQ(x.rows, y.rows);
  if (out_ == 1) {
    return SingleOutputForward<A, Out>(
        context_->stream(), x, weights(),
        {epilogue.store == Store::kAdd, epilogue.bias, epilogue.relu}, y);
  }
  Product<A, Out> product;
  product.m = x.rows;
  product.n = out_;
  product.k = in_;
  product.a = {x.data, x.row_stride, x.token_stride};
  product.b = {weights(), in_, out_ * in_, 0, /*transposed=*/true};
  product.c = {y.data, y.row_stride, y.token_stride};
  product.batch = maps_;
  product.accumulate = epilogue.store == Store::kAdd;
  product.bias = epilogue.bias;
  product.relu = epilogue.relu;
  product.canonical_m = CanonicalRows(pass, x.rows);
  context_->matmul().Run(product);
}

template <typename A>
void LinearProducts<A>::InputGradient(const DevicePass& pass, Activations<const A> dy,
                                      Activations<A> dx, Store store) {
  CHECK(dy.tokens == maps_ && dy.features == out_ && dx.tokens * dx.features == maps_ * in_);
  CHECK(dx.tokens == maps_ || maps_ == 1);
  CHECK_EQ(dx.rows, dy.rows);
  const bool cut = dx.tokens > maps_;  // W's columns, a token's at a time
  if (out_ == 1) {
    if (cut) dy.token_stride = 0;
    return SingleOutputBackward<A>(context_->stream(), dy, weights(), store == Store::kAdd, dx);
  }
  Product<A, A> product;
  product.m = dy.rows;
  product.n = dx.features;
  product.k = out_;
  product.a = {dy.data, dy.row_stride, cut ? 0 : dy.token_stride};
  product.b = {weights(), in_, cut ? dx.features : out_ * in_};
  product.c = {dx.data, dx.row_stride, dx.token_stride};
  product.batch = dx.tokens;
  product.accumulate = store == Store::kAdd;
  product.canonical_m = CanonicalRows(pass, dy.rows);
  context_->matmul().Run(product);
}

template <typename A>
void LinearProducts<A>::WeightGradient(const KernelPass& pass, Activations<const A> dy,
                                       Activations<const A> x) {
  WeightGradient(pass, dy, x, context_->Open(pass, parameter_, maps_));
  context_->Close(pass, parameter_);
}

template <typename A>
void LinearProducts<A>::WeightGradient(const KernelPass& pass, Activations<const A> dy,
                                       Activations<const A> x,
                                       const LeafGradients::Target& target) {
  CHECK(dy.tokens == maps_ && dy.features == out_ && x.tokens == maps_ && x.features == in_);
  const LeafShape leaves = pass.LeavesOf(x.rows);
  if (out_ == 1) {
    return SingleOutputGradient<A>(context_->stream(), leaves, dy, x, target.data,
                                   target.map_stride, target.leaf_stride);
  }
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
}

template class LinearProducts<float>;
template class LinearProducts<BFloat16>;

#define ELASTOR_INSTANTIATE_PRODUCTS(A, Out)                                        \
  template void LinearProducts<A>::Forward(const DevicePass&, Activations<const A>, \
                                           Activations<Out>, const Epilogue&);
ELASTOR_INSTANTIATE_PRODUCTS(float, float)
ELASTOR_INSTANTIATE_PRODUCTS(BFloat16, BFloat16)
ELASTOR_INSTANTIATE_PRODUCTS(BFloat16, float)
#undef ELASTOR_INSTANTIATE_PRODUCTS

}  // namespace elastor::cuda
