#include "core/base/instantiate.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/launch.h"
#include "embedding/cuda/columns.h"
#include "embedding/cuda/gradient_source.h"
#include "embedding/cuda/update_kernels.h"

namespace elastor::cuda {
namespace {

// What a rule needs besides its columns: RowWiseAdagrad's rate. The first lane of a row brings the
// slot up to date; the whole warp calls it.
template <typename Rule>
__device__ float RateOf(const Rule&, const LaneGroups&, bool, int, float, const double*, float*) {
  return 0;
}
__device__ float RateOf(const RowWiseAdagrad<float>& rule, const LaneGroups& groups, bool active,
                        int width, float scale, const double* sum_of_squares, float* slots) {
  float rate = 0;
  if (active && groups.lane() == 0) rate = rule.Rate(width, scale, *sum_of_squares, slots);
  return __shfl_sync(kWholeWarp, rate, 0, groups.lanes());
}

// Slots of a row's columns in registers, as many as the rule has. They are loaded with the weights
// and the gradient, before the first of these is waited for.
template <typename Rule, int kColumns>
struct ColumnSlots {  // none by column
  __device__ void Load(int, int, const float*) {}
  __device__ void Store(int, int, float*) const {}
};
template <int kColumns>
struct ColumnSlots<Adagrad<float>, kColumns> {
  float a[kColumns];
  __device__ void Load(int, int column, const float* slots) { LoadColumns(slots + column, a); }
  __device__ void Store(int, int column, float* slots) const { StoreColumns(a, slots + column); }
};
template <int kColumns>
struct ColumnSlots<Adam<float>, kColumns> {
  float m[kColumns], v[kColumns];
  __device__ void Load(int width, int column, const float* slots) {
    LoadColumns(slots + column, m);
    LoadColumns(slots + width + column, v);
  }
  __device__ void Store(int width, int column, float* slots) const {
    StoreColumns(m, slots + column);
    StoreColumns(v, slots + width + column);
  }
};

// The rule on columns of a row; g is scaled.
template <int kColumns>
__device__ void Apply(const Sgd<float>& rule, float, const float (&g)[kColumns],
                      float (&w)[kColumns], ColumnSlots<Sgd<float>, kColumns>*) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) rule.Element(g[c], &w[c]);
}

template <int kColumns>
__device__ void Apply(const RowWiseAdagrad<float>& rule, float rate, const float (&g)[kColumns],
                      float (&w)[kColumns], ColumnSlots<RowWiseAdagrad<float>, kColumns>*) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) rule.Element(rate, g[c], &w[c]);
}

template <int kColumns>
__device__ void Apply(const Adagrad<float>& rule, float, const float (&g)[kColumns],
                      float (&w)[kColumns], ColumnSlots<Adagrad<float>, kColumns>* slots) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) rule.Element(g[c], &w[c], &slots->a[c]);
}

template <int kColumns>
__device__ void Apply(const Adam<float>& rule, float, const float (&g)[kColumns],
                      float (&w)[kColumns], ColumnSlots<Adam<float>, kColumns>* slots) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) rule.Element(g[c], &w[c], &slots->m[c], &slots->v[c]);
}

template <int kColumns>
__device__ void ScaleColumns(float scale, float (&x)[kColumns]) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) x[c] = scale * x[c];
}

// Each group of lanes takes one row: it reads the gradient, weights and slots and writes the latter
// two.
template <typename Rule, typename A, int kColumns>
__global__ void __launch_bounds__(kGroupThreads)
    UpdateRowsKernel(Rule rule, OwnedKeys owned, const TableView* tables, BagGradients<A> bags,
                     GradientArray array, float* const* rows, float l2, const double* row_squares,
                     LaneGroups groups, const UpdateGate* gate) {
  if (gate->proceed == 0) return;  // alike for all threads
  const float scale = gate->scale;
  const int64_t j = groups.index();
  const bool active = j < owned.bound && j < *owned.count;
  int width = 0;
  int64_t source[1] = {};
  float* row = nullptr;
  if (active) {
    width = tables[owned.format.Table(owned.keys[j])].width;
    source[0] = SourceOf(array, j);
    row = rows[j];
  }
  GradientPlace<A> place[1];
  FindGradients(bags, array, source, place);
  const float rate = RateOf(rule, groups, active, width, scale, row_squares + j, row + width);
  for (int column = groups.lane() * kColumns; column < width; column += groups.lanes() * kColumns) {
    RawColumns<kColumns> raw;
    float g[kColumns], w[kColumns];
    ColumnSlots<Rule, kColumns> slots;
    LoadRaw(bags, place[0], column, &raw);
    LoadColumns(row + column, w);
    slots.Load(width, column, row + width);
    FinishGradient(bags, place[0], raw, g);
    AddL2(l2, w, g);
    ScaleColumns(scale, g);
    Apply(rule, rate, g, w, &slots);
    StoreColumns(w, row + column);
    slots.Store(width, column, row + width);
  }
}

template <int kColumns>
__global__ void __launch_bounds__(kGroupThreads)
    UpdateUntouchedRowsKernel(Adam<float> rule, TableView table, const uint32_t* marks, float l2,
                              LaneGroups groups, const UpdateGate* gate) {
  if (gate->proceed == 0) return;
  const float scale = gate->scale;
  const int64_t index = groups.index();
  if (index >= table.stored_rows) return;
  const uint32_t bits = table.present[index / 32] & ~marks[index / 32];
  if (((bits >> (index % 32)) & 1) == 0) return;
  float* const row = table.RowAt(index);
  for (int column = groups.lane() * kColumns; column < table.width;
       column += groups.lanes() * kColumns) {
    float g[kColumns], w[kColumns];
    ColumnSlots<Adam<float>, kColumns> slots;
    LoadColumns(row + column, w);
    slots.Load(table.width, column, row + table.width);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) g[c] = l2 * w[c];
    ScaleColumns(scale, g);
    Apply(rule, 0, g, w, &slots);
    StoreColumns(w, row + column);
    slots.Store(table.width, column, row + table.width);
  }
}

}  // namespace

template <typename Rule, typename A>
void UpdateRows(Stream& stream, const Rule& rule, const OwnedKeys& owned, const TableView* tables,
                const BagGradients<A>& bags, const GradientArray& array, float* const* rows,
                float l2, const double* row_squares, const VectorShape& shape,
                const UpdateGate* gate) {
  if (owned.bound == 0) return;
  const LaneGroups groups = LaneGroups::For(shape.widest, shape.columns());
  Launch(stream, Blocks(owned.bound, groups.per_block()), kGroupThreads,
         shape.aligned ? UpdateRowsKernel<Rule, A, kVector> : UpdateRowsKernel<Rule, A, 1>, rule,
         owned, tables, bags, array, rows, l2, row_squares, groups, gate);
}

void UpdateUntouchedRows(Stream& stream, const Adam<float>& rule, const TableView& table,
                         const uint32_t* marks, float l2, const VectorShape& shape,
                         const UpdateGate* gate) {
  if (table.stored_rows == 0) return;
  const LaneGroups groups = LaneGroups::For(table.width, shape.columns());
  Launch(stream, Blocks(table.stored_rows, groups.per_block()), kGroupThreads,
         shape.aligned ? UpdateUntouchedRowsKernel<kVector> : UpdateUntouchedRowsKernel<1>, rule,
         table, marks, l2, groups, gate);
}

ELASTOR_INSTANTIATE_FOR(UpdateRows, Sgd<float>, float)
ELASTOR_INSTANTIATE_FOR(UpdateRows, Sgd<float>, BFloat16)
ELASTOR_INSTANTIATE_FOR(UpdateRows, Adagrad<float>, float)
ELASTOR_INSTANTIATE_FOR(UpdateRows, Adagrad<float>, BFloat16)
ELASTOR_INSTANTIATE_FOR(UpdateRows, RowWiseAdagrad<float>, float)
ELASTOR_INSTANTIATE_FOR(UpdateRows, RowWiseAdagrad<float>, BFloat16)
ELASTOR_INSTANTIATE_FOR(UpdateRows, Adam<float>, float)
ELASTOR_INSTANTIATE_FOR(UpdateRows, Adam<float>, BFloat16)

}  // namespace elastor::cuda
