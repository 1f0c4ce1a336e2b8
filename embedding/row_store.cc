#include "embedding/row_store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <utility>

#include "core/base/leaves.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/sizes.h"

namespace elastor {
namespace {

constexpr int64_t kWordBits = 64;
constexpr int64_t kWordBytes = 8;
constexpr int64_t kBlock = 1024;  // rows of a visit
// Rows whose bits share a page of memory.
constexpr int64_t kGroup = int64_t{4096} * 8;

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

}  // namespace

template <typename T>
RowStore<T>::RowStore(const TableSpec& table, int64_t slots, std::vector<int32_t> partitions,
                      const Initial& initial, NewRows new_rows)
    : shape_{table.width, slots},
      stddev_(table.init_stddev),
      random_key_(MakeRandomKey(initial.seed, RandomPurpose::kRowInit, HashName(table.name))),
      initial_slot_(initial.slot),
      table_rows_(table.rows),
      new_rows_(new_rows),
      partitions_(std::move(partitions)),
      stride_(RowBytes(shape_, sizeof(T)) / static_cast<int64_t>(sizeof(T))) {
  for (const int64_t p : partitions_.partitions()) {
    if (p < table.rows) rows_ += (table.rows - p + kPartitions - 1) / kPartitions;
  }
  pages_ = ZeroPages(SizeProduct({rows_, RowBytes(shape_, sizeof(T))}),
                     "rows of embedding table '" + table.name + "'");
  present_ = ZeroPages(BitBytes(rows_), table.name);
  touched_ = ZeroPages(BitBytes(rows_), table.name);
  unpublished_ = ZeroPages(BitBytes(rows_), table.name);
  groups_ = ZeroPages(BitBytes(rows_ / kGroup + 1), table.name);
  records_ = ZeroPages(SizeProduct({rows_, record_bytes()}), table.name);
}

template <typename T>
int64_t RowStore<T>::IndexOf(int64_t key) const {
  assert(key >= 0 && key < table_rows_);
  const RowIndex index = partitions_.index();
  assert(index.numbers == nullptr || index.numbers[key % kPartitions] >= 0);  // of this rank
  return index.IndexOf(key);
}

template <typename T>
void RowStore<T>::MarkCreated(int64_t index) {
  AssignBit(present_, index, true);
  if (!TestBit(groups_, index / kGroup)) AssignBit(groups_, index / kGroup, true);
  if (new_rows_ == NewRows::kTouched) AssignBit(touched_, index, true);
}

template <typename T>
void RowStore<T>::FindOrCreate(std::span<const int64_t> keys, T** rows) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t index = IndexOf(keys[i]);
    rows[i] = RowAt(index);
    if (TestBit(present_, index)) {
      __builtin_prefetch(rows[i]);
    } else {
      MakeInitial(keys[i], rows[i]);
      MarkCreated(index);
    }
  }
}

template <typename T>
void RowStore<T>::Find(std::span<const int64_t> keys, T** rows) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t index = IndexOf(keys[i]);
    rows[i] = TestBit(present_, index) ? RowAt(index) : nullptr;
  }
}

template <typename T>
void RowStore<T>::MakeInitial(int64_t key, T* row) const {
  FillNormal(random_key_, static_cast<uint64_t>(key), stddev_, shape_.width, row);
  std::fill_n(row + shape_.width, shape_.slots, initial_slot_);
}

template <typename T>
T* RowStore<T>::Claim(int64_t key, bool* created) {
  const int64_t index = IndexOf(key);
  *created = !TestBit(present_, index);
  if (*created) MarkCreated(index);
  return RowAt(index);
}

template <typename T>
void RowStore<T>::Clear() {
  constexpr char kWhat[] = "marks of an embedding table";
  for (ZeroPages* pages : {&present_, &groups_, &records_})
    *pages = ZeroPages();  // before new ones
  present_ = ZeroPages(BitBytes(rows_), kWhat);
  groups_ = ZeroPages(BitBytes(rows_ / kGroup + 1), kWhat);
  records_ = ZeroPages(rows_ * record_bytes(), kWhat);
}

// ---- Touched rows

template <typename T>
void RowStore<T>::SetTouched(int64_t key, bool touched) {
  AssignBit(touched_, IndexOf(key), touched);
}

template <typename T>
void RowStore<T>::SetMarks(const ZeroPages& marks, std::span<const int64_t> keys) {
  for (const int64_t key : keys) {
    const int64_t index = IndexOf(key);
    // An atomic write costs more than the look that mostly spares it.
    if (!TestBit(marks, index)) AssignBit(marks, index, true);
  }
}

template <typename T>
void RowStore<T>::ClearMarks(const ZeroPages& marks) {
  ForEachGroup({0, rows_}, [&marks](const Range& group) {
    const int64_t begin = group.begin / kWordBits;
    std::fill(Words(marks) + begin, Words(marks) + BitBytes(group.end) / kWordBytes, 0);
  });
}

template <typename T>
void RowStore<T>::Touch(std::span<const int64_t> keys) {
  SetMarks(touched_, keys);
}

template <typename T>
void RowStore<T>::ForgetTouched() {
  ClearMarks(touched_);
}

template <typename T>
void RowStore<T>::MarkUnpublished(std::span<const int64_t> keys) {
  SetMarks(unpublished_, keys);
}

template <typename T>
void RowStore<T>::ForgetUnpublished() {
  ClearMarks(unpublished_);
}

template <typename T>
void RowStore<T>::SetRecord(int64_t key, const Digest& record) {
  assert(Records() != nullptr);
  Records()[IndexOf(key)] = record;
}

template <typename T>
void RowStore<T>::AddRecords(RowSet set, int part, int parts, Digest* digest) const {
  const Range words = PartOf(part, parts, BitBytes(rows_) / kWordBytes);
  ForEachIndex(set, {words.begin * kWordBits, words.end * kWordBits},
               [&](int64_t index) { digest->Merge(Records()[index]); });
}

// ---- Visits

template <typename T>
uint64_t RowStore<T>::WordOf(RowSet set, int64_t word) const {
  switch (set) {
    case RowSet::kAll:
      return Words(present_)[word];
    case RowSet::kTouched:
      return Words(touched_)[word];
    case RowSet::kUntouched:
      return Words(present_)[word] & ~Words(touched_)[word];
    case RowSet::kUnpublished:
      return Words(unpublished_)[word];
  }
  return 0;
}

template <typename T>
template <typename Fn>
void RowStore<T>::ForEachGroup(const Range& indexes, const Fn& fn) const {
  for (int64_t begin = indexes.begin; begin < indexes.end;) {
    const int64_t group = begin / kGroup;
    const uint64_t left = Words(groups_)[group / kWordBits] >> (group % kWordBits);
    if (left == 0) {
      begin = (group / kWordBits + 1) * kWordBits * kGroup;
      continue;
    }
    const int64_t next = group + std::countr_zero(left);
    begin = std::max(begin, next * kGroup);
    const int64_t end = std::min((next + 1) * kGroup, indexes.end);
    if (begin < end) fn(Range{begin, end});
    begin = (next + 1) * kGroup;
  }
}

template <typename T>
template <typename Fn>
void RowStore<T>::ForEachIndex(RowSet set, const Range& indexes, const Fn& fn) const {
  ForEachGroup(indexes, [&](const Range& group) { ForEachBit(set, group, fn); });
}

template <typename T>
template <typename Fn>
void RowStore<T>::ForEachBit(RowSet set, const Range& indexes, const Fn& fn) const {
  for (int64_t begin = indexes.begin; begin < indexes.end;) {
    const int64_t shift = begin % kWordBits;
    const int64_t length = std::min(kWordBits - shift, indexes.end - begin);
    uint64_t word = WordOf(set, begin / kWordBits) >> shift;
    if (length < kWordBits) word &= (uint64_t{1} << length) - 1;
    for (; word != 0; word &= word - 1) fn(begin + std::countr_zero(word));
    begin += length;
  }
}

template <typename T>
void RowStore<T>::ForEachBlock(
    RowSet set, int part, int parts,
    const std::function<void(std::span<const int64_t>, T* const*)>& fn) const {
  std::array<int64_t, kBlock> keys;
  std::array<T*, kBlock> rows;
  int64_t filled = 0;
  const auto flush = [&] {
    if (filled > 0) fn(std::span(keys.data(), filled), rows.data());
    filled = 0;
  };
  const RowIndex row_index = partitions_.index();
  const Range words = PartOf(part, parts, BitBytes(rows_) / kWordBytes);
  ForEachIndex(set, {words.begin * kWordBits, words.end * kWordBits}, [&](int64_t index) {
    keys[filled] = row_index.KeyAt(index);
    rows[filled] = RowAt(index);
    if (++filled == kBlock) flush();
  });
  flush();
}

template <typename T>
void RowStore<T>::CountRows(RowSet set, int part, int parts, int64_t* counts) const {
  const RowIndex row_index = partitions_.index();
  const int64_t count = row_index.count;
  const Range words = PartOf(part, parts, BitBytes(rows_) / kWordBytes);
  const Range indexes = {words.begin * kWordBits, std::min(words.end * kWordBits, rows_)};
  ForEachGroup(indexes, [&](const Range& group) {
    for (int64_t begin = group.begin; begin < group.end;) {
      // The rows of one key / kPartitions: number(p) ascends from 0.
      const int64_t first = begin - begin % count;
      const int64_t end = std::min(first + count, group.end);
      ForEachBit(set, {begin, end},
                 [&](int64_t index) { ++counts[row_index.PartitionAt(index - first)]; });
      begin = end;
    }
  });
}

template <typename T>
void RowStore<T>::ForEachOfPartitions(
    RowSet set, const Range& partitions,
    const std::function<void(std::span<const int64_t>, T* const*)>& fn) const {
  const RowIndex row_index = partitions_.index();
  const int64_t count = row_index.count;
  const Range numbers = partitions_.NumbersIn(partitions);
  std::array<int64_t, kBlock> keys;
  std::array<T*, kBlock> rows;
  int64_t filled = 0;
  ForEachGroup({0, rows_}, [&](const Range& group) {
    for (int64_t quotient = group.begin / count; quotient * count < group.end; ++quotient) {
      const int64_t first = quotient * count;
      const Range indexes = {std::max(first + numbers.begin, group.begin),
                             std::min(first + numbers.end, group.end)};
      ForEachBit(set, indexes, [&](int64_t index) {
        keys[filled] = row_index.KeyOf(quotient, index - first);
        rows[filled] = RowAt(index);
        if (++filled < kBlock) return;
        fn(std::span(keys.data(), filled), rows.data());
        filled = 0;
      });
    }
  });
  if (filled > 0) fn(std::span(keys.data(), filled), rows.data());
}

template class RowStore<float>;
template class RowStore<double>;

}  // namespace elastor
