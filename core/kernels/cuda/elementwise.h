#ifndef ELASTOR_CORE_KERNELS_CUDA_ELEMENTWISE_H_
#define ELASTOR_CORE_KERNELS_CUDA_ELEMENTWISE_H_

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/image_shape.h"
#include "core/kernels/matmul.h"

namespace elastor::cuda {

// A is float or BFloat16; everything is computed in float and rounded once to A. With A = float the
// bits are those of the CPU's op of the same name, element by element. Views of one call have the
// same rows, tokens and features unless said otherwise; strides may differ (an op can change the
// layout). Parameters are float, [tokens][features] where the op has tokens.

// y = x.
template <typename A>
void Copy(Stream& stream, Activations<const A> x, Activations<A> y);
// y = a + b. y may be a or b.
template <typename A>
void Add(Stream& stream, Activations<const A> a, Activations<const A> b, Activations<A> y);
// y = y + x.
template <typename A>
void AddTo(Stream& stream, Activations<const A> x, Activations<float> y);
// y = a * b. y may be a or b.
template <typename A>
void Multiply(Stream& stream, Activations<const A> a, Activations<const A> b, Activations<A> y);
// y = a * sigmoid(b); da = dy * sigmoid(b), db = (dy * a) * sigmoid'(b).
template <typename A>
void SigmoidGate(Stream& stream, Activations<const A> a, Activations<const A> b, Activations<A> y);
template <typename A>
void SigmoidGateBackward(Stream& stream, Activations<const A> a, Activations<const A> b,
                         Activations<const A> dy, Activations<A> da, Activations<A> db);
// y = 0.
template <typename A>
void Fill(Stream& stream, float constant, Activations<A> y);
// Flat arrays: to = from, rounded. For weights.
void Round(Stream& stream, const float* from, BFloat16* to, int64_t count);

// z = z + bias[t][f] (null: none), y = activation(z). shared_bias: one bias of `features` elements
// for all tokens. y may be z where the backward pass does not need z (ReLU: it may use y).
template <typename A>
void BiasActivation(Stream& stream, Activation activation, const float* bias, bool shared_bias,
                    Activations<A> z, Activations<A> y);
// dz = dy * activation'(z). dz may be dy or z. ReLU: z may be y.
template <typename A>
void ActivationBackward(Stream& stream, Activation activation, Activations<const A> z,
                        Activations<const A> dy, Activations<A> dz);

// Eq. 4's gate. z: [.., 2H], p = the first H features and q the last; h: [.., H].
//   h = act(p) * q;   dp = dh * (q * act'(p)),  dq = dh * act(p)
// dz may be z.
template <typename A>
void GatedUnit(Stream& stream, Activation activation, Activations<const A> z, Activations<A> h);
template <typename A>
void GatedUnitBackward(Stream& stream, Activation activation, Activations<const A> z,
                       Activations<const A> dh, Activations<A> dz);

// The public code's gate. z: [.., 3H] = a | b | c without their biases; bias: [tokens][3H].
//   u = a + act(b), v = c (each with its bias);  h = u * v
//   da = dh * v,  db = (dh * v) * act'(b),  dc = dh * u
// dz may be z.
template <typename A>
void GatedSumUnit(Stream& stream, Activation activation, const float* bias, Activations<const A> z,
                  Activations<A> h);
template <typename A>
void GatedSumUnitBackward(Stream& stream, Activation activation, const float* bias,
                          Activations<const A> z, Activations<const A> dh, Activations<A> dz);

// Block transpose of RankMixer (core/kernels/elementwise.h). x, y: [rows, 1, tokens * width],
// different memory.
template <typename A>
void BlockTranspose(Stream& stream, int64_t tokens, int64_t width, Activations<const A> x,
                    Activations<A> y);
// Within a row: x [rows, 1, a * b] read as [a, b], y as [b, a]. Different memory.
template <typename A>
void TransposeFeatures(Stream& stream, int64_t a, int64_t b, Activations<const A> x,
                       Activations<A> y);

// Sum of a token's features in ascending order: x [rows, T, D], y [rows, 1, T].
template <typename A>
void SumPool(Stream& stream, Activations<const A> x, Activations<A> y);
template <typename A>
void SumPoolBackward(Stream& stream, Activations<const A> dy, Activations<A> dx);

// Products of every two tokens, summed: x, dx [rows, T, D], y, dy [rows, 1, D].
template <typename A>
void FactorizationPool(Stream& stream, Activations<const A> x, Activations<A> y);
template <typename A>
void FactorizationPoolBackward(Stream& stream, Activations<const A> x, Activations<const A> dy,
                               Activations<A> dx);

// The elements above the diagonal of matrices x, dx [rows, T, T], row after row: y, dy
// [rows, 1, T (T - 1) / 2].
template <typename A>
void UpperTriangle(Stream& stream, Activations<const A> x, Activations<A> y);
template <typename A>
void UpperTriangleBackward(Stream& stream, Activations<const A> dy, Activations<A> dx);

// y = the sum of x's features in ascending order + bias[0]: x [rows, 1, D], y [rows, 1, 1].
template <typename A, typename Out>
void LogitSum(Stream& stream, Activations<const A> x, const float* bias, Activations<Out> y);

// core/ops/joint_logit.h. x, y: [rows, 1, 2].
template <typename A, typename Out>
void JointLogit(Stream& stream, Activations<const A> x, Activations<Out> y);
template <typename A>
void JointLogitBackward(Stream& stream, Activations<const A> x, Activations<const A> dy,
                        Activations<A> dx);

// core/ops/mean_logit.h. x: [rows, 1, S], y: [rows, 1, S + 1].
template <typename A, typename Out>
void MeanLogit(Stream& stream, Activations<const A> x, Activations<Out> y);
template <typename A>
void MeanLogitBackward(Stream& stream, Activations<const A> dy, Activations<A> dx);

// Mean over tokens: x [rows, T, D], y [rows, 1, D]; tokens in ascending order, times 1/T.
template <typename A>
void MeanPool(Stream& stream, Activations<const A> x, Activations<A> y);
template <typename A>
void MeanPoolBackward(Stream& stream, Activations<const A> dy, Activations<A> dx);

// Inverted dropout in place, with the CPU's masks (core/kernels/elementwise.h): feature t *
// features + f of the row of the epoch first_row[0] + local_row[r]. local_row: device,
// [rows], the local row of a device row (any for padding). step and first_row: device
// scalars, so that a graph can be launched again.
struct DeviceDropout {
  uint64_t key = 0;  // MakeRandomKey(seed, purpose, layer)
  double rate = 0;
  const uint32_t* step = nullptr;
  const int64_t* first_row = nullptr;
  const int32_t* local_row = nullptr;
};
template <typename A>
void Dropout(Stream& stream, const DeviceDropout& dropout, Activations<A> x);

// The label of a row that is learned, and the output that learns it.
struct BceLabel {
  int64_t outputs = 1;  // outputs per row
  int64_t losses = 1;   // losses per row
  int64_t output = 0;
  int64_t loss = 0;     // place of its loss among the row's
  int64_t columns = 1;  // labels per row
  int64_t column = 0;
  double weight = 1;  // weight of the label
};
// Binary cross-entropy (core/kernels/elementwise.h) of one label. logits, dlogits: [rows][outputs],
// losses: [rows][losses], of which it reads and writes one column. labels [..][columns], weights
// (null: 1): by local row; local_row[r] < 0: padding. inverse_weight: device scalar, 1 / weight of
// the batch.
//   losses = weight * (label's weight * loss), in double,
//   dlogits = (sigmoid(z) - y) * weight * (inverse * label's weight);
// both are 0 in padding and where y is not-a-number. dlogits may be null (evaluation; losses are
// then unweighted), and losses may, if dlogits is not.
void BceWithLogits(Stream& stream, int64_t rows, const BceLabel& label, const float* logits,
                   const float* labels, const float* weights, const float* inverse_weight,
                   const int32_t* local_row, double* losses, float* dlogits);

// The gradient of a student (core/kernels/elementwise.h) of label.output's prediction: dlogits of
// output `student`. The other arguments are BceWithLogits'.
void StudentGradient(Stream& stream, int64_t rows, const BceLabel& label, int64_t student,
                     const float* logits, const float* labels, const float* weights,
                     const float* inverse_weight, const int32_t* local_row, float* dlogits);

// Class labels: a row has `count`, all learned, each with a run of `classes` outputs.
struct ClassLabels {
  int64_t count = 1;
  int64_t classes = 2;
};
// Softmax cross-entropy (core/kernels/elementwise.h) of all labels, whose mean is the row's loss.
// logits, dlogits: [rows][count][classes]; losses: [rows][count]; the other arguments are like
// BceWithLogits'.
//   losses = weight * (loss / labels present), in double,
//   dlogits = (softmax - [c = y]) * weight * (inverse / labels present), rounded once.
void SoftmaxCrossEntropy(Stream& stream, int64_t rows, const ClassLabels& task, const float* logits,
                         const float* labels, const float* weights, const float* inverse_weight,
                         const int32_t* local_row, double* losses, float* dlogits);

// Numeric fields: values [local rows][count]; y: [rows, 1, >= count * width], its first features.
template <typename A>
void NumericEmbedding(Stream& stream, const float* values, const int32_t* local_row, int64_t count,
                      int64_t width, const float* vectors, const float* missing, Activations<A> y);
// Per leaf: dvectors[l * leaf_stride + i * width + c] = sum over the leaf's rows of value * dy,
// dmissing likewise with 1 where the value is missing. Order: LeafColumnSums, by FMAs. scratch: see
// there, for 2 * count * width features.
template <typename A>
void NumericEmbeddingBackward(Stream& stream, const float* values, const int32_t* local_row,
                              int64_t count, int64_t width, const LeafShape& shape,
                              Activations<const A> dy, float* dvectors, float* dmissing,
                              int64_t leaf_stride, float* scratch);
// Pixels [local rows][pixels], NaN = missing, as patches y [rows, 1, pixels]; 0 where they are
// missing and in padding.
template <typename A>
void Patches(Stream& stream, const float* pixels, const int32_t* local_row, const ImageShape& image,
             Activations<A> y);

// sums[t * map_stride + l * leaf_stride + f] = sum over the rows of leaf l of x(r, t, f), in float:
// chunks of kSumRows rows, each in order from +0, the chunks' sums in order. scratch:
// ColumnSumScratch floats.
inline constexpr int64_t kSumRows = 16;  // enough chunks for a device at 4,096 rows
inline int64_t ColumnSumScratch(const LeafShape& shape, int64_t columns) {
  return (shape.leaf_rows + kSumRows - 1) / kSumRows * shape.leaves * columns;
}
template <typename A>
void LeafColumnSums(Stream& stream, const LeafShape& shape, Activations<const A> x, float* sums,
                    int64_t map_stride, int64_t leaf_stride, float* scratch);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_ELEMENTWISE_H_
