#include "embedding/key_slots.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "core/base/exhausted.h"
#include "core/base/log.h"

namespace elastor {
namespace {

// The table of a partition without keys.
KeySlots::Entry kNoEntry = {0, KeySlots::kNone, 0};
constexpr int kHashBits = 32;
constexpr uint64_t kFirstEntries = 8;

}  // namespace

KeySlots::KeySlots(StoredPartitions partitions, int64_t slots, std::string what, int64_t run)
    : partitions_(std::move(partitions)),
      numbers_(partitions_.index().numbers),
      slots_(std::min<int64_t>(slots, kNone)),
      what_(std::move(what)),
      run_(run),
      keys_(slots_ * static_cast<int64_t>(sizeof(int64_t)), what_) {
  Clear();
}

void KeySlots::Clear() {
  const size_t count = partitions_.partitions().size();
  tables_.assign(count, {&kNoEntry, 0, kHashBits, 0});
  cold_.clear();
  cold_.resize(count);
  next_ = 0;
}

void KeySlots::Find(std::span<const int64_t> keys, uint32_t* slots) const {
  constexpr size_t kBlock = 32;  // keys whose entries are fetched together
  std::array<uint64_t, kBlock> places;
  std::array<const Table*, kBlock> tables;
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, keys.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t mixed = MixKey(keys[begin + i]);
      tables[i] = &tables_[NumberAt(static_cast<int64_t>(mixed % kPartitions))];
      places[i] = PlaceOf(*tables[i], mixed);
      __builtin_prefetch(tables[i]->entries + places[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      const Entry* const entries = tables[i]->entries;
      uint64_t place = places[i];
      while (entries[place].slot != kNone && entries[place].key != keys[begin + i]) {
        place = (place + 1) & tables[i]->mask;
      }
      slots[begin + i] = entries[place].slot;
    }
  }
}

void KeySlots::Put(Table* table, int64_t key, uint32_t slot) {
  uint64_t place = PlaceOf(*table, MixKey(key));
  while (table->entries[place].slot != kNone) place = (place + 1) & table->mask;
  table->entries[place] = {key, slot, 0};
}

void KeySlots::Grow(int64_t number) {
  Table& table = tables_[number];
  const uint64_t count = std::max(kFirstEntries, (table.mask + 1) * 2);
  auto memory = std::make_unique_for_overwrite<Entry[]>(count);
  std::fill_n(memory.get(), count, kNoEntry);
  Table grown = {memory.get(), count - 1, kHashBits - std::countr_zero(count), table.size};
  ForEachOf(number, [&](int64_t key, uint32_t slot) { Put(&grown, key, slot); });
  table = grown;
  cold_[number].memory = std::move(memory);
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
    if (next + run_ > slots_) EndForMemory(static_cast<uint64_t>(next) * sizeof(Entry), what_);
    slot = static_cast<uint32_t>(next);
    for (int64_t other = next + run_ - 1; other > next; --other) {
      free.push_back(static_cast<uint32_t>(other));
    }
  }
  Put(&table, key, slot);
  ++table.size;
  Keys()[slot] = key;
  return slot;
}

void KeySlots::Remove(int64_t key) {
  const int64_t number = NumberOf(key);
  Table& table = tables_[number];
  Entry* const entries = table.entries;
  uint64_t hole = PlaceOf(table, MixKey(key));
  while (entries[hole].slot == kNone || entries[hole].key != key) {
    CHECK(entries[hole].slot != kNone) << what_ << ": no key " << KeyText(key);
    hole = (hole + 1) & table.mask;
  }
  cold_[number].free.push_back(entries[hole].slot);
  // Entries behind it move up, unless that would put them in front of their place.
  for (uint64_t next = (hole + 1) & table.mask; entries[next].slot != kNone;
       next = (next + 1) & table.mask) {
    const uint64_t place = PlaceOf(table, MixKey(entries[next].key));
    if (((next - place) & table.mask) < ((next - hole) & table.mask)) continue;
    entries[hole] = entries[next];
    hole = next;
  }
  entries[hole] = kNoEntry;
  --table.size;
}

int64_t KeySlots::size() const {
  int64_t size = 0;
  for (const Table& table : tables_) size += table.size;
  return size;
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
