#include <algorithm>

#include "core/cuda/launch.h"
#include "embedding/cuda/columns.h"
#include "embedding/cuda/item_threads.h"
#include "embedding/cuda/row_cache.h"

namespace elastor::cuda {
namespace {

constexpr int kWays = 8;  // lines of a set, and threads of a key
constexpr int kKeysPerBlock = kThreads / kWays;
constexpr int kIndexBits = 48;

__device__ int64_t TagOf(int table, int64_t index) {
  return static_cast<int64_t>(table) << kIndexBits | index;
}

__device__ int64_t SetOf(int64_t tag, int64_t sets) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
  return static_cast<int64_t>(((static_cast<uint64_t>(tag) * kGolden) >> 32) %
                              static_cast<uint64_t>(sets));
}

__device__ float* HostRowOf(const TableView* tables, int64_t tag) {
  return tables[tag >> kIndexBits].RowAt(tag & ((int64_t{1} << kIndexBits) - 1));
}

__device__ int64_t KeyGroup() {
  return static_cast<int64_t>(blockIdx.x) * kKeysPerBlock + threadIdx.x / kWays;
}

// The lanes of this thread's group among the bits of a ballot.
__device__ unsigned GroupBits(unsigned ballot) {
  const int first = static_cast<int>(threadIdx.x) % kWarp / kWays * kWays;
  return (ballot >> first) & ((1u << kWays) - 1);
}

// Strides of a multiple of four elements, padding included: by 16 bytes, as the bus likes them.
__device__ void CopyRow(const float* from, float* to, const TableView& table, int lane) {
  const int elements = table.width + table.slots;
  if (table.stride % 4 != 0) {
    for (int i = lane; i < elements; i += kWays) to[i] = from[i];
    return;
  }
  for (int i = 4 * lane; i < elements; i += 4 * kWays) {
    *reinterpret_cast<float4*>(to + i) = *reinterpret_cast<const float4*>(from + i);
  }
}

// kWays threads an owned key: lines that hold the row are stamped, others' keys are listed.
__global__ void __launch_bounds__(kThreads)
    ProbeKernel(const TableView* tables, OwnedKeys owned, RowCache::Lines lines, int32_t lookup,
                float** rows, KeyList misses) {
  const int64_t j = KeyGroup();
  const int lane = threadIdx.x % kWays;
  const bool valid = j < owned.bound && j < *owned.count;
  int64_t tag = -1;
  if (valid && rows[j] != nullptr) {
    const int t = owned.format.Table(owned.keys[j]);
    if (tables[t].in_host) tag = TagOf(t, tables[t].index.IndexOf(owned.format.Id(owned.keys[j])));
  }
  const int64_t line = tag < 0 ? 0 : SetOf(tag, lines.sets) * kWays + lane;
  const bool hit = tag >= 0 && lines.tags[line] == tag;
  const unsigned hits = GroupBits(__ballot_sync(kWholeWarp, hit));
  if (hit) {
    lines.stamps[line] = lookup;
    rows[j] = lines.rows + line * lines.stride;
  }
  if (tag >= 0 && hits == 0 && lane == 0) {
    misses.keys[atomicAdd(misses.count, 1)] = static_cast<uint32_t>(j);
  }
}

// Claims the line of the set that was used longest ago; -1 when this lookup uses them all. All
// lanes of the warp call it; groups without a row (set < 0) only take part.
__device__ int64_t ClaimLine(const RowCache::Lines& lines, int32_t lookup, int64_t set, int lane) {
  int64_t claimed = -1;
  bool searching = set >= 0;
  while (__ballot_sync(kWholeWarp, searching) != 0) {
    // An atomic read: other groups claim lines of the set meanwhile.
    const int32_t stamp = searching ? atomicAdd(&lines.stamps[set * kWays + lane], 0) : lookup;
    int oldest = stamp == lookup ? INT32_MAX : stamp;
    int way = lane;
    for (int distance = kWays / 2; distance > 0; distance /= 2) {
      const int other = __shfl_xor_sync(kWholeWarp, oldest, distance, kWays);
      const int other_way = __shfl_xor_sync(kWholeWarp, way, distance, kWays);
      if (other < oldest || (other == oldest && other_way < way)) {
        oldest = other;
        way = other_way;
      }
    }
    int won = 0;
    if (searching && oldest != INT32_MAX && lane == 0) {
      won = atomicCAS(&lines.stamps[set * kWays + way], oldest, lookup) == oldest;
    }
    won = __shfl_sync(kWholeWarp, won, 0, kWays);
    if (won) claimed = set * kWays + way;
    if (won || oldest == INT32_MAX) searching = false;
  }
  return claimed;
}

// kWays threads a listed key: a line is cleared and filled. The row put out is not of this lookup,
// so nobody else reads or writes it meanwhile.
__global__ void __launch_bounds__(kThreads)
    FillKernel(const TableView* tables, OwnedKeys owned, RowCache::Lines lines, int32_t lookup,
               float** rows, KeyList misses) {
  const int64_t count = *misses.count;
  const int lane = threadIdx.x % kWays;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kKeysPerBlock;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kKeysPerBlock;
  for (int64_t begin = first; begin < count; begin += step) {  // alike for all threads of a block
    const int64_t i = begin + threadIdx.x / kWays;
    int64_t tag = -1;
    uint32_t j = 0;
    if (i < count) {
      j = misses.keys[i];
      const int t = owned.format.Table(owned.keys[j]);
      tag = TagOf(t, tables[t].index.IndexOf(owned.format.Id(owned.keys[j])));
    }
    const int64_t line = ClaimLine(lines, lookup, tag < 0 ? -1 : SetOf(tag, lines.sets), lane);
    const int64_t old = line < 0 ? -1 : lines.tags[line];
    float* const row = lines.rows + (line < 0 ? 0 : line) * lines.stride;
    if (old >= 0) CopyRow(row, HostRowOf(tables, old), tables[old >> kIndexBits], lane);
    __syncwarp();  // the line is saved, and every lane has read the old tag
    if (line >= 0) {
      CopyRow(HostRowOf(tables, tag), row, tables[tag >> kIndexBits], lane);
      if (lane == 0) {
        lines.tags[line] = tag;
        rows[j] = row;
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    WriteBackKernel(const TableView* tables, RowCache::Lines lines) {
  const int64_t line = KeyGroup();
  if (line >= lines.sets * kWays) return;
  const int64_t tag = lines.tags[line];
  if (tag < 0) return;
  CopyRow(lines.rows + line * lines.stride, HostRowOf(tables, tag), tables[tag >> kIndexBits],
          threadIdx.x % kWays);
}

}  // namespace

RowCache::RowCache(Stream* stream, int64_t bytes, int64_t stride)
    : stream_(stream),
      rows_(stream),
      tags_(stream),
      stamps_(stream),
      misses_(stream),
      count_(stream) {
  if (stride == 0) return;
  lines_.sets = bytes / (kWays * stride * static_cast<int64_t>(sizeof(float)));
  lines_.stride = stride;
  if (empty()) return;
  const int64_t lines = lines_.sets * kWays;
  lines_.rows = rows_.Resize(lines * stride);
  lines_.tags = tags_.Resize(lines);
  lines_.stamps = stamps_.Resize(lines);
  internal::FillBytes(*stream_, lines_.tags, 0xff, lines * sizeof(int64_t));
  FillZero(*stream_, lines_.stamps, lines);
  count_.Resize(1);
}

void RowCache::Fetch(const TableView* tables, const OwnedKeys& owned, float** rows) {
  if (empty() || owned.bound == 0) return;
  ++lookup_;
  const KeyList misses = {misses_.Resize(owned.bound), count_.data()};
  FillZero(*stream_, misses.count, 1);
  const unsigned blocks = Blocks(owned.bound, kKeysPerBlock);
  Launch(*stream_, blocks, kThreads, ProbeKernel, tables, owned, lines_, lookup_, rows, misses);
  Launch(*stream_, std::min(blocks, kListBlocks), kThreads, FillKernel, tables, owned, lines_,
         lookup_, rows, misses);
}

void RowCache::WriteBack(const TableView* tables, After after) {
  if (empty()) return;
  const int64_t lines = lines_.sets * kWays;
  Launch(*stream_, Blocks(lines, kKeysPerBlock), kThreads, WriteBackKernel, tables, lines_);
  if (after == After::kKeep) return;
  internal::FillBytes(*stream_, lines_.tags, 0xff, lines * sizeof(int64_t));
  FillZero(*stream_, lines_.stamps, lines);
}

}  // namespace elastor::cuda
