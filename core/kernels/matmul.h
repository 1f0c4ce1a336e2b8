#ifndef ELASTOR_CORE_KERNELS_MATMUL_H_
#define ELASTOR_CORE_KERNELS_MATMUL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/precision.h"
#include "core/tensor/panels.h"
#include "core/tensor/pass_leaves.h"

namespace elastor {

// The canonical GEMM (docs/inside/design.md, "Within a leaf"). On the CPU every element has
// one documented order of additions, whatever the tiling, packing or threading:
//   forward and dX: one FMA chain from +0 over ascending k in blocks of 512; the blocks' sums are
//     added in ascending order; then the epilogue (bias, residual, ...) in the order stated there;
//   weight gradients: see WeightGradient.
// Precision::kBFloat16 (float elements only) makes pairs of neighbouring terms of a chain, (0, 1),
// (2, 3), ..., an odd last one with 0, and such a chain or block counts pairs where the text says
// terms. Operands are rounded to bfloat16, to nearest, ties to even, denormals to 0. A pair (a0,
// a1), (b0, b1) continues a chain s as AVX512-BF16's vdpbf16ps does:
//     s = fma(a1, b1, s);  s = fma(a0, b0, s)
// each rounded to nearest, ties to even, denormal operands and results being 0 with their sign. The
// sums of blocks and chains, and everything after them, are as in float.

inline constexpr int64_t kReductionBlock = 512;

// A matrix in memory: element (j, k) is data[j * row_stride + k * column_stride].
template <typename T>
struct MatrixView {
  const T* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 1;

  // Returns the view of a row-major matrix [rows, columns].
  static MatrixView RowMajor(const T* data, int64_t rows, int64_t columns) {
    return {data, rows, columns, columns, 1};
  }
  MatrixView Transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

inline constexpr int64_t kPackedPadding = 16;

// A weight matrix repacked for the microkernel: tiles of a few rows, as many as suit the CPU,
// k-major within a tile. Packed once a step (weights do not change within it) and shared by all
// threads.
template <typename T>
class PackedMatrix {
 public:
  // precision: the format in which products multiply: kFloat32 or, for float on a CPU that has it,
  // kBFloat16.
  explicit PackedMatrix(Precision precision = Precision::kFloat32) : precision_(precision) {}

  // Packs A = [blocks[0] | blocks[1] | ...], blocks of equal row count side by side. Reuses memory.
  void Pack(std::span<const MatrixView<T>> blocks);
  // Does part `part` of `parts` of Pack, for threads that share it. REQUIRES: Reshape or an earlier
  // Pack has given the matrix this shape.
  void PackPart(std::span<const MatrixView<T>> blocks, int part, int parts);
  void Reshape(int64_t rows, int64_t columns);
  // Packs two matrices of equal shape so that a tile holds the same rows of both (for
  // GatedUpProjection).
  void PackPair(const MatrixView<T>& first, const MatrixView<T>& second);

  int64_t rows() const { return rows_; }  // rows of A, or of each matrix of a pair
  int64_t columns() const { return columns_; }
  bool paired() const { return paired_; }
  Precision precision() const { return precision_; }
  // Returns the steps of a row's chain: columns, or pairs of columns.
  int64_t steps() const {
    return precision_ == Precision::kBFloat16 ? (columns_ + 1) / 2 : columns_;
  }

  struct Tile {
    int64_t row = 0;     // first row of A
    int64_t height = 0;  // rows in the tile (paired: rows of each matrix)
    int64_t offset = 0;  // offset of the tile's first element in data()
  };
  std::span<const Tile> tiles() const { return tiles_; }
  // Element (row i of the tile, step k) of a tile is data()[offset + k * height + i]; paired:
  // data()[offset + k * 2 * height + i] (first) and data()[offset + k * 2 * height + height + i].
  // kPackedPadding elements may be read beyond the last.
  const T* data() const { return data_.data(); }

 private:
  void Reshape(int64_t rows, int64_t columns, bool paired);

  Precision precision_;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  bool paired_ = false;
  std::vector<Tile> tiles_;
  std::vector<T> data_;
};

enum class Activation { kIdentity, kRelu, kGelu, kSwish, kTanh, kSigmoid, kLeakyRelu };
inline constexpr double kLeakySlope = 0.01;  // of kLeakyRelu below 0, PyTorch's

// The steps applied to the sum s of one element before it is stored, in this order:
//   s = s + bias[j];  derivative = activation'(s);  s = activation(s);  unscaled = s;
//   second_output = s * second_multiplier;  y = s * multiplier + residual (two roundings).
// All views have y's shape; an empty view (data == nullptr) leaves its step out; any of them may
// be the same memory as y.
template <typename T>
struct Epilogue {
  const T* bias = nullptr;
  Activation activation = Activation::kIdentity;
  Panels<T> derivative;
  Panels<T> unscaled;
  Panels<const T> multiplier;
  Panels<const T> residual;
  Panels<T> second_output;
  Panels<const T> second_multiplier;
};

// y[row][j] = epilogue(sum_k A[j][k] x[row][k]); x is the concatenation of the segments' features.
// x: segments with sum of features == a.columns(); y: features == a.rows(). Reads and writes
// padded rows too.
template <typename T>
void MatMul(const PackedMatrix<T>& a, std::span<const Panels<const T>> x, Panels<T> y,
            const Epilogue<T>& epilogue);

// The gated up-projection of eq. 4 of RankElastor as one product:
//   p = W1 x (+ bias1), q = W2 x (+ bias2);  h = act(p) * q;
// and, unless those views are empty: first_factor = q * act'(p) (= dh/dp), second_factor = act(p)
// (= dh/dq). w: PackPair(W1, W2). Views: w.rows() features. bias1 and bias2 may be null.
template <typename T>
void GatedUpProjection(const PackedMatrix<T>& w, Panels<const T> x, const T* bias1, const T* bias2,
                       Activation activation, Panels<T> h, Panels<T> first_factor,
                       Panels<T> second_factor);

// Whether a gradient kernel overwrites its destination or adds to it. kAdd computes destination +
// gradient, the gradient being rounded first: exactly the tree node left + right.
enum class Store { kOverwrite, kAdd };

// dw[j][k] (+)= sum over rows of dy[row][j] * x[row][k]; dw row-major with row stride `stride`.
// Order: within a leaf eight interleaved FMA chains per element; chain c takes the leaf's rows c,
// c+8, c+16, ... ascending from +0 (padded rows included: they add 0); combined
// ((c0+c4)+(c2+c6)) + ((c1+c5)+(c3+c7)). Then over the leaves (core/tensor/pass_leaves.h).
// With kBFloat16, chains run over the leaf's pairs of rows (0, 1), (2, 3), ...: chain c takes pairs
// c, c + 8, ..., padded to a multiple of 16 pairs.
// leaves: not empty.
template <typename T>
void WeightGradient(std::span<const LeafRows> leaves, Panels<const T> dy, Panels<const T> x, T* dw,
                    int64_t stride, Store store, Precision precision = Precision::kFloat32);
// Computes the weight gradient of one leaf.
template <typename T>
void WeightGradient(Panels<const T> dy, Panels<const T> x, T* dw, int64_t stride, Store store,
                    Precision precision = Precision::kFloat32) {
  const LeafRows leaf = {.rows = dy.rows};
  WeightGradient<T>({&leaf, 1}, dy, x, dw, stride, store, precision);
}

// db[j] (+)= sum over a leaf's rows of dy[row][j], in the order of WeightGradient (plain
// additions).
template <typename T>
void BiasGradient(Panels<const T> dy, T* db, Store store);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_MATMUL_H_
