#include "core/layers/feed_forward.h"
#include "core/kernels/elementwise.h"

namespace elastor {

template <typename T>
GatedSumFeedForward<T>::GatedSumFeedForward(ModelBuilder* builder, const std::string& name,
                                            int64_t tokens, int64_t width, int64_t hidden,
                                            Activation activation)
    : Module<T>(tokens * width, tokens * width),
      tokens_(tokens),
      width_(width),
      hidden_(hidden),
      activation_(activation),
      packed_(tokens) {
  ParameterLayout& parameters = *builder->parameters;
  const Init zero = Init::Constant(0);
  lift_ = parameters.Declare(name + ".lift", {tokens, 3, hidden, width},
                             Init::XavierNormal(width, hidden), Decay::kDense);
  lift_bias_ = parameters.Declare(name + ".lift_bias", {tokens, 3, hidden}, zero, Decay::kNone);
  down_ = parameters.Declare(name + ".down", {tokens, width, hidden},
                             Init::XavierNormal(hidden, width), Decay::kDense);
  down_bias_ = parameters.Declare(name + ".down_bias", {tokens, width}, zero, Decay::kNone);
  residual_ = parameters.Declare(name + ".residual", {tokens, width, width},
                                 Init::XavierNormal(width, width), Decay::kDense);
  residual_bias_ = parameters.Declare(name + ".residual_bias", {tokens, width}, zero, Decay::kNone);
  const int all[] = {lift_, lift_bias_, down_, down_bias_, residual_, residual_bias_};
  for (int i = 0; i < 6; ++i) offsets_[i] = parameters[all[i]].offset;
  h_ = builder->workspace->Activations(tokens * hidden);
  factors_ = builder->workspace->Activations(tokens * 3 * hidden);
}

template <typename T>
int64_t GatedSumFeedForward<T>::multiply_adds() const {
  return tokens_ * (4 * hidden_ * width_ + width_ * width_);
}

template <typename T>
void GatedSumFeedForward<T>::Prepare(const T* parameters) {
  parameters_ = parameters;
  for (int64_t t = 0; t < tokens_; ++t) {
    const T* lift = parameters + offsets_[0] + t * 3 * hidden_ * width_;
    const auto a = MatrixView<T>::RowMajor(lift, hidden_, width_);
    const auto b = MatrixView<T>::RowMajor(lift + hidden_ * width_, hidden_, width_);
    const auto c = MatrixView<T>::RowMajor(lift + 2 * hidden_ * width_, hidden_, width_);
    const auto w =
        MatrixView<T>::RowMajor(parameters + offsets_[2] + t * width_ * hidden_, width_, hidden_);
    const auto r =
        MatrixView<T>::RowMajor(parameters + offsets_[4] + t * width_ * width_, width_, width_);
    Packed& packed = packed_[t];
    packed.a.Pack({{a}});
    packed.b.Pack({{b}});
    packed.c.Pack({{c}});
    packed.down.Pack({{w, r}});
    packed.down_back.Pack({{w.Transposed()}});
    packed.back.Pack({{a.Transposed(), b.Transposed(), c.Transposed(), r.Transposed()}});
    packed.bias.resize(width_);
    for (int64_t d = 0; d < width_; ++d) {
      packed.bias[d] =
          parameters[offsets_[3] + t * width_ + d] + parameters[offsets_[5] + t * width_ + d];
    }
  }
}

template <typename T>
void GatedSumFeedForward<T>::DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const {
  const Panels<T> h = pass.Slot(h_);
  const Panels<T> factors = pass.Slot(factors_);
  for (int64_t t = 0; t < tokens_; ++t) {
    const Panels<const T> m = x.Slice(t * width_, width_);
    const Panels<T> h_t = h.Slice(t * hidden_, hidden_);
    const Panels<T> u = factors.Slice(3 * t * hidden_, hidden_);
    const T* biases = parameters_ + offsets_[1] + t * 3 * hidden_;
    Epilogue<T> gate;  // u = act(B m + b)
    gate.bias = biases + hidden_;
    gate.activation = activation_;
    if (pass.training) gate.derivative = factors.Slice((3 * t + 1) * hidden_, hidden_);
    MatMul<T>(packed_[t].b, {{m}}, u, gate);
    Epilogue<T> sum;  // u += A m + a
    sum.bias = biases;
    sum.residual = u;
    MatMul<T>(packed_[t].a, {{m}}, u, sum);
    Epilogue<T> product;  // h = u * (C m + c)
    product.bias = biases + 2 * hidden_;
    product.multiplier = u;
    if (pass.training) product.unscaled = factors.Slice((3 * t + 2) * hidden_, hidden_);
    MatMul<T>(packed_[t].c, {{m}}, h_t, product);
    Epilogue<T> down;
    down.bias = packed_[t].bias.data();
    MatMul<T>(packed_[t].down, {{h_t, m}}, y.Slice(t * width_, width_), down);
  }
}

template <typename T>
void GatedSumFeedForward<T>::DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                                        Panels<T> dx) const {
  const Panels<T> factors = pass.Slot(factors_);
  for (int64_t t = 0; t < tokens_; ++t) {
    const Panels<const T> dz = dy.Slice(t * width_, width_);
    const Panels<T> u = factors.Slice(3 * t * hidden_, hidden_);
    const Panels<T> derivative = factors.Slice((3 * t + 1) * hidden_, hidden_);
    const Panels<T> r = factors.Slice((3 * t + 2) * hidden_, hidden_);
    // With dh = W^T dz: d(C m) = dh * u into r's place, du = dh * r into u's place.
    Epilogue<T> gate;
    gate.multiplier = r;
    gate.second_output = r;
    gate.second_multiplier = u;
    MatMul<T>(packed_[t].down_back, {{dz}}, u, gate);
    Multiply<T>(u, derivative, derivative);  // d(B m)
    MatMul<T>(packed_[t].back, {{factors.Slice(3 * t * hidden_, 3 * hidden_), dz}},
              dx.Slice(t * width_, width_), {});
  }
  DeliverGradients(pass, x, factors, pass.Slot(h_), dy);
}

template <typename T>
void GatedSumFeedForward<T>::DeliverGradients(const Pass<T>& pass, Panels<const T> x,
                                              Panels<const T> dlift, Panels<const T> h,
                                              Panels<const T> dy) const {
  const auto deliver = [&](int parameter, const auto& part) {
    const auto target = pass.sink->Open(parameter);
    for (int64_t t = 0; t < tokens_; ++t) part(t, target.data, target.store);
    pass.sink->Close(parameter);
  };
  const auto x_t = [&](int64_t t) { return x.Slice(t * width_, width_); };
  const auto dz_t = [&](int64_t t) { return dy.Slice(t * width_, width_); };
  deliver(lift_, [&](int64_t t, T* d, Store store) {
    WeightGradient<T>(dlift.Slice(3 * t * hidden_, 3 * hidden_), x_t(t),
                      d + t * 3 * hidden_ * width_, width_, store);
  });
  deliver(lift_bias_, [&](int64_t t, T* d, Store store) {
    BiasGradient<T>(dlift.Slice(3 * t * hidden_, 3 * hidden_), d + t * 3 * hidden_, store);
  });
  deliver(down_, [&](int64_t t, T* d, Store store) {
    WeightGradient<T>(dz_t(t), h.Slice(t * hidden_, hidden_), d + t * width_ * hidden_, hidden_,
                      store);
  });
  deliver(residual_, [&](int64_t t, T* d, Store store) {
    WeightGradient<T>(dz_t(t), x_t(t), d + t * width_ * width_, width_, store);
  });
  for (int bias : {down_bias_, residual_bias_}) {
    deliver(bias,
            [&](int64_t t, T* d, Store store) { BiasGradient<T>(dz_t(t), d + t * width_, store); });
  }
}

template class GatedSumFeedForward<float>;
template class GatedSumFeedForward<double>;

}  // namespace elastor
