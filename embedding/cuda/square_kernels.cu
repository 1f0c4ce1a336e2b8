#include "core/cuda/bfloat16.h"
#include "core/cuda/exact_sum_device.h"
#include "core/cuda/launch.h"
#include "embedding/cuda/columns.h"
#include "embedding/cuda/gradient_kernels.h"
#include "embedding/cuda/gradient_source.h"

namespace elastor::cuda {
namespace {

constexpr unsigned kWholeWarp = 0xffffffffu;
constexpr int kQuad = 4;         // threads of a row: the lanes of SumOfSquares (row_math.h)
constexpr int kRowsPerQuad = 4;  // one after another; then each lane adds one to the sums
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

// What a quad sums for one row.
struct RowSquares {
  double gradient;
  double weights;
};

// row.Load(column, g, w) gives columns of an active row. The whole warp calls it: all rows take as
// many turns as the widest, with zeros beyond their own width, which change no sum.
template <int kColumns, typename Row>
__device__ RowSquares SumRow(const Row& row, bool active, int width, int widest,
                             bool with_weights) {
  const int lane = static_cast<int>(threadIdx.x) % kQuad;
  SquareLane gradient, weights;
  for (int base = 0; base < widest; base += kQuad * kColumns) {
    float g[kColumns] = {};
    float w[kColumns] = {};
    const int column = base + lane * kColumns;
    if (active && column < width) row.Load(column, g, w);
    Transpose(lane, g);
    gradient.Add(g);
    if (!with_weights) continue;
    Transpose(lane, w);
    weights.Add(w);
  }
  return {gradient.Total(), with_weights ? weights.Total() : 0};
}

// The rows of one thread that count.
class LaneSums {
 public:
  __device__ void Take(int turn, bool accounts, const RowSquares& squares) {
    if (static_cast<int>(threadIdx.x) % kQuad != turn) return;
    accounts_ = accounts;
    squares_ = squares;
  }
  __device__ void AddTo(const SquaredSums& sums, bool with_weights) const {
    AddOne(squares_.gradient, sums.gradients);
    if (with_weights) AddOne(squares_.weights, sums.weights);
  }

 private:
  __device__ void AddOne(double value, DeviceExactSum* sum) const {
    ThreadExactSum thread_sum;
    if (accounts_) thread_sum.Add(value);
    thread_sum.AddWarpTo(sum);
  }

  bool accounts_ = false;
  RowSquares squares_ = {0, 0};
};

template <typename A>
struct TouchedRow {
  const BagGradients<A>& bags;
  const GradientArray& array;
  int64_t source;
  const float* weights;
  float l2;

  template <int kColumns>
  __device__ void Load(int column, float (&g)[kColumns], float (&w)[kColumns]) const {
    LoadGradient(bags, array, source, column, g);
    if (l2 == 0) return;
    LoadColumns(weights + column, w);
    AddL2(l2, w, g);
  }
};

struct UntouchedRow {
  const float* weights;
  float l2;

  template <int kColumns>
  __device__ void Load(int column, float (&g)[kColumns], float (&w)[kColumns]) const {
    LoadColumns(weights + column, w);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) g[c] = l2 * w[c];
  }
};

// Four threads a row, kRowsPerBlock rows a block, kQuads apart.
template <typename A, int kColumns>
__global__ void __launch_bounds__(kGroupThreads)
    AddSquaresKernel(OwnedKeys owned, const TableView* tables, BagGradients<A> bags,
                     GradientArray array, float* const* rows, float l2, int widest,
                     Accounting accounting, SquaredSums sums) {
  const int64_t count = min(owned.bound, *owned.count);
  LaneSums lane_sums;
  for (int turn = 0; turn < kRowsPerQuad; ++turn) {
    const int64_t j =
        static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + turn * kQuads + threadIdx.x / kQuad;
    const bool active = j < count;
    TouchedRow<A> row = {bags, array, 0, nullptr, l2};
    int width = 0;
    bool accounts = false;
    if (active) {
      const uint64_t key = owned.keys[j];
      const TableView& table = tables[owned.format.Table(key)];
      width = table.width;
      accounts = table.Accounts(owned.format.Id(key), accounting.rank, accounting.ranks);
      row.source = SourceOf(array, j);
      row.weights = rows[j];
    }
    const RowSquares squares = SumRow<kColumns>(row, active, width, widest, l2 != 0);
    if (active && sums.row_squares != nullptr && threadIdx.x % kQuad == 0) {
      sums.row_squares[j] = squares.gradient;
    }
    lane_sums.Take(turn, accounts, squares);
  }
  lane_sums.AddTo(sums, l2 > 0);
}

// The same over rows by index.
template <int kColumns>
__global__ void __launch_bounds__(kGroupThreads)
    AddUntouchedSquaresKernel(TableView table, const int32_t* partitions, const uint32_t* marks,
                              float l2, Accounting accounting, SquaredSums sums) {
  LaneSums lane_sums;
  for (int turn = 0; turn < kRowsPerQuad; ++turn) {
    const int64_t index =
        static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + turn * kQuads + threadIdx.x / kQuad;
    bool active = false;
    bool accounts = false;
    if (index < table.stored_rows) {
      const uint32_t bits = table.present[index / 32] & ~marks[index / 32];
      active = (bits >> (index % 32)) & 1;
      const int64_t partition =
          partitions == nullptr ? index % kPartitions : partitions[index % table.partitions];
      accounts = active && table.Accounts(partition, accounting.rank, accounting.ranks);
    }
    const UntouchedRow row = {active ? table.RowAt(index) : nullptr, l2};
    const RowSquares squares = SumRow<kColumns>(row, active, table.width, table.width, true);
    lane_sums.Take(turn, accounts, squares);
  }
  lane_sums.AddTo(sums, true);
}

}  // namespace

template <typename A>
void AddSquares(Stream& stream, const OwnedKeys& owned, const TableView* tables,
                const BagGradients<A>& bags, const GradientArray& array, float* const* rows,
                float l2, const VectorShape& shape, const Accounting& accounting,
                const SquaredSums& sums) {
  if (owned.bound == 0) return;
  Launch(stream, Blocks(owned.bound, kRowsPerBlock), kGroupThreads,
         shape.aligned ? AddSquaresKernel<A, kVector> : AddSquaresKernel<A, 1>, owned, tables, bags,
         array, rows, l2, shape.widest, accounting, sums);
}

void AddUntouchedSquares(Stream& stream, const TableView& table, const int32_t* partitions,
                         const uint32_t* marks, float l2, const VectorShape& shape,
                         const Accounting& accounting, const SquaredSums& sums) {
  if (table.stored_rows == 0) return;
  Launch(stream, Blocks(table.stored_rows, kRowsPerBlock), kGroupThreads,
         shape.aligned ? AddUntouchedSquaresKernel<kVector> : AddUntouchedSquaresKernel<1>, table,
         partitions, marks, l2, accounting, sums);
}

#define ELASTOR_INSTANTIATE(A)                                                                  \
  template void AddSquares(Stream&, const OwnedKeys&, const TableView*, const BagGradients<A>&, \
                           const GradientArray&, float* const*, float, const VectorShape&,      \
                           const Accounting&, const SquaredSums&);
ELASTOR_INSTANTIATE(float)
ELASTOR_INSTANTIATE(BFloat16)
#undef ELASTOR_INSTANTIATE

}  // namespace elastor::cuda
