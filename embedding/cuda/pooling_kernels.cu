#include "core/base/instantiate.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/launch.h"
#include "embedding/cuda/columns.h"
#include "embedding/cuda/pooling_kernels.h"

namespace elastor::cuda {
namespace {

constexpr int kAhead = 4;  // loads in flight

// A bag of one id, found: where its row lies (null: zeros) and where it goes.
template <typename A>
struct Move {
  const float* row;
  A* to;
  int width;
};

// kAhead bags, `step` apart; loads of all of them are under way together.
template <typename A>
__device__ void FindMoves(const BagRows& bags, const int32_t* local_row, int64_t first,
                          int64_t step, int64_t items, A* e, int64_t row_stride,
                          Move<A> (&moves)[kAhead]) {
  int64_t occurrences[kAhead];  // -1: padding, or no bag
  uint32_t uniques[kAhead];
#pragma unroll
  for (int a = 0; a < kAhead; ++a) {
    const int64_t item = first + a * step;
    const int64_t device_row = item / bags.fields;
    const int64_t f = item - device_row * bags.fields;
    const FieldView& field = bags.field_views[f];
    moves[a] = {nullptr, e + device_row * row_stride + field.first_feature,
                item < items ? field.width : 0};
    const int64_t row = item < items ? local_row[device_row] : -1;
    occurrences[a] = row < 0 ? -1 : row * bags.fields + f;
  }
#pragma unroll
  for (int a = 0; a < kAhead; ++a) {
    uniques[a] = occurrences[a] < 0 ? 0 : bags.unique_of[occurrences[a]];
  }
#pragma unroll
  for (int a = 0; a < kAhead; ++a) {
    if (occurrences[a] >= 0) moves[a].row = bags.rows_of_ids[uniques[a]];
  }
}

// A group of lanes kAhead bags, a block's groups apart: reads a row, writes its features.
template <typename A, int kColumns>
__global__ void __launch_bounds__(kGroupThreads)
    CopySingleIdBagsKernel(BagRows bags, const int32_t* local_row, int64_t items, LaneGroups groups,
                           int widest, A* e, int64_t row_stride) {
  const int64_t per_block = kGroupThreads >> groups.shift;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * per_block * kAhead + groups.in_block();
  Move<A> moves[kAhead];
  FindMoves(bags, local_row, first, per_block, items, e, row_stride, moves);
  for (int column = groups.lane() * kColumns; column < widest;
       column += groups.lanes() * kColumns) {
    float values[kAhead][kColumns];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) values[a][c] = 0;
      if (moves[a].row != nullptr && column < moves[a].width) {
        LoadColumns(moves[a].row + column, values[a]);
      }
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (column < moves[a].width) StoreColumns(values[a], moves[a].to + column);
    }
  }
}

// The sum of occurrences [begin, end): a copy of the first, then the others added in order.
template <int kColumns>
__device__ void SumRows(const BagRows& bags, int64_t begin, int64_t end, int column,
                        float (&sum)[kColumns]) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) sum[c] = 0;
  for (int64_t o = begin; o < end; o += kAhead) {
    float values[kAhead][kColumns];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (o + a < end) LoadColumns(bags.rows_of_ids[bags.unique_of[o + a]] + column, values[a]);
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (o + a >= end) continue;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        sum[c] = o + a == begin ? values[a][c] : sum[c] + values[a][c];
      }
    }
  }
}

// Each group of lanes pools one bag.
template <typename A, int kColumns>
__global__ void __launch_bounds__(kGroupThreads)
    PoolBagsKernel(BagRows bags, const int32_t* local_row, int64_t items, LaneGroups groups, A* e,
                   int64_t row_stride) {
  const int64_t item = groups.index();
  if (item >= items) return;
  const int64_t device_row = item / bags.fields;
  const int64_t f = item - device_row * bags.fields;
  const FieldView field = bags.field_views[f];
  const int64_t row = local_row[device_row];
  int64_t begin = 0, end = 0;
  if (row >= 0) {
    begin = bags.offsets[row * bags.fields + f];
    end = bags.offsets[row * bags.fields + f + 1];
  }
  const bool scaled = field.mean && end - begin > 1;
  const float scale = scaled ? 1.0f / static_cast<float>(end - begin) : 1.0f;
  A* const to = e + device_row * row_stride + field.first_feature;
  for (int column = groups.lane() * kColumns; column < field.width;
       column += groups.lanes() * kColumns) {
    float sum[kColumns];
    SumRows(bags, begin, end, column, sum);
    if (scaled) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sum[c] *= scale;
    }
    StoreColumns(sum, to + column);
  }
}

}  // namespace

template <typename A>
void PoolBags(Stream& stream, const BagRows& bags, const int32_t* local_row, int64_t device_rows,
              const VectorShape& shape, A* e, int64_t row_stride) {
  const int64_t items = device_rows * bags.fields;
  if (items == 0) return;
  const LaneGroups groups = LaneGroups::For(shape.widest, shape.columns());
  if (bags.offsets == nullptr) {
    Launch(stream, Blocks(items, groups.per_block() * kAhead), kGroupThreads,
           shape.aligned ? CopySingleIdBagsKernel<A, kVector> : CopySingleIdBagsKernel<A, 1>, bags,
           local_row, items, groups, shape.widest, e, row_stride);
  } else {
    Launch(stream, Blocks(items, groups.per_block()), kGroupThreads,
           shape.aligned ? PoolBagsKernel<A, kVector> : PoolBagsKernel<A, 1>, bags, local_row,
           items, groups, e, row_stride);
  }
}

ELASTOR_INSTANTIATE(PoolBags, float, BFloat16)

}  // namespace elastor::cuda
