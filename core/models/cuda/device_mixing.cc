#include "core/models/cuda/device_mixing.h"

#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

template <typename A>
DeviceMixing<A>::DeviceMixing(DeviceContext<A>* context, const std::string& name,
                              const MixingOptions& options)
    : context_(context), options_(options) {
  const DeviceWorkspace::Frame frame(&context->workspace());
  const auto keep = [&] {
    return context->Keep(TokenLayout::kRowMajor, options.tokens, options.width);
  };
  const auto temporary = [&] {
    return context->Temporary(TokenLayout::kRowMajor, options.tokens, options.width);
  };
  mixed_ = temporary();
  du_ = temporary();
  if (options.pre_norm.width > 0) {
    pre_norm_ = std::make_unique<DeviceNorm<A>>(context, name + ".pre_norm", 1, options.pre_norm);
    normal_ = keep();
  }
  if (options.kind == MixingOptions::Kind::kFull) {
    const int64_t step = options.block_width;
    columns_ = options.tokens * options.width / step;
    map_ = std::make_unique<DeviceMap<A>>(context, name + ".weight", 1, columns_, columns_);
    bias_ = context->layout().Find(name + ".bias");
    context->ReserveColumnSums(columns_, step);
    if (step > 1) {
      problems_ = keep();
      transposed_ = temporary();
      du_transposed_ = temporary();
    }
  }
  CHECK_EQ(options.post_norm.width, options.width);
  post_norm_ =
      std::make_unique<DeviceNorm<A>>(context, name + ".norm", options.tokens, options.post_norm);
}

template <typename A>
void DeviceMixing<A>::Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) {
  Activations<const A> u = x;
  if (pre_norm_) {
    const Activations<A> normal = context_->View(pass.shape, normal_);
    pre_norm_->Forward(pass, x.WithTokens(1), {}, normal.WithTokens(1));
    u = normal;
  }
  const Activations<A> mixed = context_->View(pass.shape, mixed_);
  Mix(pass, u, mixed);
  post_norm_->Forward(pass, mixed, x, y);
}

template <typename A>
void DeviceMixing<A>::Backward(const ModulePass& pass, Activations<const A> x,
                               Activations<const A> dy, Activations<A> dx) {
  const Activations<A> dsum = context_->View(pass.shape, mixed_);  // of X + mix(...)
  const Activations<A> du = context_->View(pass.shape, du_);
  post_norm_->Backward(pass, dy, {}, dsum);
  if (!pre_norm_) {
    MixBackward(pass, x, dsum, du);
    return Add<A>(context_->stream(), dsum, du, dx);
  }
  MixBackward(pass, context_->View(pass.shape, normal_), dsum, du);
  // The norm's views have one token of all features, so they are row-major.
  const Activations<A> result = dx.row_major() ? dx : du;
  pre_norm_->Backward(pass, du.WithTokens(1), dsum.WithTokens(1), result.WithTokens(1));
  if (!dx.row_major()) Copy<A>(context_->stream(), du, dx);
}

template <typename A>
void DeviceMixing<A>::Mix(const ModulePass& pass, Activations<const A> u, Activations<A> mixed) {
  Stream& stream = context_->stream();
  const int64_t step = options_.block_width;
  if (columns_ == 0) {
    return BlockTranspose<A>(stream, options_.tokens, options_.width, u.WithTokens(1),
                             mixed.WithTokens(1));
  }
  const Activations<A> result = step > 1 ? context_->View(pass.shape, transposed_) : mixed;
  map_->Forward(pass, Problems(pass, u, problems_), ProblemRows(result),
                {.bias = context_->values(bias_)});
  if (step > 1) {
    TransposeFeatures<A>(stream, step, columns_, result.WithTokens(1), mixed.WithTokens(1));
  }
}

template <typename A>
void DeviceMixing<A>::MixBackward(const ModulePass& pass, Activations<const A> u,
                                  Activations<const A> dmixed, Activations<A> du) {
  Stream& stream = context_->stream();
  const int64_t step = options_.block_width;
  if (columns_ == 0) {  // its own inverse
    return BlockTranspose<A>(stream, options_.tokens, options_.width, dmixed.WithTokens(1),
                             du.WithTokens(1));
  }
  const Activations<A> result = step > 1 ? context_->View(pass.shape, du_transposed_) : du;
  if (step > 1) u = context_->View(pass.shape, problems_);  // as Forward left it
  const Activations<const A> dproblems = Problems(pass, dmixed, transposed_);
  map_->WeightGradient(pass, dproblems, ProblemRows(u));
  DeliverBias<A>(context_, pass, bias_, dproblems);
  map_->InputGradient(pass, dproblems, ProblemRows(result), Store::kOverwrite);
  if (step > 1) {
    TransposeFeatures<A>(stream, step, columns_, result.WithTokens(1), du.WithTokens(1));
  }
}

template <typename A>
Activations<const A> DeviceMixing<A>::Problems(const ModulePass& pass, Activations<const A> x,
                                               const ActivationSlot& slot) {
  const int64_t step = options_.block_width;
  if (step == 1) return ProblemRows(x);
  const Activations<A> problems = context_->View(pass.shape, slot);
  TransposeFeatures<A>(context_->stream(), columns_, step, x.WithTokens(1), problems.WithTokens(1));
  return ProblemRows(problems);
}

template <typename A>
template <typename T>
Activations<T> DeviceMixing<A>::ProblemRows(Activations<T> x) const {
  CHECK(x.row_major());
  return Activations<T>::RowMajor(x.data, x.rows * options_.block_width, 1, columns_);
}

template class DeviceMixing<float>;
template class DeviceMixing<BFloat16>;

}  // namespace elastor::cuda
