#include "embedding/row_store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <utility>

#include "core/base/host_memory.h"
#include "core/base/leaves.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/sizes.h"
#include "core/optimizer/sum_of_squares.h"

namespace elastor {
namespace {

constexpr int64_t kWordBits = 64;
constexpr int64_t kWordBytes = 8;
constexpr int64_t kBlock = 1024;  // rows of a visit
// Rows whose bits share a page of memory.
constexpr int64_t kPage = 4096;
constexpr int64_t kGroup = kPage * 8;
// Bytes of rows that a visit reads ahead from a tier.
constexpr int64_t kReadAhead = int64_t{1} << 20;

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

// The rows of a keyed table that the host's memory, and the disk of a tier, may hold. row_bytes: of
// memory beside the rows themselves, which take file_bytes.
int64_t MostRows(int64_t row_bytes, int64_t file_bytes, const RowTier* tier) {
  const HostMemory host = ReadHostMemory();
  if (tier == nullptr) row_bytes += file_bytes;
  // Every table takes this address space.
  constexpr int64_t kTables = 64;
  int64_t rows = std::min(std::min(host.bytes, host.group_bytes) / row_bytes,
                          KeySlots::MostSlots(host.address_space_bytes / kTables, row_bytes));
  if (tier != nullptr) rows = std::min(rows, tier->free_bytes() / file_bytes);
  return std::clamp<int64_t>(rows, 1, KeySlots::kNone - 1);
}

// Returns the inverse of an odd number modulo 2^64: Newton's iteration doubles the bits each time,
// from 3.
uint64_t InverseOf(uint64_t odd) {
  uint64_t inverse = odd;
  for (int bits = 3; bits < 64; bits *= 2) inverse *= 2 - odd * inverse;
  return inverse;
}

template <typename T>
T UseElement(uint64_t use, int64_t i) {
  return static_cast<T>(use >> (16 * i) & 0xffff);
}

}  // namespace

template <typename T>
RowStore<T>::RowStore(const TableSpec& table, int64_t slots, std::vector<int32_t> partitions,
                      const Initial& initial, NewRows new_rows, Published published, RowTier* tier)
    : shape_{table.width, slots},
      stddev_(table.init_stddev),
      random_key_(MakeRandomKey(initial.seed, RandomPurpose::kRowInit, HashName(table.name))),
      initial_slot_(initial.slot),
      keys_(table.keys()),
      keeps_use_(table.keeps_use),
      new_rows_(new_rows),
      notes_published_(published == Published::kNoted),
      partitions_(std::move(partitions)),
      stride_(RowBytes(shape_, sizeof(T)) / static_cast<int64_t>(sizeof(T))),
      stride_shift_(std::countr_zero(static_cast<uint64_t>(stride_))),
      stride_inverse_(InverseOf(static_cast<uint64_t>(stride_) >> stride_shift_)) {
  CHECK(table.keyed || !notes_published_) << table.name << ": no row of an array leaves";
  if (tier != nullptr && table.looked_up()) tier_ = tier;
  if (table.keyed) {
    rows_ =
        MostRows(record_bytes() + kWordBytes + (keeps_use_ ? kWordBytes : 0), row_bytes(), tier_);
    // Rows of a partition share pages of a file, so that a visit by partitions reads a page once.
    const int64_t run = tier_ == nullptr ? 1 : std::max<int64_t>(kPage / row_bytes(), 1);
    slots_ = std::make_unique<KeySlots>(partitions_, rows_,
                                        "keys of embedding table '" + table.name + "'", run);
  } else {
    for (const int64_t p : partitions_.partitions()) rows_ += keys_.RowsIn(p);
  }
  const std::string what = "rows of embedding table '" + table.name + "'";
  if (tier_ != nullptr) {
    region_ = tier_->MakeRegion(SizeProduct({rows_, row_bytes()}), what);
    first_row_ = reinterpret_cast<T*>(region_->data());
  } else {
    pages_ = MakePages(SizeProduct({rows_, row_bytes()}), what);
    first_row_ = static_cast<T*>(pages_.data());
  }
  touched_ = MakePages(BitBytes(rows_), table.name);
  unpublished_ = MakePages(BitBytes(rows_), table.name);
  MakeMarks(table.name);
}

template <typename T>
int64_t RowStore<T>::IndexOf(int64_t key) const {
  assert(keys_.Contains(key));
  if (slots_ != nullptr) {
    const uint32_t slot = slots_->Find(key);
    CHECK_NE(slot, KeySlots::kNone) << "no row of key " << KeyText(key);
    return slot;
  }
  const RowIndex index = partitions_.index();
  assert(index.numbers == nullptr || index.numbers[keys_.PartitionOf(key)] >= 0);  // of this rank
  return index.IndexOf(key);
}

template <typename T>
int64_t RowStore<T>::IndexOfRow(const T* row) const {
  // An exact division by the stride: its odd part has an inverse modulo 2^64.
  const auto offset = static_cast<uint64_t>(row - RowAt(0));
  return static_cast<int64_t>((offset >> stride_shift_) * stride_inverse_);
}

template <typename T>
int64_t RowStore<T>::KeyAt(int64_t index) const {
  return slots_ != nullptr ? slots_->KeyAt(index) : partitions_.index().KeyAt(index);
}

template <typename T>
void RowStore<T>::MarkCreated(int64_t index) {
  AssignBit(present_, index, true);
  if (!TestBit(groups_, index / kGroup)) AssignBit(groups_, index / kGroup, true);
  if (new_rows_ == NewRows::kTouched) AssignBit(touched_, index, true);
}

template <typename T>
void RowStore<T>::FindOrCreate(std::span<const int64_t> keys, T** rows) {
  if (slots_ != nullptr) {
    Find(keys, rows);
    return CreateMissing(keys, rows, 0, 1);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t index = IndexOf(keys[i]);
    rows[i] = RowAt(index);
    if (TestBit(present_, index)) {
      __builtin_prefetch(rows[i]);
    } else {
      WillWrite(index);
      MakeInitial(keys[i], rows[i]);
      MarkCreated(index);
    }
  }
}

template <typename T>
void RowStore<T>::Find(std::span<const int64_t> keys, T** rows) const {
  if (slots_ != nullptr) {
    std::array<uint32_t, kBlock> slots;
    for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
      const size_t count = std::min<size_t>(kBlock, keys.size() - begin);
      slots_->Find(keys.subspan(begin, count), slots.data());
      for (size_t i = 0; i < count; ++i) {
        T*& row = rows[begin + i];
        row = slots[i] == KeySlots::kNone ? nullptr : RowAt(slots[i]);
        __builtin_prefetch(row);
      }
    }
    return;
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t index = IndexOf(keys[i]);
    rows[i] = TestBit(present_, index) ? RowAt(index) : nullptr;
  }
}

template <typename T>
void RowStore<T>::AddPages(std::span<const int64_t> keys, std::vector<RowTier::Page>* pages) const {
  if (region_ == nullptr) return;
  const auto add = [&](int64_t index) {
    region_->AddPages(index * row_bytes(), row_bytes(), pages);
  };
  if (slots_ == nullptr) {
    for (const int64_t key : keys) add(IndexOf(key));
    return;
  }
  std::array<uint32_t, kBlock> slots;
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const size_t count = std::min<size_t>(kBlock, keys.size() - begin);
    slots_->Find(keys.subspan(begin, count), slots.data());
    for (size_t i = 0; i < count; ++i) {
      if (slots[i] != KeySlots::kNone) add(slots[i]);
    }
  }
}

template <typename T>
void RowStore<T>::MakeInitial(int64_t key, T* row) const {
  FillNormal(random_key_, static_cast<uint64_t>(key), stddev_, shape_.width, row);
  std::fill_n(row + shape_.width, shape_.slots, initial_slot_);
}

template <typename T>
T* RowStore<T>::Claim(int64_t key, bool* created) {
  if (slots_ != nullptr) {
    const std::lock_guard lock(slots_->mutex(slots_->NumberOf(key)));
    const uint32_t slot = slots_->Find(key);
    *created = slot == KeySlots::kNone;
    if (*created) return NewRow(key);
    WillWrite(slot);
    return RowAt(slot);
  }
  const int64_t index = IndexOf(key);
  *created = !TestBit(present_, index);
  WillWrite(index);
  if (*created) MarkCreated(index);
  return RowAt(index);
}

template <typename T>
void RowStore<T>::Clear() {
  for (ZeroPages* pages : {&present_, &groups_, &records_, &uses_, &published_})
    *pages = ZeroPages();  // before new ones
  MakeMarks("marks of an embedding table");
  if (slots_ != nullptr) slots_->Clear();
}

// Slots of keyed tables are taken in order.
template <typename T>
ZeroPages RowStore<T>::MakePages(int64_t bytes, std::string_view what) const {
  return {bytes, what,
          slots_ == nullptr ? ZeroPages::Use::kHereAndThere : ZeroPages::Use::kGrowing};
}

template <typename T>
void RowStore<T>::MakeMarks(std::string_view what) {
  present_ = MakePages(BitBytes(rows_), what);
  groups_ = MakePages(BitBytes(rows_ / kGroup + 1), what);
  records_ = MakePages(SizeProduct({rows_, record_bytes()}), what);
  if (keeps_use_) uses_ = MakePages(SizeProduct({rows_, kWordBytes}), what);
  if (notes_published_) published_ = MakePages(BitBytes(rows_), what);
}

// ---- Keyed tables

template <typename T>
T* RowStore<T>::NewRow(int64_t key) {
  const uint32_t slot = slots_->Insert(key);
  WillWrite(slot);
  MarkCreated(slot);
  if (Records() != nullptr) {
    KeySlots::Gone& gone = slots_->gone(slots_->NumberOf(key));
    if (const auto returned = gone.find(static_cast<uint64_t>(key)); returned != gone.end()) {
      Records()[slot] = returned->second;
      gone.erase(returned);
    }
  }
  if (notes_published_ &&
      slots_->recalled(slots_->NumberOf(key)).erase(static_cast<uint64_t>(key)) > 0) {
    AssignBit(published_, slot, true);
  }
  return RowAt(slot);
}

template <typename T>
void RowStore<T>::CreateMissing(std::span<const int64_t> keys, T** rows, int part, int parts) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (rows[i] == nullptr && IsInPart(keys[i], part, parts)) rows[i] = Create(keys[i]);
  }
}

template <typename T>
T* RowStore<T>::Create(int64_t key) {
  T* const row = NewRow(key);
  MakeInitial(key, row);
  return row;
}

template <typename T>
void RowStore<T>::Remove(int64_t key) {
  const int64_t number = slots_->NumberOf(key);
  const std::lock_guard lock(slots_->mutex(number));
  const uint32_t slot = slots_->Find(key);
  if (slot == KeySlots::kNone) return;
  for (const ZeroPages* bits : {&present_, &touched_, &unpublished_}) AssignBit(*bits, slot, false);
  if (keeps_use_) Uses()[slot] = 0;
  if (Records() != nullptr) {
    const Digest record = std::exchange(Records()[slot], Digest());
    if (record != Digest()) slots_->gone(number).emplace(static_cast<uint64_t>(key), record);
  }
  if (notes_published_ && TestBit(published_, slot)) {
    AssignBit(published_, slot, false);
    slots_->recalled(number).insert(static_cast<uint64_t>(key));
  }
  slots_->Remove(key);
}

template <typename T>
void RowStore<T>::SetRowMarks(const ZeroPages& marks, std::span<T* const> rows) {
  for (const T* row : rows) {
    const int64_t index = IndexOfRow(row);
    if (!TestBit(marks, index)) AssignBit(marks, index, true);
  }
}

template <typename T>
void RowStore<T>::TouchRows(std::span<T* const> rows) {
  SetRowMarks(touched_, rows);
}

template <typename T>
void RowStore<T>::MarkRowsUnpublished(std::span<T* const> rows) {
  SetRowMarks(unpublished_, rows);
}

template <typename T>
void RowStore<T>::UseRows(const RowRules& rules, std::span<T* const> rows, const uint32_t* counts,
                          int64_t now) {
  constexpr size_t kLookAhead = 32;
  for (size_t i = 0; i < rows.size(); ++i) {
    __builtin_prefetch(Uses() + IndexOfRow(rows[std::min(i + kLookAhead, rows.size() - 1)]), 1);
    uint64_t& use = Uses()[IndexOfRow(rows[i])];
    use = UseAfter(rules, use, counts == nullptr ? 1 : counts[i], now);
  }
}

template <typename T>
void RowStore<T>::SetUse(const T* row, const T* elements) {
  uint64_t use = 0;
  for (int64_t i = 0; i < kUseElements; ++i) {
    use |= static_cast<uint64_t>(elements[i]) << (16 * i);
  }
  Uses()[IndexOfRow(row)] = use;
}

template <typename T>
void RowStore<T>::BeginUses(uint64_t use, int part, int parts) {
  const Range words = PartOf(part, parts, BitBytes(extent()) / kWordBytes);
  ForEachIndex(RowSet::kAll, {words.begin * kWordBits, words.end * kWordBits}, [&](int64_t index) {
    if (Uses()[index] != 0) return;
    Uses()[index] = use;
    if (new_rows_ == NewRows::kTouched) AssignBit(touched_, index, true);
  });
}

template <typename T>
void RowStore<T>::ForEachScore(const RowRules& rules, int part, int parts,
                               const std::function<void(int64_t key, uint64_t score)>& fn) const {
  const Range words = PartOf(part, parts, BitBytes(extent()) / kWordBytes);
  const Range indexes = {words.begin * kWordBits, words.end * kWordBits};
  const bool by_weights = rules.policy == RowRules::Policy::kL2;
  const auto visit = [&](int64_t index) {
    const uint64_t score =
        by_weights
            ? std::bit_cast<uint64_t>(static_cast<double>(SumOfSquares(RowAt(index), shape_.width)))
            : Uses()[index];
    fn(KeyAt(index), score);
  };
  if (by_weights) return ForEachRowIndex(RowSet::kAll, indexes, visit, [] {});
  ForEachIndex(RowSet::kAll, indexes, visit);
}

template <typename T>
void RowStore<T>::ForEachGone(const Range& partitions,
                              const std::function<void(int64_t key)>& fn) const {
  const Range numbers = slots_->NumbersIn(partitions);
  for (int64_t n = numbers.begin; n < numbers.end; ++n) {
    for (const auto& [key, record] : slots_->gone(n)) fn(static_cast<int64_t>(key));
  }
}

template <typename T>
void RowStore<T>::CountLive(int64_t* counts) const {
  for (int64_t n = 0; n < slots_->partitions(); ++n) {
    counts[slots_->PartitionAt(n)] += slots_->CountOf(n);
  }
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
  ForEachGroup({0, extent()}, [&marks](const Range& group) {
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
  for (int64_t n = 0; slots_ != nullptr && n < slots_->partitions(); ++n) slots_->gone(n).clear();
}

template <typename T>
void RowStore<T>::MarkUnpublished(std::span<const int64_t> keys) {
  SetMarks(unpublished_, keys);
}

template <typename T>
void RowStore<T>::ForgetUnpublished() {
  ClearMarks(unpublished_);
  if (!notes_published_) return;
  ForEachGroup({0, extent()}, [this](const Range& group) {
    const int64_t begin = group.begin / kWordBits;
    std::copy(Words(present_) + begin, Words(present_) + BitBytes(group.end) / kWordBytes,
              Words(published_) + begin);
  });
  for (int64_t n = 0; n < slots_->partitions(); ++n) slots_->recalled(n).clear();
}

template <typename T>
void RowStore<T>::MarkExistingUnpublished(std::span<const int64_t> keys) {
  std::array<T*, kBlock> rows;
  for (; !keys.empty(); keys = keys.subspan(std::min<size_t>(kBlock, keys.size()))) {
    const std::span<const int64_t> some = keys.first(std::min<size_t>(kBlock, keys.size()));
    Find(some, rows.data());
    const auto end = std::remove(rows.begin(), rows.begin() + some.size(), nullptr);
    SetRowMarks(unpublished_, {rows.begin(), end});
  }
}

template <typename T>
void RowStore<T>::NotePublished(int64_t key, bool has_row) {
  if (const uint32_t slot = slots_->Find(key); slot != KeySlots::kNone) {
    return AssignBit(published_, slot, has_row);
  }
  KeySlots::Recalled& recalled = slots_->recalled(slots_->NumberOf(key));
  if (has_row) {
    recalled.insert(static_cast<uint64_t>(key));
  } else {
    recalled.erase(static_cast<uint64_t>(key));
  }
}

template <typename T>
void RowStore<T>::ForEachRecalled(const Range& partitions,
                                  const std::function<void(int64_t key)>& fn) const {
  const Range numbers = slots_->NumbersIn(partitions);
  for (int64_t n = numbers.begin; n < numbers.end; ++n) {
    for (const uint64_t key : slots_->recalled(n)) fn(static_cast<int64_t>(key));
  }
}

template <typename T>
void RowStore<T>::SetRecord(int64_t key, const Digest& record) {
  assert(Records() != nullptr);
  Records()[IndexOf(key)] = record;
}

template <typename T>
void RowStore<T>::AddRecords(RowSet set, int part, int parts, Digest* digest) const {
  const Range words = PartOf(part, parts, BitBytes(extent()) / kWordBytes);
  ForEachIndex(set, {words.begin * kWordBits, words.end * kWordBits},
               [&](int64_t index) { digest->Merge(Records()[index]); });
  if (slots_ == nullptr || (set != RowSet::kAll && set != RowSet::kTouched)) return;
  const Range numbers = PartOf(part, parts, slots_->partitions());
  for (int64_t n = numbers.begin; n < numbers.end; ++n) {
    for (const auto& [key, record] : slots_->gone(n)) digest->Merge(record);
  }
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
template <typename ForEach, typename Fn, typename Done>
void RowStore<T>::WithPages(const ForEach& for_each, const Fn& fn, const Done& done) const {
  if (region_ == nullptr) return for_each(fn);
  std::vector<RowTier::Page> pages;
  for_each([&](int64_t index, const auto&...) {
    region_->AddPages(index * row_bytes(), row_bytes(), &pages);
  });
  const std::vector<RowTier::Page> read = tier_->Fetch(std::move(pages));
  for_each(fn);
  done();
  tier_->Drop(read);
}

template <typename T>
template <typename Fn, typename Done>
void RowStore<T>::ForEachRowIndex(RowSet set, const Range& indexes, const Fn& fn,
                                  const Done& done) const {
  // Rows whose pages are read at once.
  const int64_t rows = region_ == nullptr
                           ? kGroup
                           : std::clamp<int64_t>(kReadAhead / row_bytes(), kWordBits, kGroup);
  ForEachGroup(indexes, [&](const Range& group) {
    for (int64_t begin = group.begin; begin < group.end; begin += rows) {
      const Range part = {begin, std::min(begin + rows, group.end)};
      WithPages([&](const auto& visit) { ForEachBit(set, part, visit); }, fn, done);
    }
  });
}

template <typename T>
class RowStore<T>::Block {
 public:
  using Fn = std::function<void(std::span<const int64_t> keys, T* const* rows)>;
  Block(const RowStore& store, const Fn& fn) : store_(store), fn_(fn) {
    if (store.keeps_use_) copies_.resize(kBlock * store.visited_elements());
  }

  void Add(int64_t key, int64_t index) {
    keys_[filled_] = key;
    rows_[filled_] = store_.keeps_use_ ? Copy(index) : store_.RowAt(index);
    if (++filled_ == kBlock) Flush();
  }
  void Flush() {
    if (filled_ > 0) fn_(std::span(keys_.data(), filled_), rows_.data());
    filled_ = 0;
  }

 private:
  T* Copy(int64_t index) {
    T* const copy = copies_.data() + filled_ * store_.visited_elements();
    T* const use = std::copy_n(store_.RowAt(index), store_.shape_.elements(), copy);
    for (int64_t i = 0; i < kUseElements; ++i) use[i] = UseElement<T>(store_.Uses()[index], i);
    return copy;
  }

  const RowStore& store_;
  const Fn& fn_;
  std::vector<T> copies_;
  std::array<int64_t, kBlock> keys_;
  std::array<T*, kBlock> rows_;
  int64_t filled_ = 0;
};

template <typename T>
void RowStore<T>::ForEachBlock(
    RowSet set, int part, int parts,
    const std::function<void(std::span<const int64_t>, T* const*)>& fn) const {
  Block block(*this, fn);
  const Range words = PartOf(part, parts, BitBytes(extent()) / kWordBytes);
  ForEachRowIndex(
      set, {words.begin * kWordBits, words.end * kWordBits},
      [&](int64_t index) { block.Add(KeyAt(index), index); }, [&] { block.Flush(); });
  block.Flush();
}

template <typename T>
void RowStore<T>::CountRows(RowSet set, int part, int parts, int64_t* counts) const {
  if (slots_ != nullptr) {
    const Range words = PartOf(part, parts, BitBytes(extent()) / kWordBytes);
    return ForEachIndex(set, {words.begin * kWordBits, words.end * kWordBits},
                        [&](int64_t index) { ++counts[keys_.PartitionOf(KeyAt(index))]; });
  }
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
  Block block(*this, fn);
  if (slots_ != nullptr) {
    std::vector<std::pair<uint64_t, uint32_t>> entries;
    const auto visit = [&] {
      WithPages(
          [&](const auto& fn) {
            for (const auto& [key, slot] : entries) fn(slot, static_cast<int64_t>(key));
          },
          [&](int64_t slot, int64_t key) { block.Add(key, slot); }, [&] { block.Flush(); });
      entries.clear();
    };
    for (int64_t n = numbers.begin; n < numbers.end; ++n) {
      const auto begin = static_cast<int64_t>(entries.size());
      slots_->ForEachOf(n, [&](int64_t key, uint32_t slot) {
        if (WordOf(set, slot / kWordBits) >> (slot % kWordBits) & 1)
          entries.emplace_back(key, slot);
      });
      std::sort(entries.begin() + begin, entries.end());
      if (std::ssize(entries) * row_bytes() >= kReadAhead) visit();
    }
    visit();
    return block.Flush();
  }
  ForEachGroup({0, rows_}, [&](const Range& group) {
    const auto for_each = [&](const auto& visit) {
      for (int64_t quotient = group.begin / count; quotient * count < group.end; ++quotient) {
        const int64_t first = quotient * count;
        const Range indexes = {std::max(first + numbers.begin, group.begin),
                               std::min(first + numbers.end, group.end)};
        ForEachBit(set, indexes,
                   [&](int64_t index) { visit(index, row_index.KeyOf(quotient, index - first)); });
      }
    };
    WithPages(
        for_each, [&](int64_t index, int64_t key) { block.Add(key, index); },
        [&] { block.Flush(); });
  });
  block.Flush();
}

template <typename T>
int64_t RowStore<T>::memory_bytes() const {
  const int64_t row = row_bytes() + record_bytes();
  if (slots_ == nullptr) return rows_ * row;
  return extent() * (row + (keeps_use_ ? kWordBytes : 0)) + slots_->memory_bytes();
}

template class RowStore<float>;
template class RowStore<double>;

}  // namespace elastor
