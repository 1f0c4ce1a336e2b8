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
constexpr int64_t kWordBytes = 8;
constexpr int64_t kBlock = 1024;  // rows of a visit

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

int64_t BitBytes(int64_t rows) { return (rows + kWordBits - 1) / kWordBits * kWordBytes; }

// Calls fn(index) for the set bits of [begin, end), ascending.
template <typename Fn>
void ForEachSetBit(const ZeroPages& bits, const Range& indexes, const Fn& fn) {
  for (int64_t begin = indexes.begin; begin < indexes.end;) {
    const int64_t shift = begin % kWordBits;
    const int64_t length = std::min(kWordBits - shift, indexes.end - begin);
    uint64_t word = Words(bits)[begin / kWordBits] >> shift;
    if (length < kWordBits) word &= (uint64_t{1} << length) - 1;
    for (; word != 0; word &= word - 1) fn(begin + std::countr_zero(word));
    begin += length;
  }
}

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
T* DenseRowStore<T>::Claim(int64_t key, bool* created) {
  const int64_t index = IndexOf(key);
  *created = !TestBit(present_, index);
  if (*created) AssignBit(present_, index, true);
  return RowAt(index);
}

template <typename T>
void DenseRowStore<T>::Clear() {
  std::fill_n(Words(present_), BitBytes(rows_) / kWordBytes, 0);
}

template <typename T>
void DenseRowStore<T>::SetMark(int64_t key, bool marked) {
  AssignBit(marks_, IndexOf(key), marked);
}

template <typename T>
void DenseRowStore<T>::ForEachBlock(
    typename RowStore<T>::Visit visit, int part, int parts,
    const std::function<void(std::span<const int64_t>, T* const*)>& fn) const {
  std::array<int64_t, kBlock> keys;
  std::array<T*, kBlock> rows;
  int64_t filled = 0;
  const auto flush = [&] {
    if (filled > 0) fn(std::span(keys.data(), filled), rows.data());
    filled = 0;
  };
  const Range words = PartOf(part, parts, BitBytes(rows_) / kWordBytes);
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

template <typename T>
void DenseRowStore<T>::CountRows(int part, int parts, int64_t* counts) const {
  const Range words = PartOf(part, parts, BitBytes(rows_) / kWordBytes);
  for (int64_t begin = words.begin * kWordBits; begin < words.end * kWordBits;) {
    // The rows of one key / kPartitions: number(p) ascends from 0.
    const int64_t first = begin - begin % count_;
    const int64_t end = std::min({first + count_, words.end * kWordBits, rows_});
    ForEachSetBit(present_, {begin, end},
                  [&](int64_t index) { ++counts[PartitionAt(index - first)]; });
    begin = first + count_;
  }
}

template <typename T>
void DenseRowStore<T>::ForEachOfPartitions(
    const Range& partitions,
    const std::function<void(std::span<const int64_t>, T* const*)>& fn) const {
  const auto number_of = [this](int64_t partition) {
    return std::lower_bound(partitions_.begin(), partitions_.end(), partition) -
           partitions_.begin();
  };
  const Range numbers = {number_of(partitions.begin), number_of(partitions.end)};
  std::array<int64_t, kBlock> keys;
  std::array<T*, kBlock> rows;
  int64_t filled = 0;
  for (int64_t first = 0; first < rows_; first += count_) {
    const int64_t key = first / count_ * kPartitions;
    const Range indexes = {first + numbers.begin, std::min(first + numbers.end, rows_)};
    ForEachSetBit(present_, indexes, [&](int64_t index) {
      keys[filled] = key + PartitionAt(index - first);
      rows[filled] = RowAt(index);
      if (++filled < kBlock) return;
      fn(std::span(keys.data(), filled), rows.data());
      filled = 0;
    });
  }
  if (filled > 0) fn(std::span(keys.data(), filled), rows.data());
}

template class DenseRowStore<float>;
template class DenseRowStore<double>;

}  // namespace elastor
