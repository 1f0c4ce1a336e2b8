#include <algorithm>

#include "core/base/random.h"
#include "core/cuda/launch.h"
#include "embedding/cuda/item_threads.h"
#include "embedding/cuda/row_kernels.h"

namespace elastor::cuda {
namespace {

constexpr int kLanes = 8;  // threads of a row
constexpr int kRowsPerBlock = kThreads / kLanes;

__device__ int64_t RowGroup() {
  return static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.x / kLanes;
}

__device__ bool TestBit(const uint32_t* bits, int64_t index) {
  return (bits[index / 32] >> (index % 32)) & 1;
}

__device__ void SetBit(uint32_t* bits, int64_t index) {
  atomicOr(&bits[index / 32], 1u << (index % 32));
}

__device__ void Append(const KeyList& list, int64_t j) {
  list.keys[atomicAdd(list.count, 1)] = static_cast<uint32_t>(j);
}

// FillNormal's numbers, the row's lanes taking every kLanes-th block of four.
__device__ void FillWeights(const TableView& table, int64_t key, int lane, float* row) {
  const auto low = static_cast<uint32_t>(key);
  const auto high = static_cast<uint32_t>(static_cast<uint64_t>(key) >> 32);
  for (int64_t block = lane; 4 * block < table.width; block += kLanes) {
    const PhiloxBlock words = Philox(
        table.random_key, {static_cast<uint32_t>(block),
                           static_cast<uint32_t>(static_cast<uint64_t>(block) >> 32), low, high});
    const NormalPair first = NormalFromBits(words[0], words[1]);
    const NormalPair second = NormalFromBits(words[2], words[3]);
    const double values[4] = {first.first, first.second, second.first, second.second};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (4 * block + i < table.width) {
        row[4 * block + i] = static_cast<float>(values[i] * table.stddev);
      }
    }
  }
}

__device__ void FillSlots(const TableView& table, int lane, float* row) {
  for (int i = lane; i < table.slots; i += kLanes) row[table.width + i] = table.initial_slot;
}

// Each thread takes one owned key.
__global__ void __launch_bounds__(kThreads)
    ClaimRowsKernel(const TableView* tables, OwnedKeys owned, float** rows, KeyList created) {
  const int64_t j = ThreadIndex();
  if (j >= owned.bound || j >= *owned.count) return;
  const TableView& table = tables[owned.format.Table(owned.keys[j])];
  const int64_t index = table.index.IndexOf(owned.format.Id(owned.keys[j]));
  rows[j] = table.RowAt(index);
  if (TestBit(table.present, index)) return;
  SetBit(table.present, index);
  Append(created, j);
}

__global__ void __launch_bounds__(kThreads)
    FindRowsKernel(const TableView* tables, OwnedKeys owned, float** rows, KeyList missing) {
  const int64_t j = ThreadIndex();
  if (j >= owned.bound || j >= *owned.count) return;
  const TableView& table = tables[owned.format.Table(owned.keys[j])];
  const int64_t index = table.index.IndexOf(owned.format.Id(owned.keys[j]));
  const bool present = TestBit(table.present, index);
  rows[j] = present ? table.RowAt(index) : nullptr;
  if (!present) Append(missing, j);
}

// Each kLanes threads make one listed row.
__global__ void __launch_bounds__(kThreads)
    InitialiseRowsKernel(const TableView* tables, OwnedKeys owned, KeyList created,
                         float* const* rows) {
  const int64_t count = *created.count;
  const int lane = threadIdx.x % kLanes;
  for (int64_t i = RowGroup(); i < count; i += static_cast<int64_t>(gridDim.x) * kRowsPerBlock) {
    const uint32_t j = created.keys[i];
    const TableView& table = tables[owned.format.Table(owned.keys[j])];
    FillWeights(table, owned.format.Id(owned.keys[j]), lane, rows[j]);
    FillSlots(table, lane, rows[j]);
  }
}

__global__ void __launch_bounds__(kThreads)
    MakeForgottenRowsKernel(const TableView* tables, OwnedKeys owned, KeyList missing,
                            int64_t count, float* memory, int64_t stride, float** rows) {
  const int64_t i = RowGroup();
  if (i >= count) return;
  const int lane = threadIdx.x % kLanes;
  const uint32_t j = missing.keys[i];
  float* const row = memory + i * stride;
  FillWeights(tables[owned.format.Table(owned.keys[j])], owned.format.Id(owned.keys[j]), lane, row);
  if (lane == 0) rows[j] = row;
}

// Each kLanes threads make one row of the table.
__global__ void __launch_bounds__(kThreads) CreateAllRowsKernel(TableView table) {
  const int64_t index = RowGroup();
  if (index >= table.stored_rows) return;
  const int lane = threadIdx.x % kLanes;
  FillWeights(table, table.index.KeyAt(index), lane, table.RowAt(index));
  FillSlots(table, lane, table.RowAt(index));
  if (lane == 0) SetBit(table.present, index);
}

__global__ void __launch_bounds__(kThreads)
    MarkRowsKernel(const TableView* tables, OwnedKeys owned, const int64_t* first_word,
                   uint32_t* marks) {
  const int64_t j = ThreadIndex();
  if (j >= owned.bound || j >= *owned.count) return;
  const int t = owned.format.Table(owned.keys[j]);
  SetBit(marks + first_word[t], tables[t].index.IndexOf(owned.format.Id(owned.keys[j])));
}

__global__ void __launch_bounds__(kThreads)
    SetRowsKernel(const TableView* tables, const RowToSet* rows, int64_t count,
                  const float* values) {
  const int64_t i = RowGroup();
  const int lane = threadIdx.x % kLanes;
  bool created = false;
  if (i < count) {
    const RowToSet& set = rows[i];
    const TableView& table = tables[set.table];
    float* const row = table.RowAt(set.index);
    created = !TestBit(table.present, set.index);
    const int length = table.width + (set.only_weights ? 0 : table.slots);
    for (int c = lane; c < length; c += kLanes) row[c] = values[set.at + c];
    if (set.only_weights && created) FillSlots(table, lane, row);
  }
  __syncwarp();  // all lanes have read the bit
  if (created && lane == 0) SetBit(tables[rows[i].table].present, rows[i].index);
}

}  // namespace

void ClaimRows(Stream& stream, const TableView* tables, const OwnedKeys& owned, float** rows,
               KeyList created) {
  if (owned.bound == 0) return;
  Launch(stream, Blocks(owned.bound, kThreads), kThreads, ClaimRowsKernel, tables, owned, rows,
         created);
}

void FindRows(Stream& stream, const TableView* tables, const OwnedKeys& owned, float** rows,
              KeyList missing) {
  if (owned.bound == 0) return;
  Launch(stream, Blocks(owned.bound, kThreads), kThreads, FindRowsKernel, tables, owned, rows,
         missing);
}

void InitialiseRows(Stream& stream, const TableView* tables, const OwnedKeys& owned,
                    KeyList created, float* const* rows) {
  if (owned.bound == 0) return;
  const unsigned blocks = std::min(Blocks(owned.bound, kRowsPerBlock), kListBlocks);
  Launch(stream, blocks, kThreads, InitialiseRowsKernel, tables, owned, created, rows);
}

void MakeForgottenRows(Stream& stream, const TableView* tables, const OwnedKeys& owned,
                       KeyList missing, int64_t count, float* memory, int64_t stride,
                       float** rows) {
  if (count == 0) return;
  Launch(stream, Blocks(count, kRowsPerBlock), kThreads, MakeForgottenRowsKernel, tables, owned,
         missing, count, memory, stride, rows);
}

void CreateAllRows(Stream& stream, const TableView& table) {
  if (table.stored_rows == 0) return;
  Launch(stream, Blocks(table.stored_rows, kRowsPerBlock), kThreads, CreateAllRowsKernel, table);
}

void MarkRows(Stream& stream, const TableView* tables, const OwnedKeys& owned,
              const int64_t* first_word, uint32_t* marks) {
  if (owned.bound == 0) return;
  Launch(stream, Blocks(owned.bound, kThreads), kThreads, MarkRowsKernel, tables, owned, first_word,
         marks);
}

void SetRows(Stream& stream, const TableView* tables, const RowToSet* rows, int64_t count,
             const float* values) {
  if (count == 0) return;
  Launch(stream, Blocks(count, kRowsPerBlock), kThreads, SetRowsKernel, tables, rows, count,
         values);
}

}  // namespace elastor::cuda
