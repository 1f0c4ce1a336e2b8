#include "core/layers/token_linear.h"

#include "core/layers/deliver.h"
#include "core/kernels/elementwise.h"

namespace elastor {

template <typename T>
TokenLinear<T>::TokenLinear(ModelBuilder* builder, const std::string& name, int64_t tokens,
                            int64_t in, int64_t out, Activation activation, Sharing sharing,
                            Bias bias)
    : Module<T>(tokens * in, tokens * out),
      tokens_(tokens),
      in_(in),
      out_(out),
      maps_(sharing == Sharing::kSharedWeights ? 1 : tokens),
      activation_(activation),
      forward_(maps_),
      transposed_(maps_) {
  using Shape = std::vector<int64_t>;
  ParameterLayout& parameters = *builder->parameters;
  weight_ = parameters.Declare(name + ".weight", maps_ > 1 ? Shape{maps_, out, in} : Shape{out, in},
                               Init::XavierNormal(in, out), Decay::kDense);
  weight_offset_ = parameters[weight_].offset;
  if (bias == Bias::kAdded) {
    bias_ = parameters.Declare(name + ".bias", maps_ > 1 ? Shape{maps_, out} : Shape{out},
                               Init::Constant(0), Decay::kNone);
    bias_offset_ = parameters[bias_].offset;
  }
  if (activation != Activation::kIdentity) {
    derivative_ = builder->workspace->Activations(tokens * out);
  }
  if (maps_ < tokens_) scratch_ = builder->workspace->Flat(out * in);
}

template <typename T>
void TokenLinear<T>::Prepare(const T* parameters) {
  for (int64_t i = 0; i < maps_; ++i) {
    const auto w = MatrixView<T>::RowMajor(parameters + weight_offset_ + i * out_ * in_, out_, in_);
    forward_[i].Pack({{w}});
    transposed_[i].Pack({{w.Transposed()}});
  }
  if (bias_ >= 0) bias_values_ = parameters + bias_offset_;
}

template <typename T>
void TokenLinear<T>::DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const {
  const bool save = pass.training && activation_ != Activation::kIdentity;
  pass.Share(pass.rows, [&](int64_t begin, int64_t end) {
    const int64_t rows = end - begin;
    for (int64_t t = 0; t < tokens_; ++t) {
      const int64_t map = t % maps_;
      Epilogue<T> epilogue;
      if (bias_ >= 0) epilogue.bias = bias_values_ + map * out_;
      epilogue.activation = activation_;
      if (save)
        epilogue.derivative = pass.Slot(derivative_).Slice(t * out_, out_).Rows(begin, rows);
      MatMul<T>(forward_[map], {{x.Slice(t * in_, in_).Rows(begin, rows)}},
                y.Slice(t * out_, out_).Rows(begin, rows), epilogue);
    }
  });
}

template <typename T>
void TokenLinear<T>::DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                                Panels<T> dx) const {
  Panels<const T> dz = dy;  // gradient before the activation
  if (activation_ != Activation::kIdentity) {
    const Panels<T> derivative = pass.Slot(derivative_);
    Multiply<T>(dy, derivative, derivative);
    dz = derivative;
  }
  const auto weight_part = [&](int64_t t, T* dw, Store store) {
    pass.Share(out_, [&](int64_t begin, int64_t end) {
      WeightGradient<T>(dz.Slice(t * out_ + begin, end - begin), x.Slice(t * in_, in_),
                        dw + begin * in_, in_, store);
    });
  };
  const auto bias_part = [&](int64_t t, T* db, Store store) {
    BiasGradient<T>(dz.Slice(t * out_, out_), db, store);
  };
  Deliver(pass, weight_, out_ * in_, weight_part);
  if (bias_ >= 0) Deliver(pass, bias_, out_, bias_part);
  if (dx.data == nullptr) return;
  pass.Share(pass.rows, [&](int64_t begin, int64_t end) {
    const int64_t rows = end - begin;
    for (int64_t t = 0; t < tokens_; ++t) {
      MatMul<T>(transposed_[t % maps_], {{dz.Slice(t * out_, out_).Rows(begin, rows)}},
                dx.Slice(t * in_, in_).Rows(begin, rows), {});
    }
  });
}

template <typename T>
template <typename Part>
void TokenLinear<T>::Deliver(const Pass<T>& pass, int parameter, int64_t size,
                             const Part& part) const {
  if (maps_ < tokens_) {
    DeliverSum(pass.sink, parameter, size, tokens_, pass.workspace->Flat(scratch_), part);
    return;
  }
  const auto target = pass.sink->Open(parameter);
  for (int64_t t = 0; t < tokens_; ++t) part(t, target.data + t * size, target.store);
  pass.sink->Close(parameter);
}

template class TokenLinear<float>;
template class TokenLinear<double>;

}  // namespace elastor
