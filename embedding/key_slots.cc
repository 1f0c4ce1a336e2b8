#include "embedding/key_slots.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "core/base/exhausted.h"
#include "core/base/log.h"

namespace elastor {
namespace {

constexpr int kHashBits = 32;
// Entries take 128/3 bytes a key, and what they outgrew once less. A partition takes the least
// block at once, and each of its sizes may waste a page in front of it, but no more than itself. So
// a key that is alone takes two of the least.
constexpr int64_t kKeyBytes = sizeof(int64_t);
constexpr int64_t kIndexBytes = 88;
constexpr int64_t kPartitionBytes = BlockArena::kLeast + (int64_t{64} << 10);
constexpr int64_t kLoneBytes = 2 * BlockArena::kLeast;

int64_t ArenaBytes(int64_t slots, int64_t partitions) {
  return std::min(slots * kIndexBytes + partitions * kPartitionBytes, slots * kLoneBytes);
}

}  // namespace

KeySlots::KeySlots(StoredPartitions partitions, int64_t slots, std::string what, int64_t run)
    : partitions_(std::move(partitions)),
      numbers_(partitions_.index().numbers),
      slots_(std::min<int64_t>(slots, kNone)),
      what_(std::move(what)),
      run_(run),
      keys_(slots_ * kKeyBytes, what_, ZeroPages::Use::kGrowing),
      arena_(ArenaBytes(slots_, std::ssize(partitions_.partitions())), what_) {
  Clear();
}

int64_t KeySlots::MostSlots(int64_t bytes, int64_t row_bytes) {
  const int64_t slot = row_bytes + kKeyBytes;
  return std::max((bytes - kPartitions * kPartitionBytes) / (slot + kIndexBytes),
                  bytes / (slot + kLoneBytes));
}

void KeySlots::Clear() {
  const size_t count = partitions_.partitions().size();
  tables_.assign(count, {no_entries_.data(), 0, kHashBits, 0});
  arena_.Clear();
  cold_.clear();
  cold_.resize(count);
  next_ = 0;
  size_ = 0;
}

bool KeySlots::LookAt(const Entry* line, int64_t key, uint32_t* slot) {
  // Branches on single entries could not be predicted.
  using Words = uint64_t __attribute__((vector_size(32), may_alias));
  const auto* const halves = reinterpret_cast<const Words*>(line);
  const Words keys = __builtin_shufflevector(halves[0], halves[1], 0, 4, 2, 6);
  const Words numbers = __builtin_shufflevector(halves[0], halves[1], 1, 5, 3, 7);
  const auto word = static_cast<uint64_t>(key);
  const Words found = numbers & reinterpret_cast<Words>(keys == Words{word, word, word, word});
  const auto number = static_cast<uint32_t>(found[0] | found[1] | found[2] | found[3]);
  *slot = number - 1;
  return number != 0 || numbers[0] == 0 || numbers[1] == 0 || numbers[2] == 0 || numbers[3] == 0;
}

uint32_t KeySlots::FindFrom(Place place, int64_t key) {
  uint32_t slot;
  while (!LookAt(place.table->entries + place.entry, key, &slot)) place = BehindLine(place);
  return slot;
}

void KeySlots::Find(std::span<const int64_t> keys, uint32_t* slots) const {
  // First the table of a key's partition is fetched, then the key's line, then it is looked for.
  constexpr size_t kLinesAhead = 32;
  constexpr size_t kTablesAhead = 2 * kLinesAhead;
  std::array<uint64_t, kTablesAhead> mixed;
  std::array<Place, kLinesAhead> places;
  const auto fetch_table = [&](size_t i) {
    if (i >= keys.size()) return;
    const uint64_t mix = mixed[i % kTablesAhead] = MixKey(keys[i]);
    __builtin_prefetch(&TableOf(mix));
  };
  const auto fetch_line = [&](size_t i) {
    if (i >= keys.size()) return;
    const Place place = places[i % kLinesAhead] = PlaceOf(mixed[i % kTablesAhead]);
    __builtin_prefetch(place.table->entries + place.entry);
  };
  // Keys whose first line does not tell, as it is full of others.
  std::array<size_t, kLinesAhead> late;
  size_t waiting = 0;
  const auto find_late = [&] {
    for (size_t w = 0; w < waiting; ++w) {
      const int64_t key = keys[late[w]];
      slots[late[w]] = FindFrom(BehindLine(PlaceOf(MixKey(key))), key);
    }
    waiting = 0;
  };
  for (size_t i = 0; i < std::min(kTablesAhead, keys.size()); ++i) fetch_table(i);
  for (size_t i = 0; i < std::min(kLinesAhead, keys.size()); ++i) fetch_line(i);
  for (size_t i = 0; i < keys.size(); ++i) {
    const Place place = places[i % kLinesAhead];
    if (!LookAt(place.table->entries + place.entry, keys[i], slots + i)) {
      __builtin_prefetch(place.table->entries + BehindLine(place).entry);
      late[waiting++] = i;
      if (waiting == late.size()) find_late();
    }
    fetch_line(i + kLinesAhead);
    fetch_table(i + kTablesAhead);
  }
  find_late();
}

void KeySlots::Put(Table* table, int64_t key, uint32_t slot) {
  uint64_t place = FirstEntry(*table, MixKey(key));
  while (!table->entries[place].empty()) place = (place + 1) & table->mask;
  table->entries[place] = {key, slot + 1, 0};
}

void KeySlots::Grow(int64_t number) {
  Table& table = tables_[number];
  const uint64_t count = std::max(kFirstEntries, (table.mask + 1) * 2);
  const auto bytes = [](uint64_t entries) { return static_cast<int64_t>(entries * sizeof(Entry)); };
  Table grown = {static_cast<Entry*>(arena_.Take(bytes(count))), count - 1,
                 kHashBits - std::countr_zero(count), table.size};
  ForEachOf(number, [&](int64_t key, uint32_t slot) { Put(&grown, key, slot); });
  if (table.mask > 0) arena_.Return(table.entries, bytes(table.mask + 1));
  table = grown;
}

uint32_t KeySlots::Insert(int64_t key) {
  const int64_t number = NumberOf(key);
  Table& table = tables_[number];
  if ((table.size + 1) * uint64_t{4} > (table.mask + 1) * 3) Grow(number);
  std::vector<uint32_t>& free = cold_[number].free;
  uint32_t slot;
  if (!free.empty()) {
    slot = free.back();
    free.pop_back();
  } else {
    const int64_t next = next_.fetch_add(run_);
    if (next + run_ > slots_) EndForMemory(static_cast<uint64_t>(next) * sizeof(int64_t), what_);
    slot = static_cast<uint32_t>(next);
    for (int64_t other = next + run_ - 1; other > next; --other) {
      free.push_back(static_cast<uint32_t>(other));
    }
  }
  Put(&table, key, slot);
  ++table.size;
  size_.fetch_add(1, std::memory_order_relaxed);
  Keys()[slot] = key;
  return slot;
}

void KeySlots::Remove(int64_t key) {
  const int64_t number = NumberOf(key);
  Table& table = tables_[number];
  Entry* const entries = table.entries;
  uint64_t hole = FirstEntry(table, MixKey(key));
  while (entries[hole].empty() || entries[hole].key != key) {
    CHECK(!entries[hole].empty()) << what_ << ": no key " << KeyText(key);
    hole = (hole + 1) & table.mask;
  }
  cold_[number].free.push_back(entries[hole].number - 1);
  // Entries behind it move up, unless that would put them in front of their place.
  for (uint64_t next = (hole + 1) & table.mask; !entries[next].empty();
       next = (next + 1) & table.mask) {
    const uint64_t place = FirstEntry(table, MixKey(entries[next].key));
    if (((next - place) & table.mask) < ((next - hole) & table.mask)) continue;
    entries[hole] = entries[next];
    hole = next;
  }
  entries[hole] = {};
  --table.size;
  size_.fetch_sub(1, std::memory_order_relaxed);
}

int64_t KeySlots::memory_bytes() const {
  int64_t bytes = slots_used() * static_cast<int64_t>(sizeof(int64_t));
  for (const Table& table : tables_) {
    if (table.mask > 0) bytes += static_cast<int64_t>((table.mask + 1) * sizeof(Entry));
  }
  for (const Cold& cold : cold_) {
    bytes += static_cast<int64_t>(cold.gone.size()) * kGoneBytes;
    bytes += static_cast<int64_t>(cold.recalled.size()) * kRecalledBytes;
  }
  return bytes;
}

}  // namespace elastor
