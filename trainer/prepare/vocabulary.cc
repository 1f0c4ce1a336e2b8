#include "trainer/prepare/vocabulary.h"

#include <glog/logging.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace elastor {
namespace {

constexpr size_t kFirstSlots = 1024;
constexpr size_t kShort = 8;

uint64_t KeyOf(std::string_view value) {
  if (value.size() > kShort) return XXH3_64bits(value.data(), value.size());
  uint64_t key = 0;
  if (value.size() == kShort) {
    std::memcpy(&key, value.data(), kShort);
  } else {
    for (size_t i = 0; i < value.size(); ++i) key |= uint64_t{uint8_t(value[i])} << (8 * i);
  }
  return key;
}

// Spreads a key over the table: multiply by 2^64 / golden ratio, fold the high half in.
uint64_t Spread(uint64_t key, uint32_t length) {
  const uint64_t product = (key ^ (uint64_t{length} << 59)) * 0x9e3779b97f4a7c15;
  return product ^ (product >> 32);
}

}  // namespace

Vocabulary::Vocabulary() : slots_(kFirstSlots) {}

std::string_view Vocabulary::value(uint32_t number) const {
  const uint64_t begin = number == 0 ? 0 : ends_[number - 1];
  return {arena_.data() + begin, ends_[number] - begin};
}

uint32_t Vocabulary::Add(std::string_view value) {
  const uint64_t key = KeyOf(value);
  const uint32_t length = static_cast<uint32_t>(value.size());
  const size_t mask = slots_.size() - 1;
  size_t at = Spread(key, length) & mask;
  for (; slots_[at].number != 0; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.key != key || slot.length != length) continue;
    if (length <= kShort || this->value(slot.number - 1) == value) return slot.number - 1;
  }
  CHECK_LT(ends_.size(), size_t{std::numeric_limits<uint32_t>::max()});
  arena_.append(value);
  ends_.push_back(arena_.size());
  slots_[at] = {key, length, static_cast<uint32_t>(ends_.size())};
  if (ends_.size() * 2 > slots_.size()) Grow();
  return static_cast<uint32_t>(ends_.size() - 1);
}

void Vocabulary::Prefetch(std::string_view value) const {
  const uint64_t at = Spread(KeyOf(value), static_cast<uint32_t>(value.size()));
  __builtin_prefetch(&slots_[at & (slots_.size() - 1)]);
}

void Vocabulary::Grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number == 0) continue;
    size_t at = Spread(slot.key, slot.length) & mask;
    while (slots_[at].number != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

std::vector<uint32_t> Vocabulary::Rank(const std::vector<uint64_t>& counts, uint64_t min_count,
                                       int64_t* rows) const {
  CHECK_EQ(counts.size(), ends_.size());
  const uint64_t least = std::max<uint64_t>(min_count, 1);
  std::vector<uint32_t> kept;
  for (uint32_t number = 0; number < counts.size(); ++number) {
    if (counts[number] >= least && !value(number).empty()) kept.push_back(number);
  }
  std::sort(kept.begin(), kept.end(), [&](uint32_t a, uint32_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : value(a) < value(b);
  });
  std::vector<uint32_t> table_rows(counts.size(), 0);
  for (size_t i = 0; i < kept.size(); ++i) table_rows[kept[i]] = static_cast<uint32_t>(i + 1);
  *rows = static_cast<int64_t>(kept.size()) + 1;
  return table_rows;
}

}  // namespace elastor
