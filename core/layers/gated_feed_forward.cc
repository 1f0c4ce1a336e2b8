#include "core/layers/feed_forward.h"

namespace elastor {

template <typename T>
GatedFeedForward<T>::GatedFeedForward(ModelBuilder* builder, const std::string& name,
                                      int64_t tokens, int64_t width, int64_t hidden,
                                      Activation activation)
    : Module<T>(tokens * width, tokens * width),
      tokens_(tokens),
      width_(width),
      hidden_(hidden),
      activation_(activation),
      packed_(tokens) {
  ParameterLayout& parameters = *builder->parameters;
  lift_ = parameters.Declare(name + ".lift", {tokens, 2, hidden, width},
                             Init::XavierNormal(width, hidden), Decay::kDense);
  down_ = parameters.Declare(name + ".down", {tokens, width, hidden},
                             Init::XavierNormal(hidden, width), Decay::kDense);
  residual_ = parameters.Declare(name + ".residual", {tokens, width, width},
                                 Init::XavierNormal(width, width), Decay::kDense);
  lift_offset_ = parameters[lift_].offset;
  down_offset_ = parameters[down_].offset;
  residual_offset_ = parameters[residual_].offset;
  h_ = builder->workspace->Activations(tokens * hidden);
  factors_ = builder->workspace->Activations(tokens * 2 * hidden);
}

template <typename T>
int64_t GatedFeedForward<T>::multiply_adds() const {
  return tokens_ * (3 * hidden_ * width_ + width_ * width_);
}

template <typename T>
void GatedFeedForward<T>::Prepare(const T* parameters) {
  for (int64_t t = 0; t < tokens_; ++t) {
    const T* lift = parameters + lift_offset_ + t * 2 * hidden_ * width_;
    const auto w1 = MatrixView<T>::RowMajor(lift, hidden_, width_);
    const auto w2 = MatrixView<T>::RowMajor(lift + hidden_ * width_, hidden_, width_);
    const auto w3 =
        MatrixView<T>::RowMajor(parameters + down_offset_ + t * width_ * hidden_, width_, hidden_);
    const auto wr = MatrixView<T>::RowMajor(parameters + residual_offset_ + t * width_ * width_,
                                            width_, width_);
    packed_[t].lift.PackPair(w1, w2);
    packed_[t].down.Pack({{w3, wr}});
    packed_[t].down_back.Pack({{w3.Transposed()}});
    packed_[t].back.Pack({{w1.Transposed(), w2.Transposed(), wr.Transposed()}});
  }
}

template <typename T>
void GatedFeedForward<T>::DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const {
  const Panels<T> h = pass.Slot(h_);
  const Panels<T> factors = pass.Slot(factors_);
  for (int64_t t = 0; t < tokens_; ++t) {
    const Panels<const T> m = x.Slice(t * width_, width_);
    const Panels<T> h_t = h.Slice(t * hidden_, hidden_);
    Panels<T> first, second;
    if (pass.training) {
      first = factors.Slice(2 * t * hidden_, hidden_);
      second = factors.Slice((2 * t + 1) * hidden_, hidden_);
    }
    GatedLift<T>(packed_[t].lift, m, nullptr, nullptr, activation_, h_t, first, second);
    MatMul<T>(packed_[t].down, {{h_t, m}}, y.Slice(t * width_, width_), {});
  }
}

template <typename T>
void GatedFeedForward<T>::DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                                     Panels<T> dx) const {
  const Panels<T> h = pass.Slot(h_);
  const Panels<T> factors = pass.Slot(factors_);
  const auto dlift = pass.sink->Open(lift_);
  const auto ddown = pass.sink->Open(down_);
  const auto dresidual = pass.sink->Open(residual_);
  for (int64_t t = 0; t < tokens_; ++t) {
    const Panels<const T> m = x.Slice(t * width_, width_);
    const Panels<const T> dz = dy.Slice(t * width_, width_);
    // dp = dh * (dh/dp) and dq = dh * (dh/dq), where dh = W3^T dz, over the saved factors.
    const Panels<T> dp = factors.Slice(2 * t * hidden_, hidden_);
    const Panels<T> dq = factors.Slice((2 * t + 1) * hidden_, hidden_);
    Epilogue<T> gate;
    gate.multiplier = dp;
    gate.second_output = dq;
    gate.second_multiplier = dq;
    MatMul<T>(packed_[t].down_back, {{dz}}, dp, gate);
    const Panels<const T> dpq = factors.Slice(2 * t * hidden_, 2 * hidden_);
    WeightGradient<T>(dpq, m, dlift.data + t * 2 * hidden_ * width_, width_, dlift.store);
    WeightGradient<T>(dz, h.Slice(t * hidden_, hidden_), ddown.data + t * width_ * hidden_, hidden_,
                      ddown.store);
    WeightGradient<T>(dz, m, dresidual.data + t * width_ * width_, width_, dresidual.store);
    MatMul<T>(packed_[t].back, {{dpq, dz}}, dx.Slice(t * width_, width_), {});
  }
  pass.sink->Close(lift_);
  pass.sink->Close(down_);
  pass.sink->Close(residual_);
}

template class GatedFeedForward<float>;
template class GatedFeedForward<double>;

}  // namespace elastor
