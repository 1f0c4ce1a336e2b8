#include "trainer/prepare/values/distinct_keys.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/canonical_math.h"
#include "embedding/key_space.h"

namespace elastor {
namespace {

constexpr int kIndexBits = 14;
constexpr int kRankBits = 64 - kIndexBits;  // registers hold 0 to kRankBits + 1
constexpr size_t kRegisters = size_t{1} << kIndexBits;

// x + sum over k >= 1 of x^(2^k) 2^(k-1)
double Sigma(double x) {
  if (x == 1) return std::numeric_limits<double>::infinity();
  double sum = x, before = -1;
  for (double weight = 1; sum != before; weight += weight) {
    x *= x;
    before = sum;
    sum += x * weight;
  }
  return sum;
}

// (1 - x - sum over k >= 1 of (1 - x^(2^-k))^2 2^-k) / 3
double Tau(double x) {
  if (x == 0 || x == 1) return 0;
  double sum = 1 - x, before = -1;
  for (double weight = 0.5; sum != before; weight /= 2) {
    x = std::sqrt(x);
    before = sum;
    sum -= (1 - x) * (1 - x) * weight;
  }
  return sum / 3;
}

}  // namespace

void DistinctKeys::Add(uint64_t key) {
  if (registers_.empty()) registers_.assign(kRegisters, 0);
  const uint64_t hash = MixKey(static_cast<int64_t>(key));  // keys may be consecutive numbers
  const int rank = std::min(std::countl_zero(hash << kIndexBits), kRankBits) + 1;
  uint8_t& kept = registers_[hash >> kRankBits];
  kept = std::max(kept, static_cast<uint8_t>(rank));
}

void DistinctKeys::Merge(const DistinctKeys& other) {
  if (registers_.empty()) registers_ = other.registers_;
  for (size_t i = 0; i < other.registers_.size(); ++i) {
    registers_[i] = std::max(registers_[i], other.registers_[i]);
  }
}

int64_t DistinctKeys::Estimate() const {
  if (registers_.empty()) return 0;
  std::array<int64_t, kRankBits + 2> counts{};
  for (const uint8_t rank : registers_) ++counts[rank];
  constexpr double kAll = kRegisters;
  double sum = kAll * Tau(1 - static_cast<double>(counts[kRankBits + 1]) / kAll);
  for (int rank = kRankBits; rank >= 1; --rank) {
    sum = 0.5 * (sum + static_cast<double>(counts[rank]));
  }
  sum += kAll * Sigma(static_cast<double>(counts[0]) / kAll);
  return std::llround(kAll * kAll / (2 * CanonicalLog(2.0) * sum));
}

}  // namespace elastor
