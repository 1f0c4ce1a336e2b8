#ifndef ELASTOR_TRAINER_PREPARE_SYNTHETIC_PLANTED_RANDOM_H_
#define ELASTOR_TRAINER_PREPARE_SYNTHETIC_PLANTED_RANDOM_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/canonical_math.h"
#include "core/base/random.h"

namespace elastor::planted {

// What the teachers of planted data share: random numbers of a row, and the scale of a logit.

inline constexpr double kDefaultZipfExponent = 1.05;
inline constexpr double kDefaultSignal = 1.5;
inline constexpr double kDefaultBaseRate = 0.25;
inline constexpr int64_t kCalibrationRows = 1 << 14;

// What a block of random numbers of a row is for: the third word of its counter, plus the field.
inline constexpr uint32_t kNumericItem = 0;
inline constexpr uint32_t kIdItem = 1 << 30;
inline constexpr uint32_t kLabelItem = 2u << 30;
inline constexpr uint32_t kHistoryItem =
    3u << 30;  // HISTORY: of a user in place of a row, then of a row
inline constexpr uint32_t kBirthItem = kHistoryItem;  // drift: of an id in place of a row

inline double ZipfExponentOf(const Synthetic& plan) {
  return plan.has_zipf_exponent() ? plan.zipf_exponent() : kDefaultZipfExponent;
}

inline double SignalOf(const Synthetic& plan) {
  return plan.has_signal() ? plan.signal() : kDefaultSignal;
}

inline PhiloxBlock RowBits(const Synthetic& plan, int64_t row, uint32_t item, uint32_t position) {
  const uint64_t key = MakeRandomKey(plan.seed(), RandomPurpose::kSynthetic, 0);
  return Philox(key,
                {static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32), item, position});
}

inline double Uniform53(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

// An id in [0, ids) with P(i) the integral of x^-exponent over [i + 1, i + 2], normalised.
inline int64_t HeavyTailed(double uniform, int64_t ids, double exponent) {
  const double log_end = CanonicalLog(static_cast<double>(ids) + 1);
  const double power = 1 - exponent;
  double x;
  if (std::abs(power) < 1e-9) {
    x = CanonicalExp(uniform * log_end);
  } else {
    const double end = CanonicalExp(power * log_end);
    x = CanonicalExp(CanonicalLog(1 + (end - 1) * uniform) / power);
  }
  return std::clamp<int64_t>(static_cast<int64_t>(x) - 1, 0, ids - 1);
}

inline double Sigmoid(double logit) { return 1 / (1 + CanonicalExp(-logit)); }

struct Moments {
  double mean = 0;
  double stddev = 1;
};

template <typename Value>
Moments MomentsOf(int64_t count, const Value& value) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) sum += value(i);
  const double mean = sum / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) squares += (value(i) - mean) * (value(i) - mean);
  const double stddev = std::sqrt(squares / static_cast<double>(count));
  return {mean, stddev > 0 ? stddev : 1};
}

// The shift that makes the mean of sigmoid(logit + shift) the plan's base rate, by bisection.
inline double ShiftToBaseRate(const Synthetic& plan, const std::vector<double>& logits) {
  const double rate = plan.has_base_rate() ? plan.base_rate() : kDefaultBaseRate;
  double low = -100, high = 100;
  for (int step = 0; step < 60; ++step) {
    const double shift = (low + high) / 2;
    double sum = 0;
    for (const double logit : logits) sum += Sigmoid(logit + shift);
    (sum / static_cast<double>(logits.size()) < rate ? low : high) = shift;
  }
  return (low + high) / 2;
}

}  // namespace elastor::planted

#endif  // ELASTOR_TRAINER_PREPARE_SYNTHETIC_PLANTED_RANDOM_H_
