#include "core/layers/tokenizer.h"

#include "core/kernels/elementwise.h"

namespace elastor {

int64_t TokenizerOptions::grouped_features() const {
  return kind == Kind::kFull ? inputs : (inputs + tokens - 1) / tokens * tokens;
}

MlpOptions TokenizerOptions::projection() const {
  const bool full = kind == Kind::kFull;
  MlpOptions mlp;
  mlp.tokens = full ? 1 : tokens;
  mlp.inputs = grouped_features() / mlp.tokens;
  if (hidden > 0) mlp.hidden = {hidden};
  mlp.outputs = full ? tokens * width : width;
  mlp.sharing = kind == Kind::kShared ? Sharing::kSharedWeights : Sharing::kOwnWeights;
  mlp.hidden_norm = hidden_norm ? HiddenNorm::kRms : HiddenNorm::kNone;
  mlp.dropout = dropout;
  return mlp;
}

template <typename T>
Tokenizer<T>::Tokenizer(ModelBuilder* builder, const std::string& name,
                        const TokenizerOptions& options)
    : Module<T>(options.inputs, options.tokens * options.width),
      options_(options),
      grouped_features_(options.grouped_features()) {
  if (options.norm.width > 0) {
    norm_ = std::make_unique<NormLayer<T>>(builder, name + ".norm", options.inputs, options.norm);
  }
  if (norm_ || grouped_features_ != options.inputs) {
    grouped_ = builder->workspace->Activations(grouped_features_);
    dgrouped_ = builder->workspace->Activations(grouped_features_);
  }
  projection_ = std::make_unique<Mlp<T>>(builder, name, options.projection());
}

template <typename T>
int64_t Tokenizer<T>::multiply_adds() const {
  return projection_->multiply_adds();
}

template <typename T>
void Tokenizer<T>::Prepare(const T* parameters) {
  if (norm_) norm_->Prepare(parameters);
  projection_->Prepare(parameters);
}

template <typename T>
Panels<const T> Tokenizer<T>::Grouped(const Pass<T>& pass, Panels<const T> x) const {
  return grouped_ >= 0 ? Panels<const T>(pass.Slot(grouped_)) : x;
}

template <typename T>
void Tokenizer<T>::DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const {
  if (grouped_ >= 0) {
    const Panels<T> grouped = pass.Slot(grouped_);
    const Panels<T> real = grouped.Slice(0, options_.inputs);
    const int64_t padding = grouped_features_ - options_.inputs;
    if (norm_) {
      norm_->Forward(pass, x, real);
    } else {
      Copy<T>(x, real);
    }
    if (padding > 0) Fill<T>(T{0}, grouped.Slice(options_.inputs, padding));
  }
  projection_->Forward(pass, Grouped(pass, x), y);
}

template <typename T>
void Tokenizer<T>::DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                              Panels<T> dx) const {
  if (grouped_ < 0) return projection_->Backward(pass, x, dy, dx);
  const Panels<T> dgrouped = pass.Slot(dgrouped_);
  projection_->Backward(pass, Grouped(pass, x), dy, dgrouped);
  const Panels<T> real = dgrouped.Slice(0, options_.inputs);
  if (norm_) {
    norm_->Backward(pass, x, real, dx);
  } else {
    Copy<T>(real, dx);
  }
}

template class Tokenizer<float>;
template class Tokenizer<double>;

}  // namespace elastor
