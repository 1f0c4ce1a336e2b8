#include "trainer/score/keyed_rows.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <utility>

#include "core/base/exhausted.h"
#include "embedding/key_space.h"
#include "embedding/zero_pages.h"

namespace elastor {
namespace {

// A word of the index: nothing yet, a key that was removed, or a row's number above these.
constexpr uint32_t kNothing = 0;
constexpr uint32_t kRemoved = 1;
constexpr uint32_t kFirstRow = 2;
constexpr int64_t kMostRows = 0xffffffff - kFirstRow;

constexpr uint64_t kFewestPlaces = 16;
constexpr char kWhat[] = "embedding rows of a model";

}  // namespace

// The key stands in front of its row. Chunk c has twice the rows of chunk c - 1, so that addresses
// hold while chunks are added.
struct KeyedRows::Rows {
  static constexpr int kFirstBits = 10;
  static constexpr int kChunks = 32 - kFirstBits + 1;

  explicit Rows(int64_t width) : stride((width + 1) / 2 + 1) {}

  float* At(int64_t number) const {
    const int chunk = ChunkOf(number);
    const uint64_t before = ((uint64_t{1} << chunk) - 1) << kFirstBits;
    auto* const words = static_cast<int64_t*>(chunks[chunk].data());
    return reinterpret_cast<float*>(words + (static_cast<uint64_t>(number) - before) * stride + 1);
  }
  // A finder may look at the key of a row that is being used again.
  static std::atomic_ref<int64_t> KeyOf(float* row) {
    return std::atomic_ref<int64_t>(*(reinterpret_cast<int64_t*>(row) - 1));
  }
  // Takes chunks for so many rows that no key has.
  void Reserve(int64_t rows) {
    const int64_t last = next + rows - std::ssize(free) - 1;
    if (last < next) return;
    if (last >= kMostRows) EndForMemory(static_cast<uint64_t>(last) * stride * 8, kWhat);
    for (int chunk = 0; chunk <= ChunkOf(last); ++chunk) {
      if (chunks[chunk].data() != nullptr) continue;
      chunks[chunk] = ZeroPages(static_cast<int64_t>((stride * 8) << (chunk + kFirstBits)), kWhat);
    }
  }
  // Returns the number of a row that no key has.
  int64_t Take() {
    if (free.empty()) {
      Reserve(1);
      return next++;
    }
    const int64_t number = free.back();
    free.pop_back();
    return number;
  }
  static int ChunkOf(int64_t number) {
    return std::bit_width((static_cast<uint64_t>(number) >> kFirstBits) + 1) - 1;
  }

  const uint64_t stride;  // in words of 8 bytes
  std::array<ZeroPages, kChunks> chunks;
  int64_t next = 0;  // rows that were ever used
  int64_t size = 0;
  std::vector<uint32_t> free;
};

struct KeyedRows::Index {
  explicit Index(uint64_t places)
      : mask(places - 1),
        shift(64 - std::countr_zero(places)),
        pages(static_cast<int64_t>(places * sizeof(uint32_t)), "keys of a model") {}

  std::atomic_ref<uint32_t> Word(uint64_t place) const {
    return std::atomic_ref<uint32_t>(static_cast<uint32_t*>(pages.data())[place]);
  }
  uint64_t PlaceOf(int64_t key) const { return MixKey(key) >> shift; }
  // At most three quarters are in use, so that a search ends soon.
  bool HasRoom(uint64_t keys) const { return (used + keys) * 4 <= (mask + 1) * 3; }

  const uint64_t mask;
  const int shift;
  ZeroPages pages;
  uint64_t used = 0;  // words that are not kNothing
};

KeyedRows::KeyedRows(int64_t width)
    : rows_(std::make_shared<Rows>(width)), index_(std::make_shared<Index>(kFewestPlaces)) {}
KeyedRows::~KeyedRows() = default;
KeyedRows::KeyedRows(const KeyedRows& other) = default;

int64_t KeyedRows::size() const { return rows_->size; }

float* KeyedRows::FindAt(uint64_t place, int64_t key) const {
  for (;; place = (place + 1) & index_->mask) {
    const uint32_t word = index_->Word(place).load(std::memory_order_acquire);
    if (word == kNothing) return nullptr;
    if (word == kRemoved) continue;
    float* const row = rows_->At(word - kFirstRow);
    if (Rows::KeyOf(row).load(std::memory_order_relaxed) == key) return row;
  }
}

void KeyedRows::Find(std::span<const int64_t> keys, float** rows) const {
  constexpr size_t kBlock = 32;  // keys whose words, then rows, are fetched together
  std::array<uint64_t, kBlock> places;
  const Index& index = *index_;
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, keys.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      places[i] = index.PlaceOf(keys[begin + i]);
      __builtin_prefetch(static_cast<uint32_t*>(index.pages.data()) + places[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      const uint32_t word = index.Word(places[i]).load(std::memory_order_acquire);
      if (word >= kFirstRow) __builtin_prefetch(rows_->At(word - kFirstRow) - 2);
    }
    for (size_t i = 0; i < count; ++i) rows[begin + i] = FindAt(places[i], keys[begin + i]);
  }
}

std::vector<int64_t> KeyedRows::Keys() const {
  std::vector<int64_t> keys;
  keys.reserve(rows_->size);
  for (uint64_t place = 0; place <= index_->mask; ++place) {
    const uint32_t word = index_->Word(place).load(std::memory_order_relaxed);
    if (word < kFirstRow) continue;
    keys.push_back(Rows::KeyOf(rows_->At(word - kFirstRow)).load(std::memory_order_relaxed));
  }
  return keys;
}

void KeyedRows::Rebuild(uint64_t keys) {
  auto rebuilt = std::make_shared<Index>(std::max(kFewestPlaces, std::bit_ceil(keys * 2)));
  for (uint64_t from = 0; from <= index_->mask; ++from) {
    const uint32_t word = index_->Word(from).load(std::memory_order_relaxed);
    if (word < kFirstRow) continue;
    const int64_t key = Rows::KeyOf(rows_->At(word - kFirstRow)).load(std::memory_order_relaxed);
    uint64_t place = rebuilt->PlaceOf(key);
    while (rebuilt->Word(place).load(std::memory_order_relaxed) != kNothing) {
      place = (place + 1) & rebuilt->mask;
    }
    rebuilt->Word(place).store(word, std::memory_order_relaxed);
    ++rebuilt->used;
  }
  index_ = std::move(rebuilt);
}

void KeyedRows::Reserve(int64_t rows, int64_t removals) {
  if (!index_->HasRoom(static_cast<uint64_t>(rows))) {
    Rebuild(static_cast<uint64_t>(rows_->size + rows));
  }
  rows_->Reserve(rows);
  std::vector<uint32_t>& free = rows_->free;
  const size_t most = free.size() + static_cast<size_t>(removals);
  if (most > free.capacity()) free.reserve(std::max(most, free.capacity() * 2));
}

float* KeyedRows::Claim(int64_t key) {
  if (float* const found = FindAt(index_->PlaceOf(key), key)) return found;
  if (!index_->HasRoom(1)) Rebuild(static_cast<uint64_t>(rows_->size + 1));
  const int64_t number = rows_->Take();
  float* const row = rows_->At(number);
  Rows::KeyOf(row).store(key, std::memory_order_relaxed);
  uint64_t place = index_->PlaceOf(key);
  while (index_->Word(place).load(std::memory_order_relaxed) >= kFirstRow) {
    place = (place + 1) & index_->mask;
  }
  if (index_->Word(place).load(std::memory_order_relaxed) == kNothing) ++index_->used;
  index_->Word(place).store(static_cast<uint32_t>(number) + kFirstRow, std::memory_order_release);
  ++rows_->size;
  return row;
}

void KeyedRows::Remove(int64_t key) {
  for (uint64_t place = index_->PlaceOf(key);; place = (place + 1) & index_->mask) {
    const uint32_t word = index_->Word(place).load(std::memory_order_relaxed);
    if (word == kNothing) return;
    if (word == kRemoved) continue;
    const uint32_t number = word - kFirstRow;
    if (Rows::KeyOf(rows_->At(number)).load(std::memory_order_relaxed) != key) continue;
    rows_->free.push_back(number);
    index_->Word(place).store(kRemoved, std::memory_order_relaxed);
    --rows_->size;
    return;
  }
}

}  // namespace elastor
