#include "embedding/dense_row_store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <utility>

#include "core/base/leaves.h"
#include "core/base/random.h"
#include "glog/logging.h"

namespace elastor {
namespace {

constexpr int64_t kWordBits = 64;

uint64_t* Words(const ZeroPages& bits) { return static_cast<uint64_t*>(bits.data()); }

bool TestBit(const ZeroPages& bits, int64_t index) {
  // Other threads may be setting other bits of the word.
  const std::atomic_ref<uint64_t> word(Words(bits)[index / kWordBits]);
  return (word.load(std::memory_order_relaxed) >> (index % kWordBits)) & 1;
}

void AssignBit(const ZeroPages& bits, int64_t index, bool value) {
  const uint64_t mask = uint64_t{1} << (index % kWordBits);
  std::atomic_ref<uint64_t> word(Words(bits)[index / kWordBits]);
  if (value) {
    word.fetch_or(mask, std::memory_order_relaxed);
  } else {
    word.fetch_and(~mask, std::memory_order_relaxed);
  }
}

int64_t BitBytes(int64_t rows) { return (rows + kWordBits - 1) / kWordBits * 8; }

}  // namespace

template <typename T>
DenseRowStore<T>::DenseRowStore(const TableSpec& table, int64_t slots,
                                std::vector<int64_t> partitions, const Initial& initial)
    : shape_{table.width, slots},
      stddev_(table.init_stddev),
      random_key_(MakeRandomKey(initial.seed, RandomPurpose::kRowInit, HashName(table.name))),
      initial_slot_(initial.slot),
      table_rows_(table.rows),
      partitions_(std::move(partitions)),
      count_(static_cast<int64_t>(partitions_.size())),
      stride_(RowBytes(shape_, sizeof(T)) / static_cast<int64_t>(sizeof(T))) {
  if (count_ < kPartitions) {
    numbers_.assign(kPartitions, -1);
    for (int64_t i = 0; i < count_; ++i) numbers_[partitions_[i]] = static_cast<int32_t>(i);
  }
  for (int64_t p : partitions_) {
    if (p < table.rows) rows_ += (table.rows - p + kPartitions - 1) / kPartitions;
  }
  pages_ = ZeroPages(rows_ * stride_ * static_cast<int64_t>(sizeof(T)),
                     "rows of embedding table '" + table.name + "'");
  present_ = ZeroPages(BitBytes(rows_), table.name);
  marks_ = ZeroPages(BitBytes(rows_), table.name);
}

template <typename T>
int64_t DenseRowStore<T>::IndexOf(int64_t key) const {
  DCHECK(key >= 0 && key < table_rows_) << key;
  if (numbers_.empty()) return key;
  const int32_t number = numbers_[key % kPartitions];
  DCHECK_GE(number, 0) << "key " << key << " belongs to another rank";
  return key / kPartitions * count_ + number;
}

template <typename T>
void DenseRowStore<T>::FindOrCreate(std::span<const int64_t> keys, T** rows) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t index = IndexOf(keys[i]);
    rows[i] = RowAt(index);
    if (TestBit(present_, index)) {
      __builtin_prefetch(rows[i]);
    } else {
      MakeInitial(keys[i], rows[i]);
      AssignBit(present_, index, true);
    }
  }
}

template <typename T>
void DenseRowStore<T>::Find(std::span<const int64_t> keys, T** rows) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t index = IndexOf(keys[i]);
    rows[i] = TestBit(present_, index) ? RowAt(index) : nullptr;
  }
}

template <typename T>
void DenseRowStore<T>::MakeInitial(int64_t key, T* row) const {
  FillNormal(random_key_, static_cast<uint64_t>(key), stddev_, shape_.width, row);
  std::fill_n(row + shape_.width, shape_.slots, initial_slot_);
}

template <typename T>
void DenseRowStore<T>::SetMark(int64_t key, bool marked) {
  AssignBit(marks_, IndexOf(key), marked);
}

template <typename T>
void DenseRowStore<T>::ForEachBlock(
    typename RowStore<T>::Visit visit, int part, int parts,
    const std::function<void(std::span<const int64_t>, T* const*)>& fn) const {
  constexpr int64_t kBlock = 1024;
  std::array<int64_t, kBlock> keys;
  std::array<T*, kBlock> rows;
  int64_t filled = 0;
  const auto flush = [&] {
    if (filled > 0) fn(std::span(keys.data(), filled), rows.data());
    filled = 0;
  };
  const Range words = PartOf(part, parts, BitBytes(rows_) / 8);
  for (int64_t w = words.begin; w < words.end; ++w) {
    uint64_t bits = Words(present_)[w];
    if (visit == RowStore<T>::Visit::kUnmarked) bits &= ~Words(marks_)[w];
    for (; bits != 0; bits &= bits - 1) {
      const int64_t index = w * kWordBits + std::countr_zero(bits);
      keys[filled] = KeyAt(index);
      rows[filled] = RowAt(index);
      if (++filled == kBlock) flush();
    }
  }
  flush();
}

template class DenseRowStore<float>;
template class DenseRowStore<double>;

}  // namespace elastor
