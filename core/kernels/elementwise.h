#ifndef ELASTOR_CORE_KERNELS_ELEMENTWISE_H_
#define ELASTOR_CORE_KERNELS_ELEMENTWISE_H_

#include <cstdint>

#include "core/kernels/dropout.h"
#include "core/kernels/matmul.h"
#include "core/tensor/panels.h"

namespace elastor {

// y = a + b. y may be a or b.
template <typename T>
void Add(Panels<const T> a, Panels<const T> b, Panels<T> y);

// y = a * b. y may be a or b.
template <typename T>
void Multiply(Panels<const T> a, Panels<const T> b, Panels<T> y);

// y = factor * x. y may be x.
template <typename T>
void Scale(T factor, Panels<const T> x, Panels<T> y);

// y = a * sigmoid(b).
template <typename T>
void SigmoidGate(Panels<const T> a, Panels<const T> b, Panels<T> y);
// da = dy * sigmoid(b), db = (dy * a) * sigmoid'(b).
template <typename T>
void SigmoidGateBackward(Panels<const T> a, Panels<const T> b, Panels<const T> dy, Panels<T> da,
                         Panels<T> db);

// y = max(x, 0), which may be x.
template <typename T>
void Relu(Panels<const T> x, Panels<T> y);
// dx = dy * (1 where y > 0, else 0), which may be dy.
template <typename T>
void ReluBackward(Panels<const T> y, Panels<const T> dy, Panels<T> dx);

// y = activation(x); derivative = activation'(x), unless that view is empty. Both may be x.
template <typename T>
void Activate(Activation activation, Panels<const T> x, Panels<T> y, Panels<T> derivative);

// y = x. Views may have different strides.
template <typename T>
void Copy(Panels<const T> x, Panels<T> y);

// y = constant.
template <typename T>
void Fill(T constant, Panels<T> y);

// Block transpose of RankMixer (Theorem 2.1): a row is T x D in T x T blocks of d = D / T; block
// (i, j) goes to (j, i): y[i * D + j * d + c] = x[j * D + i * d + c]. Its own inverse, so the
// backward pass is the same call. x and y: [rows, tokens * width], different memory.
template <typename T>
void BlockTranspose(int64_t tokens, int64_t width, Panels<const T> x, Panels<T> y);

// Sum of every token's features: y[t] = x[t*D] + x[t*D + 1] + ... ascending. x: tokens * width.
template <typename T>
void SumPool(int64_t tokens, int64_t width, Panels<const T> x, Panels<T> y);

// Products of every two tokens, summed (core/ops/factorization_pool.h). x: tokens * width features.
template <typename T>
void FactorizationPool(int64_t tokens, int64_t width, Panels<const T> x, Panels<T> y);
// dx[t*D + d] = dy[d] * ((x[0*D + d] + x[1*D + d] + ... ascending) - x[t*D + d]).
template <typename T>
void FactorizationPoolBackward(int64_t tokens, int64_t width, Panels<const T> x, Panels<const T> dy,
                               Panels<T> dx);

// core/ops/joint_logit.h. x, y: [rows, 2]; may be the same memory.
template <typename T>
void JointLogit(Panels<const T> x, Panels<T> y);
template <typename T>
void JointLogitBackward(Panels<const T> x, Panels<const T> dy, Panels<T> dx);

// Mean over tokens: y[d] = (x[0*D + d] + x[1*D + d] + ... ascending) * (1/T). x: tokens * width.
template <typename T>
void MeanPool(int64_t tokens, int64_t width, Panels<const T> x, Panels<T> y);
// dx[t*D + d] = dy[d] * (1/T).
template <typename T>
void MeanPoolBackward(int64_t tokens, int64_t width, Panels<const T> dy, Panels<T> dx);

// Inverted dropout (dropout.h): y = keep ? x * 1/(1-rate) : 0; the backward pass is the same call
// on dy.
template <typename T>
void Dropout(const DropoutKey& key, Panels<const T> x, Panels<T> y);

// One number a row, `stride` apart.
template <typename T>
struct Strided {
  T* data = nullptr;
  int64_t stride = 1;
  [[gnu::always_inline]] T& operator[](int64_t row) const { return data[row * stride]; }
};

// Binary cross-entropy with logits of `rows` real rows. logits: [rows, 1]. For each real row:
//   loss[row] = max(z, 0) - z y + log1p(exp(-|z|)),  dlogits = (sigmoid(z) - y) * weight * scale;
// loss is in double, unweighted, or without memory, if it is not wanted; weights may be null (= 1).
// Both are 0 where y is not-a-number, and dlogits is in padded rows.
template <typename T>
void BceWithLogits(Panels<const T> logits, Strided<const float> labels, const float* weights,
                   T scale, Strided<double> loss, Panels<T> dlogits);

// The gradient of a student z that learns the prediction of a teacher's logit, for each real row:
//   dlogits = (sigmoid(z) - sigmoid(teacher)) * weight * scale,
// 0 where the label is not-a-number and in padded rows. logits, teacher: [rows, 1].
template <typename T>
void StudentGradient(Panels<const T> logits, Panels<const T> teacher, Strided<const float> labels,
                     const float* weights, T scale, Panels<T> dlogits);

// Softmax cross-entropy of `rows` real rows. logits: [rows, classes]; a label y is a class. For
// each real row, everything in double:
//   loss[row] = log(sum_c exp(z_c - m)) + m - z_y with m = max_c z_c, sums over ascending c,
//   dlogits_c = (exp(z_c - m) / sum - [c = y]) * weight * scale, rounded once;
// loss is unweighted; weights may be null (= 1), scales hold a factor for each row. Both are 0
// where y is not-a-number, and dlogits is in padded rows. REQUIRES: labels in [0, classes).
template <typename T>
void SoftmaxCrossEntropy(Panels<const T> logits, Strided<const float> labels, const float* weights,
                         const double* scales, Strided<double> loss, Panels<T> dlogits);

// 1 / (1 + exp(-z)), the function behind predictions.
template <typename T>
T Sigmoid(T z);

// Copies a run of features from row-major memory to panels. Each row has its own source pointer:
// y[row][f] = rows[row][f] for f in [0, y.features); padded rows get 0.
template <typename T>
void RowsToPanels(const T* const* rows, Panels<T> y);
// rows[row * row_stride + f] = x[row][f] + 0, real rows only: -0 becomes +0.
template <typename T>
void PanelsToRows(Panels<const T> x, T* rows, int64_t row_stride);

// Numeric fields: y[row][i*k + c] = value * vector[i][c], or missing[i][c] where the value is NaN.
// values: [rows][count] row-major; vector, missing: [count][width]; y: [rows, count * width].
template <typename T>
void NumericEmbedding(const float* values, int64_t count, int64_t width, const T* vectors,
                      const T* missing, Panels<T> y);
// dvectors, dmissing (+)= sums over real rows, in the order of WeightGradient (FMA chains for
// dvectors, with value 0 where missing; 0/1 indicator for dmissing).
template <typename T>
void NumericEmbeddingBackward(const float* values, int64_t count, int64_t width, Panels<const T> dy,
                              T* dvectors, T* dmissing, Store store);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_ELEMENTWISE_H_
