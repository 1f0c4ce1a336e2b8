#include "embedding/row_pass.h"

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <vector>

#include "embedding/key_space.h"
#include "embedding/row_rules.h"

namespace elastor {
namespace {

constexpr int kDigitBits = 16;
constexpr int64_t kDigits = int64_t{1} << kDigitBits;
constexpr int kWordDigits = 64 / kDigitBits;

// A row's place in the order in which rows leave.
struct Place {
  uint64_t score = 0;
  uint64_t key = 0;

  // Digit 0 is the highest of the score; behind the score's come the key's.
  uint64_t Digit(int d) const {
    const uint64_t word = d < kWordDigits ? score : key;
    return word >> ShiftOf(d) & (kDigits - 1);
  }
  void SetDigit(int d, uint64_t digit) { (d < kWordDigits ? score : key) |= digit << ShiftOf(d); }
  // Whether the digits in front of d are equal.
  bool BeginsAs(const Place& other, int d) const {
    if (d <= kWordDigits) return d == 0 || (score ^ other.score) >> ShiftOf(d - 1) == 0;
    return score == other.score && (key ^ other.key) >> ShiftOf(d - 1) == 0;
  }
  auto operator<=>(const Place&) const = default;

 private:
  static int ShiftOf(int d) { return (kWordDigits - 1 - d % kWordDigits) * kDigitBits; }
};

// The last place among the first `count` rows of all ranks.
template <typename T>
StatusOr<Place> LastOfFirst(int64_t count, int table, const OwnedTables<T>& tables, int threads,
                            Communicator* communicator) {
  // Leading digits that are 0 everywhere need no histogram.
  std::vector<uint64_t> seen(threads, 0);
  tables.ForEachScore(table, [&](int thread, int64_t, uint64_t score) { seen[thread] |= score; });
  uint64_t bits = 0;
  for (const uint64_t of_thread : seen) bits |= of_thread;
  int64_t width = std::bit_width(bits);
  ELASTOR_RETURN_IF_ERROR(communicator->AllReduceMax(Phase::kScalars, {&width, 1}));
  Place last;
  std::vector<std::vector<int64_t>> parts(threads);
  for (int d = kWordDigits - static_cast<int>((width + kDigitBits - 1) / kDigitBits);
       d < 2 * kWordDigits; ++d) {
    for (std::vector<int64_t>& part : parts) part.assign(kDigits, 0);
    tables.ForEachScore(table, [&](int thread, int64_t key, uint64_t score) {
      const Place place = {score, static_cast<uint64_t>(key)};
      if (place.BeginsAs(last, d)) ++parts[thread][place.Digit(d)];
    });
    std::vector<int64_t>& histogram = parts[0];
    for (int thread = 1; thread < threads; ++thread) {
      for (int64_t i = 0; i < kDigits; ++i) histogram[i] += parts[thread][i];
    }
    ELASTOR_RETURN_IF_ERROR(communicator->AllReduceSum(Phase::kScalars, histogram));
    uint64_t digit = 0;
    while (histogram[digit] < count) count -= histogram[digit++];
    last.SetDigit(d, digit);
    if (histogram[digit] > count) continue;
    // All rows that begin so are among the first.
    for (int rest = d + 1; rest < 2 * kWordDigits; ++rest) last.SetDigit(rest, kDigits - 1);
    break;
  }
  return last;
}

}  // namespace

template <typename T>
StatusOr<int64_t> EvictRows(int table, const RowRules& rules, int64_t now, int64_t live, bool full,
                            OwnedTables<T>* tables, Communicator* communicator) {
  using Policy = RowRules::Policy;
  int64_t evicted = 0;
  const auto remove = [&](const auto& leaves) {
    int64_t removed = tables->RemoveRows(table, leaves);
    ELASTOR_RETURN_IF_ERROR(communicator->AllReduceSum(Phase::kScalars, {&removed, 1}));
    evicted += removed;
    return OkStatus();
  };
  const bool by_limit = rules.by_limit();
  if (by_limit) {
    const uint64_t least = rules.policy == Policy::kL2
                               ? std::bit_cast<uint64_t>(rules.min_l2)
                               : static_cast<uint64_t>(std::max<int64_t>(now - rules.ttl(), 0));
    ELASTOR_RETURN_IF_ERROR(remove([&](int64_t, uint64_t score) { return score < least; }));
  }
  const int64_t surplus = live - evicted - rules.evict_to;
  const bool goes_down = full ? live - evicted > rules.capacity || !by_limit : !by_limit;
  if (!goes_down || surplus <= 0) return evicted;
  ELASTOR_ASSIGN_OR_RETURN(const Place last,
                           LastOfFirst(surplus, table, *tables, tables->threads(), communicator));
  ELASTOR_RETURN_IF_ERROR(remove([&](int64_t key, uint64_t score) {
    return Place{score, static_cast<uint64_t>(key)} <= last;
  }));
  return evicted;
}

template StatusOr<int64_t> EvictRows(int, const RowRules&, int64_t, int64_t, bool,
                                     OwnedTables<float>*, Communicator*);
template StatusOr<int64_t> EvictRows(int, const RowRules&, int64_t, int64_t, bool,
                                     OwnedTables<double>*, Communicator*);

}  // namespace elastor
