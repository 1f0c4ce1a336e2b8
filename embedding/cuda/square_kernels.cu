#include "core/base/instantiate.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/exact_sum_device.h"
#include "core/cuda/launch.h"
#include "embedding/cuda/columns.h"
#include "embedding/cuda/gradient_kernels.h"
#include "embedding/cuda/gradient_source.h"

namespace elastor::cuda {
namespace {

constexpr int kQuad = 4;         // threads of a row: the lanes of SumOfSquares (core/optimizer)
constexpr int kRowsPerQuad = 4;  // together; then each lane adds one to the sums
constexpr int kQuads = kGroupThreads / kQuad;
constexpr int kRowsPerBlock = kQuads * kRowsPerQuad;

// From lane t's elements 4t ... 4t + 3 to elements t, 4 + t, 8 + t, 12 + t. The whole warp calls
// it.
__device__ void Transpose(int lane, float (&x)[kQuad]) {
  const bool odd = (lane & 1) != 0;
  const float low = __shfl_xor_sync(kWholeWarp, odd ? x[0] : x[1], 1);
  const float high = __shfl_xor_sync(kWholeWarp, odd ? x[2] : x[3], 1);
  const float pairs[kQuad] = {odd ? low : x[0], odd ? x[1] : low, odd ? high : x[2],
                              odd ? x[3] : high};
  const bool upper = (lane & 2) != 0;
  const float first = __shfl_xor_sync(kWholeWarp, upper ? pairs[0] : pairs[2], 2);
  const float second = __shfl_xor_sync(kWholeWarp, upper ? pairs[1] : pairs[3], 2);
  x[0] = upper ? first : pairs[0];
  x[1] = upper ? second : pairs[1];
  x[2] = upper ? pairs[2] : first;
  x[3] = upper ? pairs[3] : second;
}
__device__ void Transpose(int, float (&)[1]) {}

// One lane's part of SumOfSquares.
class SquareLane {
 public:
  // Columns that Transpose dealt out.
  template <int kColumns>
  __device__ void Add(const float (&x)[kColumns]) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const double value = static_cast<double>(x[c]);
      sum_ = fma(value, value, sum_);  // the square is exact: the bits of a product and a sum
    }
  }
  // The row's sum, in all lanes of the quad.
  __device__ double Total() const {
    const double pair = sum_ + __shfl_xor_sync(kWholeWarp, sum_, 1);
    return pair + __shfl_xor_sync(kWholeWarp, pair, 2);
  }

 private:
  double sum_ = 0;
};

// A row that a quad sums: row.Load(column, raw, w) loads columns of it, row.Finish(raw, w, g) makes
// its gradient of them, of zeros 0.
template <typename A>
struct TouchedRow {
  int width = 0;  // 0: no row
  bool primary = false;
  const float* weights = nullptr;
  GradientPlace<A> place;

  template <int kColumns>
  __device__ void Load(const BagGradients<A>& bags, float l2, int column, RawColumns<kColumns>* raw,
                       float (&w)[kColumns]) const {
    LoadRaw(bags, place, column, raw);
    if (l2 != 0) LoadColumns(weights + column, w);
  }
  template <int kColumns>
  __device__ void Finish(const BagGradients<A>& bags, float l2, const RawColumns<kColumns>& raw,
                         const float (&w)[kColumns], float (&g)[kColumns]) const {
    FinishGradient(bags, place, raw, g);
    AddL2(l2, w, g);
  }
};

struct UntouchedRow {
  int width = 0;
  bool primary = false;
  const float* weights = nullptr;

  template <int kColumns>
  __device__ void Load(float, int column, RawColumns<kColumns>*, float (&w)[kColumns]) const {
    LoadColumns(weights + column, w);
  }
  template <int kColumns>
  __device__ void Finish(float l2, const RawColumns<kColumns>&, const float (&w)[kColumns],
                         float (&g)[kColumns]) const {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) g[c] = l2 * w[c];
  }
};

// Sums kRowsPerQuad rows, columns of all of them at a time, so that several loads are in flight.
// The whole block calls it: all rows take as many turns as the widest, with zeros beyond their own
// width, which change no sum. context: what a row wants besides. row_squares[r]: where the sum of
// row r goes too; may be null.
template <int kColumns, bool kWithWeights, typename Row, typename... Context>
__device__ void SumRows(const Row (&rows)[kRowsPerQuad], int widest, const SquaredSums& sums,
                        double* const (&row_squares)[kRowsPerQuad], const Context&... context) {
  const int lane = static_cast<int>(threadIdx.x) % kQuad;
  SquareLane gradients[kRowsPerQuad], weights[kRowsPerQuad];
  for (int column = lane * kColumns; column - lane * kColumns < widest;
       column += kQuad * kColumns) {
    RawColumns<kColumns> raw[kRowsPerQuad];
    float w[kRowsPerQuad][kColumns] = {};
#pragma unroll
    for (int r = 0; r < kRowsPerQuad; ++r) {
      if (column < rows[r].width) rows[r].Load(context..., column, &raw[r], w[r]);
    }
#pragma unroll
    for (int r = 0; r < kRowsPerQuad; ++r) {
      float g[kColumns];
      rows[r].Finish(context..., raw[r], w[r], g);
      Transpose(lane, g);
      gradients[r].Add(g);
      if (!kWithWeights) continue;
      Transpose(lane, w[r]);
      weights[r].Add(w[r]);
    }
  }
  // Lane r adds row r.
  ThreadExactSum gradient_sum, weight_sum;
  double gradient = 0, weight = 0;
  bool primary = false;
#pragma unroll
  for (int r = 0; r < kRowsPerQuad; ++r) {
    const double total = gradients[r].Total();
    const double weight_total = kWithWeights ? weights[r].Total() : 0;
    if (lane != r) continue;
    gradient = total;
    weight = weight_total;
    primary = rows[r].primary;
    if (row_squares[r] != nullptr) *row_squares[r] = total;
  }
  if (primary) gradient_sum.Add(gradient);
  gradient_sum.AddBlockTo(sums.gradients);
  if (!kWithWeights) return;
  if (primary) weight_sum.Add(weight);
  weight_sum.AddBlockTo(sums.weights);
}

// The row of this thread's quad in turn r: a block's rows are kQuads apart.
__device__ int64_t RowOfTurn(int r) {
  return static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + r * kQuads + threadIdx.x / kQuad;
}

// Four threads a row, kRowsPerBlock rows a block. Few enough registers for three blocks at a time,
// with weights two.
template <typename A, int kColumns, bool kWithL2>
__global__ void __launch_bounds__(kGroupThreads, kWithL2 ? 2 : 3)
    AddSquaresKernel(OwnedKeys owned, const TableView* tables, BagGradients<A> bags,
                     GradientArray array, float* const* rows, float l2, int widest, RankInJob job,
                     SquaredSums sums) {
  const int64_t count = min(owned.bound, *owned.count);
  // Loads of all rows at once, then what follows from them.
  uint64_t keys[kRowsPerQuad];
  int64_t sources[kRowsPerQuad] = {};
  const float* weights[kRowsPerQuad] = {};
#pragma unroll
  for (int r = 0; r < kRowsPerQuad; ++r) {
    const int64_t j = RowOfTurn(r);
    keys[r] = 0;
    if (j >= count) continue;
    keys[r] = owned.keys[j];
    sources[r] = SourceOf(array, j);
    if (kWithL2) weights[r] = rows[j];
  }
  TouchedRow<A> quad_rows[kRowsPerQuad];
  double* row_squares[kRowsPerQuad] = {};
#pragma unroll
  for (int r = 0; r < kRowsPerQuad; ++r) {
    const int64_t j = RowOfTurn(r);
    if (j >= count) continue;
    const TableView& table = tables[owned.format.Table(keys[r])];
    quad_rows[r].width = table.width;
    quad_rows[r].primary = table.HasPrimary(owned.format.Id(keys[r]), job.rank, job.ranks);
    quad_rows[r].weights = weights[r];
    if (sums.row_squares != nullptr) row_squares[r] = sums.row_squares + j;
  }
  GradientPlace<A> places[kRowsPerQuad];
  FindGradients(bags, array, sources, places);
#pragma unroll
  for (int r = 0; r < kRowsPerQuad; ++r) quad_rows[r].place = places[r];
  SumRows<kColumns, kWithL2>(quad_rows, widest, sums, row_squares, bags, kWithL2 ? l2 : 0.0f);
}

// The same over rows by index.
template <int kColumns>
__global__ void __launch_bounds__(kGroupThreads)
    AddUntouchedSquaresKernel(TableView table, const uint32_t* marks, float l2, RankInJob job,
                              SquaredSums sums) {
  UntouchedRow quad_rows[kRowsPerQuad];
  double* const row_squares[kRowsPerQuad] = {};
#pragma unroll
  for (int r = 0; r < kRowsPerQuad; ++r) {
    const int64_t index = RowOfTurn(r);
    if (index >= table.stored_rows) continue;
    const uint32_t bits = table.present[index / 32] & ~marks[index / 32];
    if (((bits >> (index % 32)) & 1) == 0) continue;
    const int64_t partition = table.index.PartitionAt(index % table.index.count);
    quad_rows[r] = {table.width, table.HasPrimary(partition, job.rank, job.ranks),
                    table.RowAt(index)};
  }
  SumRows<kColumns, true>(quad_rows, table.width, sums, row_squares, l2);
}

}  // namespace

template <typename A>
void AddSquares(Stream& stream, const OwnedKeys& owned, const TableView* tables,
                const BagGradients<A>& bags, const GradientArray& array, float* const* rows,
                float l2, const VectorShape& shape, const RankInJob& job, const SquaredSums& sums) {
  if (owned.bound == 0) return;
  const auto kernel =
      shape.aligned
          ? (l2 > 0 ? AddSquaresKernel<A, kVector, true> : AddSquaresKernel<A, kVector, false>)
          : (l2 > 0 ? AddSquaresKernel<A, 1, true> : AddSquaresKernel<A, 1, false>);
  Launch(stream, Blocks(owned.bound, kRowsPerBlock), kGroupThreads, kernel, owned, tables, bags,
         array, rows, l2, shape.widest, job, sums);
}

void AddUntouchedSquares(Stream& stream, const TableView& table, const uint32_t* marks, float l2,
                         const VectorShape& shape, const RankInJob& job, const SquaredSums& sums) {
  if (table.stored_rows == 0) return;
  Launch(stream, Blocks(table.stored_rows, kRowsPerBlock), kGroupThreads,
         shape.aligned ? AddUntouchedSquaresKernel<kVector> : AddUntouchedSquaresKernel<1>, table,
         marks, l2, job, sums);
}

ELASTOR_INSTANTIATE(AddSquares, float, BFloat16)

}  // namespace elastor::cuda
