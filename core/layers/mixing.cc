#include "core/layers/mixing.h"

#include "core/layers/deliver.h"
#include "core/kernels/elementwise.h"

namespace elastor {

template <typename T>
Mixing<T>::Mixing(ModelBuilder* builder, const std::string& name, const MixingOptions& options)
    : Module<T>(options.tokens * options.width, options.tokens * options.width), options_(options) {
  const int64_t features = options.tokens * options.width;
  ParameterLayout& parameters = *builder->parameters;
  if (options.pre_norm.width > 0) {
    pre_norm_ =
        std::make_unique<NormLayer<T>>(builder, name + ".pre_norm", features, options.pre_norm);
    normal_ = builder->workspace->Activations(features);
  }
  if (options.kind == MixingOptions::Kind::kFull) {
    CHECK_EQ(features % options.block_width, 0);
    columns_ = features / options.block_width;
    weight_ = parameters.Declare(name + ".weight", {columns_, columns_},
                                 Init::XavierNormal(columns_, columns_), Decay::kDense);
    bias_ = parameters.Declare(name + ".bias", {columns_}, Init::Constant(0), Decay::kNone);
    weight_offset_ = parameters[weight_].offset;
    bias_offset_ = parameters[bias_].offset;
    if (options.block_width > 1) scratch_ = builder->workspace->Flat(columns_ * columns_);
  } else {
    CHECK_EQ(options.width % options.tokens, 0);
  }
  sum_ = builder->workspace->Activations(features);
  if (options.post_norm.width > 0) {
    post_norm_ =
        std::make_unique<NormLayer<T>>(builder, name + ".norm", features, options.post_norm);
  }
}

template <typename T>
int64_t Mixing<T>::multiply_adds() const {
  return columns_ * columns_ * options_.block_width;
}

template <typename T>
void Mixing<T>::Prepare(const T* parameters) {
  if (pre_norm_) pre_norm_->Prepare(parameters);
  if (post_norm_) post_norm_->Prepare(parameters);
  if (columns_ == 0) return;
  const auto w = MatrixView<T>::RowMajor(parameters + weight_offset_, columns_, columns_);
  forward_.Pack({{w}});
  transposed_.Pack({{w.Transposed()}});
  bias_values_ = parameters + bias_offset_;
}

template <typename T>
void Mixing<T>::DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const {
  Panels<const T> u = x;
  if (pre_norm_) {
    const Panels<T> normal = pass.Slot(normal_);
    pre_norm_->Forward(pass, x, normal);
    u = normal;
  }
  if (!post_norm_) return MixForward(u, x, y);
  const Panels<T> sum = pass.Slot(sum_);
  MixForward(u, x, sum);
  post_norm_->Forward(pass, sum, y);
}

template <typename T>
void Mixing<T>::DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                           Panels<T> dx) const {
  Panels<const T> ds = dy;  // gradient of the sum X + mix(...)
  if (post_norm_) {
    const Panels<T> sum = pass.Slot(sum_);
    post_norm_->BackwardWithResidual(pass, dy, {}, sum);
    ds = sum;
  }
  if (!pre_norm_) return MixBackward(pass, x, ds, ds, dx);
  const Panels<T> normal = pass.Slot(normal_);
  const Panels<T> dnormal = dx;  // free until the last call below writes the result there
  MixBackward(pass, normal, ds, {}, dnormal);
  pre_norm_->BackwardWithResidual(pass, dnormal, ds, dx);
}

template <typename T>
void Mixing<T>::MixForward(Panels<const T> u, Panels<const T> residual, Panels<T> y) const {
  if (columns_ == 0) {
    BlockTranspose<T>(options_.tokens, options_.width, u, y);
    Add<T>(residual, y, y);
    return;
  }
  const int64_t step = options_.block_width;
  for (int64_t c = 0; c < step; ++c) {
    Epilogue<T> epilogue;
    epilogue.bias = bias_values_;
    epilogue.residual = residual.Every(c, step, columns_);
    MatMul<T>(forward_, {{u.Every(c, step, columns_)}}, y.Every(c, step, columns_), epilogue);
  }
}

template <typename T>
void Mixing<T>::MixBackward(const Pass<T>& pass, Panels<const T> u, Panels<const T> ds,
                            Panels<const T> residual, Panels<T> du) const {
  if (columns_ == 0) {
    BlockTranspose<T>(options_.tokens, options_.width, ds, du);
    if (residual.data != nullptr) Add<T>(residual, du, du);
    return;
  }
  const int64_t step = options_.block_width;
  const auto weight_part = [&](int64_t c, T* dw, Store store) {
    WeightGradient<T>(ds.Every(c, step, columns_), u.Every(c, step, columns_), dw, columns_, store);
  };
  const auto bias_part = [&](int64_t c, T* db, Store store) {
    BiasGradient<T>(ds.Every(c, step, columns_), db, store);
  };
  if (step == 1) {
    const auto dw = pass.sink->Open(weight_);
    weight_part(0, dw.data, dw.store);
    pass.sink->Close(weight_);
    const auto db = pass.sink->Open(bias_);
    bias_part(0, db.data, db.store);
    pass.sink->Close(bias_);
  } else {  // d* interleaved problems share W
    T* scratch = pass.workspace->Flat(scratch_);
    DeliverSum(pass.sink, weight_, columns_ * columns_, step, scratch, weight_part);
    DeliverSum(pass.sink, bias_, columns_, step, scratch, bias_part);
  }
  for (int64_t c = 0; du.data != nullptr && c < step; ++c) {
    Epilogue<T> epilogue;
    if (residual.data != nullptr) epilogue.residual = residual.Every(c, step, columns_);
    MatMul<T>(transposed_, {{ds.Every(c, step, columns_)}}, du.Every(c, step, columns_), epilogue);
  }
}

template class Mixing<float>;
template class Mixing<double>;

}  // namespace elastor
