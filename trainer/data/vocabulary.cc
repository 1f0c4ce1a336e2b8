#include "trainer/data/vocabulary.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "core/base/log.h"

namespace elastor {
namespace {

constexpr size_t kFirstSlots = 1024;
constexpr size_t kRadixFrom = 512;  // fewer values are sorted by comparison

uint64_t KeyOf(std::string_view value) {
  if (value.size() > Vocabulary::kShort) return XXH3_64bits(value.data(), value.size());
  uint64_t key = 0;
  if (value.size() == Vocabulary::kShort) {
    std::memcpy(&key, value.data(), Vocabulary::kShort);
  } else {
    for (size_t i = 0; i < value.size(); ++i) key |= uint64_t{uint8_t(value[i])} << (8 * i);
  }
  return key;
}

// Spreads a key over the table: fold the high half in (integers have their bytes there), multiply
// by 2^64 / golden ratio, fold again.
uint64_t Spread(uint64_t key, uint32_t length) {
  key ^= uint64_t{length} << 59;
  const uint64_t product = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15;
  return product ^ (product >> 32);
}

// Least significant byte first, bytes that are equal in all values left out.
void RadixSort(std::vector<SortedValue>* values) {
  uint64_t differ = 0;
  for (const SortedValue& value : *values) differ |= value.prefix ^ values->front().prefix;
  std::vector<SortedValue> other(values->size());
  for (int shift = 0; shift < 64; shift += 8) {
    if ((differ >> shift & 0xff) == 0) continue;
    std::array<uint32_t, 257> begins{};
    for (const SortedValue& value : *values) ++begins[(value.prefix >> shift & 0xff) + 1];
    for (int byte = 0; byte < 256; ++byte) begins[byte + 1] += begins[byte];
    for (const SortedValue& value : *values) other[begins[value.prefix >> shift & 0xff]++] = value;
    values->swap(other);
  }
}

}  // namespace

uint64_t PrefixOf(std::string_view value) {
  return __builtin_bswap64(KeyOf(value.substr(0, Vocabulary::kShort)));
}

Vocabulary::Vocabulary() : slots_(kFirstSlots) {}

int64_t Vocabulary::bytes() const {
  // Growing holds the old table beside the new one of twice the size.
  constexpr size_t kNearGrowth = 8;  // of 10 parts of the values that fit
  const size_t fit = slots_.size() / 2;
  const size_t tables = static_cast<size_t>(size_) * 10 > fit * kNearGrowth ? 3 : 1;
  return static_cast<int64_t>(slots_.size() * sizeof(Slot) * tables + arena_.capacity() +
                              long_begins_.capacity() * sizeof(uint64_t));
}

uint32_t Vocabulary::Add(std::string_view value) {
  return AddKey(KeyOf(value), value, static_cast<uint32_t>(value.size()));
}

uint32_t Vocabulary::AddInteger(uint64_t value) {
  return AddKey(__builtin_bswap64(value), {}, kShort);
}

size_t Vocabulary::SlotOf(uint64_t key, std::string_view value, uint32_t length) const {
  const size_t mask = slots_.size() - 1;
  size_t at = Spread(key, length) & mask;
  for (; slots_[at].number != 0; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.prefix != key || slot.length != length) continue;
    if (length <= kShort || LongValue({key, length, slot.number - 1}) == value) break;
  }
  return at;
}

int64_t Vocabulary::Find(std::string_view value) const {
  const size_t at = SlotOf(KeyOf(value), value, static_cast<uint32_t>(value.size()));
  return int64_t{slots_[at].number} - 1;
}

uint32_t Vocabulary::AddKey(uint64_t key, std::string_view value, uint32_t length) {
  const size_t at = SlotOf(key, value, length);
  if (slots_[at].number != 0) return slots_[at].number - 1;
  CHECK_LT(size_, int64_t{std::numeric_limits<uint32_t>::max()} - 1);
  const uint32_t number = static_cast<uint32_t>(size_++);
  if (length > kShort) {
    long_begins_.resize(size_);
    long_begins_[number] = arena_.size();
    arena_.append(value);
  }
  slots_[at] = {key, length, number + 1};
  if (static_cast<size_t>(size_) * 2 > slots_.size()) Grow();
  return number;
}

void Vocabulary::Prefetch(std::string_view value) const {
  PrefetchKey(KeyOf(value), static_cast<uint32_t>(value.size()));
}

void Vocabulary::PrefetchInteger(uint64_t value) const {
  PrefetchKey(__builtin_bswap64(value), kShort);
}

void Vocabulary::PrefetchKey(uint64_t key, uint32_t length) const {
  __builtin_prefetch(&slots_[Spread(key, length) & (slots_.size() - 1)]);
}

void Vocabulary::Grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number == 0) continue;
    size_t at = Spread(slot.prefix, slot.length) & mask;
    while (slots_[at].number != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

void Vocabulary::Sort() {
  slots_.erase(std::remove_if(slots_.begin(), slots_.end(),
                              [](const Slot& slot) { return slot.number == 0; }),
               slots_.end());
  slots_.shrink_to_fit();
  for (Slot& slot : slots_) {
    --slot.number;
    slot.prefix = slot.length > kShort ? PrefixOf(LongValue(slot)) : __builtin_bswap64(slot.prefix);
  }
  const auto tail_less = [this](const Slot& a, const Slot& b) {
    // Beside a long value with its prefix, a short one is the beginning of it.
    if (a.length <= kShort || b.length <= kShort) return a.length < b.length;
    return LongValue(a) < LongValue(b);
  };
  if (slots_.size() >= kRadixFrom) {
    RadixSort(&slots_);
  } else {
    std::sort(slots_.begin(), slots_.end(),
              [](const Slot& a, const Slot& b) { return a.prefix < b.prefix; });
  }
  for (auto begin = slots_.begin(); begin != slots_.end();) {
    auto end = begin + 1;
    while (end != slots_.end() && end->prefix == begin->prefix) ++end;
    if (end - begin > 1) std::sort(begin, end, tail_less);
    begin = end;
  }
}

}  // namespace elastor
