#ifndef ELASTOR_EMBEDDING_KEY_SLOTS_H_
#define ELASTOR_EMBEDDING_KEY_SLOTS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/digest.h"
#include "embedding/block_arena.h"
#include "embedding/key_space.h"
#include "embedding/row_index.h"
#include "embedding/zero_pages.h"

namespace elastor {

// Finds the slot of a key among the rows of a keyed table that one rank stores, and gives slots to
// new keys. Each partition has an open-addressing table of its own (linear probing from the begin
// of a cache line, at most three quarters full), so that it grows alone and is listed alone. Slots
// are numbered from 0; those of keys that left are used again, by the same partition.
//
// It also holds keys that left: those since the caller forgot them, with a digest record (*gone*
// keys), and those of which the last publication has rows (*recalled* keys).
//
// Thread-safety: finds may run together. Changes of different partitions may, too.
class KeySlots {
 public:
  static constexpr uint32_t kNone = 0xffffffff;
  // Returns how many slots take `bytes` of address space at most, with row_bytes each besides.
  static int64_t MostSlots(int64_t bytes, int64_t row_bytes);

  // slots: the most slots that there may be; the process ends with the line of a lack of memory,
  // naming `what`, when a key needs one more. run: slots side by side that a partition takes at
  // once.
  KeySlots(StoredPartitions partitions, int64_t slots, std::string what, int64_t run = 1);

  // Sets slots[i] to the slot of keys[i], or to kNone. Keys and entries are fetched ahead.
  void Find(std::span<const int64_t> keys, uint32_t* slots) const;
  uint32_t Find(int64_t key) const { return FindFrom(PlaceOf(MixKey(key)), key); }
  // Fetches the key's entry into the cache.
  void Prefetch(int64_t key) const {
    const Place place = PlaceOf(MixKey(key));
    __builtin_prefetch(place.table->entries + place.entry, 1);
  }
  // Gives the key a slot. REQUIRES: it has none.
  uint32_t Insert(int64_t key);
  // Takes the key's slot away. REQUIRES: it has one.
  void Remove(int64_t key);
  void Clear();

  int64_t KeyAt(int64_t slot) const { return Keys()[slot]; }
  // Returns the number of a key's partition among those stored.
  int64_t NumberOf(int64_t key) const {
    return NumberAt(static_cast<int64_t>(MixKey(key) % kPartitions));
  }
  // Returns the keys of a partition, given by its number.
  int64_t CountOf(int64_t number) const { return tables_[number].size; }
  int64_t size() const { return size_.load(std::memory_order_relaxed); }
  // Returns the slots given out so far: every slot in use is below.
  int64_t slots_used() const { return std::min(next_.load(), slots_); }
  int64_t memory_bytes() const;

  // Calls fn(key, slot) for the keys of a partition, in no order that has a meaning.
  template <typename Fn>
  void ForEachOf(int64_t number, const Fn& fn) const {
    const Table& table = tables_[number];
    for (uint64_t i = 0; i <= table.mask; ++i) {
      if (!table.entries[i].empty()) fn(table.entries[i].key, table.entries[i].number - 1);
    }
  }

  // ---- Gone keys, ascending within a partition.
  using Gone = std::map<uint64_t, Digest>;
  static constexpr int64_t kGoneBytes = 64;  // of memory, of one
  Gone& gone(int64_t number) { return cold_[number].gone; }
  const Gone& gone(int64_t number) const { return cold_[number].gone; }

  // ---- Recalled keys, ascending within a partition.
  using Recalled = std::set<uint64_t>;
  static constexpr int64_t kRecalledBytes = 48;  // of memory, of one
  Recalled& recalled(int64_t number) { return cold_[number].recalled; }
  const Recalled& recalled(int64_t number) const { return cold_[number].recalled; }

  // A lock for changes of a partition that threads may make at the same time.
  std::mutex& mutex(int64_t number) { return mutexes_[number % kMutexes]; }
  int64_t partitions() const { return static_cast<int64_t>(tables_.size()); }
  int64_t PartitionAt(int64_t number) const { return partitions_.partitions()[number]; }
  Range NumbersIn(const Range& range) const { return partitions_.NumbersIn(range); }

 private:
  // A key and its slot.
  struct Entry {
    int64_t key;
    uint32_t number;  // slot + 1; 0 where there is no key
    uint32_t padding;
    bool empty() const { return number == 0; }
  };
  static constexpr uint64_t kLine = 4;  // entries of a cache line
  static constexpr uint64_t kFirstEntries = 2 * kLine;
  struct Table {
    Entry* entries;
    uint64_t mask;  // entries - 1
    int shift;  // a key's line holds (high half of MixKey) >> shift; its entry is there or behind
    uint32_t size;
  };
  struct Cold {
    std::vector<uint32_t> free;
    Gone gone;
    Recalled recalled;
  };
  static constexpr int64_t kMutexes = 64;

  int64_t NumberAt(int64_t partition) const {
    return numbers_ == nullptr ? partition : numbers_[partition];
  }
  // Where the search for a key begins.
  struct Place {
    const Table* table;
    uint64_t entry;
  };
  Place PlaceOf(uint64_t mixed) const {
    const Table& table = TableOf(mixed);
    return {&table, FirstEntry(table, mixed)};
  }
  const Table& TableOf(uint64_t mixed) const {
    return tables_[NumberAt(static_cast<int64_t>(mixed % kPartitions))];
  }
  static uint64_t FirstEntry(const Table& table, uint64_t mixed) {
    return (mixed >> 32) >> table.shift & ~(kLine - 1);
  }
  int64_t* Keys() const { return static_cast<int64_t*>(keys_.data()); }
  static Place BehindLine(const Place& place) {
    return {place.table, (place.entry + kLine) & place.table->mask};
  }
  // Sets *slot to the slot of the key among the entries of a line, or to kNone. Returns whether the
  // key is on no later line.
  static bool LookAt(const Entry* line, int64_t key, uint32_t* slot);
  static uint32_t FindFrom(Place place, int64_t key);
  void Grow(int64_t number);
  void Put(Table* table, int64_t key, uint32_t slot);

  const StoredPartitions partitions_;
  const int32_t* numbers_;  // by partition; null when all are here
  const int64_t slots_;
  const std::string what_;
  const int64_t run_;
  ZeroPages keys_;  // by slot
  BlockArena arena_;
  alignas(kLine * sizeof(Entry)) std::array<Entry, kLine> no_entries_ = {};
  std::atomic<int64_t> next_ = 0;
  std::atomic<int64_t> size_ = 0;
  std::vector<Table> tables_;  // by number
  std::vector<Cold> cold_;
  std::array<std::mutex, kMutexes> mutexes_;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_KEY_SLOTS_H_
