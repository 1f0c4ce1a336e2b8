#ifndef ELASTOR_CORE_LAYERS_FEED_FORWARD_H_
#define ELASTOR_CORE_LAYERS_FEED_FORWARD_H_

#include <string>
#include <vector>

#include "core/layers/module.h"

namespace elastor {

// Per-token feed-forward networks (P-FFN): token t of M [T, D] has weights of its own. All maps are
// drawn Xavier normal. H = r D.

// RankElastor, eq. 4, without biases:
//   Z_t = W3 (act(W1 M_t) * (W2 M_t)) + Wr M_t
// lift: [T, 2, H, D] (W1 then W2), down: [T, D, H] (W3), residual: [T, D, D] (Wr).
template <typename T>
class GatedFeedForward final : public Module<T> {
 public:
  GatedFeedForward(ModelBuilder* builder, const std::string& name, int64_t tokens, int64_t width,
                   int64_t hidden, Activation activation);

  int64_t multiply_adds() const override;
  void Prepare(const T* parameters) override;

 private:
  void DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const override;
  void DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                  Panels<T> dx) const override;

  int64_t tokens_;
  int64_t width_;
  int64_t hidden_;
  Activation activation_;
  int lift_;
  int down_;
  int residual_;
  int64_t lift_offset_;
  int64_t down_offset_;
  int64_t residual_offset_;
  int h_;        // workspace [T H]
  int factors_;  // workspace [T 2H]: dh/d(W1 M) and dh/d(W2 M), then their products with dh
  struct Packed {
    PackedMatrix<T> lift;       // W1 | W2 paired
    PackedMatrix<T> down;       // [W3 Wr]
    PackedMatrix<T> down_back;  // W3^T
    PackedMatrix<T> back;       // [W1^T W2^T Wr^T]
  };
  std::vector<Packed> packed_;
};

// The public code's gated form, with biases:
//   u = A M_t + a + act(B M_t + b);  Z_t = W (u * (C M_t + c)) + w + R M_t + s
// lift: [T, 3, H, D] (A, B, C), lift_bias: [T, 3, H]; down: [T, D, H], down_bias: [T, D];
// residual: [T, D, D], residual_bias: [T, D].
template <typename T>
class GatedSumFeedForward final : public Module<T> {
 public:
  GatedSumFeedForward(ModelBuilder* builder, const std::string& name, int64_t tokens, int64_t width,
                      int64_t hidden, Activation activation);

  int64_t multiply_adds() const override;
  void Prepare(const T* parameters) override;

 private:
  void DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const override;
  void DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                  Panels<T> dx) const override;
  void DeliverGradients(const Pass<T>& pass, Panels<const T> x, Panels<const T> dlift,
                        Panels<const T> h, Panels<const T> dy) const;

  int64_t tokens_;
  int64_t width_;
  int64_t hidden_;
  Activation activation_;
  int lift_;
  int lift_bias_;
  int down_;
  int down_bias_;
  int residual_;
  int residual_bias_;
  int64_t offsets_[6];  // of the parameters above, in that order
  int h_;               // workspace [T H]
  int factors_;         // workspace [T 3H]: a token's u, act', C M + c; then du, d(B M), d(C M)
  const T* parameters_ = nullptr;
  struct Packed {
    PackedMatrix<T> a, b, c;
    PackedMatrix<T> down;       // [W R]
    PackedMatrix<T> down_back;  // W^T
    PackedMatrix<T> back;       // [A^T B^T C^T R^T]
    std::vector<T> bias;        // w + s
  };
  std::vector<Packed> packed_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_LAYERS_FEED_FORWARD_H_
