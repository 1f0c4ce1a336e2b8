#include "core/models/cuda/device_tokenizer.h"

#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

template <typename A>
DeviceTokenizer<A>::DeviceTokenizer(DeviceContext<A>* context, const std::string& name,
                                    const TokenizerOptions& options)
    : context_(context), options_(options) {
  const DeviceWorkspace::Frame frame(&context->workspace());
  const MlpOptions projection = options.projection();
  const TokenLayout layout = DeviceMlp<A>::Layout(projection);
  if (options.norm.width > 0) {
    norm_ = std::make_unique<DeviceNorm<A>>(context, name + ".norm", 1, options.norm);
    normal_ = context->Temporary(TokenLayout::kRowMajor, 1, options.inputs);
  }
  const bool padded = options.grouped_features() > options.inputs;
  copied_ = norm_ || padded || layout == TokenLayout::kTokenMajor;
  grouped_ = {-1, layout, projection.tokens, projection.inputs};
  if (copied_) grouped_ = context->Keep(layout, projection.tokens, projection.inputs);
  if (norm_ || padded) {
    dgrouped_ = context->Temporary(TokenLayout::kRowMajor, projection.tokens, projection.inputs);
  }
  projection_ = std::make_unique<DeviceMlp<A>>(context, name, projection);
}

template <typename A>
void DeviceTokenizer<A>::Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) {
  if (copied_) {
    const Activations<A> grouped = context_->View(pass.shape, grouped_);
    if (norm_ && grouped.tokens * grouped.features == options_.inputs && grouped.row_major()) {
      norm_->Forward(pass, x, {}, grouped.WithTokens(1));
    } else if (norm_) {
      const Activations<A> normal = context_->View(pass.shape, normal_);
      norm_->Forward(pass, x, {}, normal);
      CopyGroups(normal, grouped);
    } else {
      CopyGroups(x, grouped);
    }
  }
  projection_->Forward(pass, Grouped(pass, x), Projected(y));
}

template <typename A>
void DeviceTokenizer<A>::Backward(const ModulePass& pass, Activations<const A> x,
                                  Activations<const A> dy, Activations<A> dx) {
  if (dgrouped_.slot < 0) {
    return projection_->Backward(pass, Grouped(pass, x), Projected(dy),
                                 dx.WithTokens(grouped_.tokens));
  }
  const Activations<A> dgrouped = context_->View(pass.shape, dgrouped_);
  projection_->Backward(pass, Grouped(pass, x), Projected(dy), dgrouped);
  const Activations<A> real = dgrouped.WithTokens(1).Slice(0, options_.inputs);
  if (norm_) {
    norm_->Backward(pass, real, {}, dx);
  } else {
    Copy<A>(context_->stream(), real, dx);
  }
}

template <typename A>
Activations<const A> DeviceTokenizer<A>::Grouped(const ModulePass& pass,
                                                 Activations<const A> e) const {
  if (copied_) return context_->View(pass.shape, grouped_);
  return e.WithTokens(grouped_.tokens);
}

template <typename A>
void DeviceTokenizer<A>::CopyGroups(Activations<const A> e, Activations<A> grouped) {
  const int64_t width = grouped.features;
  const auto tokens = [&](int64_t begin, int64_t count) {
    Activations<A> part = grouped;
    part.data += begin * grouped.token_stride;
    part.tokens = count;
    return part;
  };
  const int64_t whole = options_.inputs / width;
  const int64_t rest = options_.inputs % width;
  Activations<const A> groups = e;
  groups.tokens = whole;
  groups.features = groups.token_stride = width;
  Copy<A>(context_->stream(), groups, tokens(0, whole));
  if (whole == grouped.tokens) return;
  Fill<A>(context_->stream(), 0, tokens(whole, grouped.tokens - whole));
  if (rest > 0) {
    Copy<A>(context_->stream(), e.Slice(whole * width, rest), tokens(whole, 1).Slice(0, rest));
  }
}

template <typename A>
template <typename T>
Activations<T> DeviceTokenizer<A>::Projected(Activations<T> x) const {
  return options_.kind == TokenizerOptions::Kind::kFull ? x.WithTokens(1) : x;
}

template class DeviceTokenizer<float>;
template class DeviceTokenizer<BFloat16>;

}  // namespace elastor::cuda
