#include "trainer/prepare/teacher.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/canonical_math.h"
#include "core/base/random.h"
#include "xxhash.h"

namespace elastor {
namespace {

constexpr double kDefaultZipfExponent = 1.05;
constexpr double kDefaultSignal = 1.5;
constexpr double kDefaultBaseRate = 0.25;
constexpr int64_t kCalibrationRows = 1 << 14;
constexpr uint32_t kLongestBag = 4;
constexpr double kFirstOrderShare = 0.5;

// What a block of random numbers of a row is for: the third word of its counter, plus the field.
constexpr uint32_t kNumericItem = 0;
constexpr uint32_t kIdItem = 1 << 30;
constexpr uint32_t kLabelItem = 2u << 30;
constexpr uint32_t kHistoryItem = 3u << 30;  // of a user in place of a row

double OrDefault(double value, double otherwise) { return value == 0 ? otherwise : value; }

PhiloxBlock RowBits(const Synthetic& plan, int64_t row, uint32_t item, uint32_t position) {
  const uint64_t key = MakeRandomKey(plan.seed(), RandomPurpose::kSynthetic, 0);
  return Philox(key,
                {static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32), item, position});
}

double Uniform53(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

// An id in [0, ids) with P(i) the integral of x^-exponent over [i + 1, i + 2], normalised.
int64_t HeavyTailed(double uniform, int64_t ids, double exponent) {
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

double Sigmoid(double logit) { return 1 / (1 + CanonicalExp(-logit)); }

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

int64_t RankOf(const Synthetic& plan) {
  if (plan.rank() > 0) return plan.rank();
  return plan.teacher() == Synthetic::COORDINATE_MIXING ? 16 : 4;
}

}  // namespace

Teacher::Teacher(const Synthetic& plan)
    : plan_(plan),
      rank_(RankOf(plan)),
      numeric_(plan.numeric_fields()),
      columns_(plan.categorical_fields() + plan.multi_hot_fields() +
               (plan.teacher() == Synthetic::HISTORY)),
      history_(plan.teacher() == Synthetic::HISTORY),
      labels_(std::max(plan.labels(), 1)) {
  Calibrate();
}

void Teacher::AppendId(int64_t row, int64_t field, int64_t position, Rows* rows) const {
  const PhiloxBlock bits =
      RowBits(plan_, row, kIdItem + static_cast<uint32_t>(field), static_cast<uint32_t>(position));
  rows->ids.push_back(HeavyTailed(Uniform53(bits[0], bits[1]), plan_.ids_per_field(),
                                  OrDefault(plan_.zipf_exponent(), kDefaultZipfExponent)));
}

int64_t Teacher::BagLength(int64_t row, int64_t field) const {
  return RowBits(plan_, row, kIdItem + static_cast<uint32_t>(field), 0)[2] % (kLongestBag + 1);
}

void Teacher::AppendFeatures(int64_t row, Rows* rows) const {
  ++rows->rows;
  for (int64_t field = 0; field < numeric_; ++field) {
    const PhiloxBlock bits = RowBits(plan_, row, kNumericItem + static_cast<uint32_t>(field), 0);
    const bool missing = UniformFromBits(bits[2]) < plan_.missing_share();
    rows->numeric.push_back(missing ? std::numeric_limits<float>::quiet_NaN()
                                    : static_cast<float>(NormalFromBits(bits[0], bits[1]).first));
  }
  const bool bags = plan_.multi_hot_fields() > 0 || history_;
  if (bags && rows->offsets.empty()) rows->offsets.push_back(0);
  for (int64_t field = 0; field < columns_ - history_; ++field) {
    const int64_t length = field < plan_.categorical_fields() ? 1 : BagLength(row, field);
    for (int64_t i = 0; i < length; ++i) AppendId(row, field, i, rows);
    if (bags) rows->offsets.push_back(static_cast<int64_t>(rows->ids.size()));
  }
  if (history_) AppendHistory(row, rows);
}

// What a user saw at a place of the stream of items that they see.
int64_t Teacher::HistoryItem(int64_t user, int64_t place) const {
  const PhiloxBlock bits = RowBits(plan_, user, kHistoryItem, static_cast<uint32_t>(place));
  return HeavyTailed(Uniform53(bits[0], bits[1]), plan_.ids_per_field(),
                     OrDefault(plan_.zipf_exponent(), kDefaultZipfExponent));
}

// Row r is the (r / users)-th visit of user r mod users, who sees one item more at each. Half
// of the rows have an item of the interest of one that the history has.
void Teacher::AppendHistory(int64_t row, Rows* rows) const {
  const int64_t user = row % plan_.users();
  const int64_t visit = row / plan_.users();
  const auto length = static_cast<int64_t>(RowBits(plan_, user, kHistoryItem, ~0u)[0] %
                                           (static_cast<uint32_t>(plan_.history_length()) + 1));
  const int64_t end = plan_.history_length() + visit;
  for (int64_t place = end - length; place < end; ++place) {
    rows->ids.push_back(HistoryItem(user, place));
  }
  rows->offsets.push_back(static_cast<int64_t>(rows->ids.size()));
  const std::string name = std::to_string(user);
  rows->groups.push_back(XXH3_64bits(name.data(), name.size()));
  const PhiloxBlock bits = RowBits(plan_, row, kHistoryItem + 1, 0);
  if (length == 0 || bits[0] % 2 == 0) return;
  const int64_t seen = rows->ids[rows->ids.size() - 1 - bits[1] % length];
  const int64_t interest = seen % plan_.interests();
  const int64_t items = (plan_.ids_per_field() - 1 - interest) / plan_.interests() + 1;
  rows->ids[rows->offsets[(rows->rows - 1) * columns_]] =
      interest + static_cast<int64_t>(bits[2] % static_cast<uint64_t>(items)) * plan_.interests();
}

double Teacher::ItemWeight(int64_t item) const {
  double weight;
  FillNormal(MakeRandomKey(plan_.seed(), RandomPurpose::kSynthetic, 1), item, 1.0, 1, &weight);
  return weight;
}

double Teacher::HistoryScore(const Rows& rows, int64_t row) const {
  const int64_t first_bag = row * columns_;
  const int64_t item = rows.ids[rows.offsets[first_bag]];
  double score = 0;
  for (int64_t i = rows.offsets[first_bag + columns_ - 1]; i < rows.offsets[first_bag + columns_];
       ++i) {
    if ((rows.ids[i] - item) % plan_.interests() == 0) score += ItemWeight(rows.ids[i]);
  }
  return score;
}

Teacher::Latents Teacher::LatentsOf(const Rows& rows, int64_t row, int64_t label) const {
  Latents latents;
  latents.sum.assign(rank_, 0);
  std::vector<double> normals(rank_ + 1), vector(rank_);
  // Adds `weight` times the latent vector and weight of (field, id) to the field's vector.
  const auto add = [&](int64_t field, uint64_t id, double weight) {
    const int64_t eye = label * (numeric_ + columns_) + field + 1;
    const uint64_t key =
        MakeRandomKey(plan_.seed(), RandomPurpose::kSynthetic, static_cast<uint32_t>(eye));
    FillNormal(key, id, 1.0, rank_ + 1, normals.data());
    for (int64_t c = 0; c < rank_; ++c) vector[c] += weight * normals[c];
    latents.first_order += weight * normals[rank_];
  };
  const auto end_field = [&] {
    for (int64_t c = 0; c < rank_; ++c) {
      latents.sum[c] += vector[c];
      latents.squares += vector[c] * vector[c];
      vector[c] = 0;
    }
  };
  for (int64_t field = 0; field < numeric_; ++field) {
    const float value = rows.numeric[row * numeric_ + field];
    if (!std::isnan(value)) add(columns_ + field, 0, value);
    end_field();
  }
  const int64_t first_bag = row * columns_;
  for (int64_t field = 0; field < columns_; ++field) {
    const int64_t bag = first_bag + field;
    const int64_t begin = rows.offsets.empty() ? bag : rows.offsets[bag];
    const int64_t end = rows.offsets.empty() ? bag + 1 : rows.offsets[bag + 1];
    for (int64_t i = begin; i < end; ++i) add(field, rows.ids[i], 1);
    end_field();
  }
  return latents;
}

double Teacher::Score(const Latents& latents, const Label& label) const {
  const double fields = static_cast<double>(numeric_ + columns_);
  if (plan_.teacher() == Synthetic::LOW_RANK) {
    double square_of_sum = 0;
    for (const double z : latents.sum) square_of_sum += z * z;
    const double pairs = fields * (fields - 1) / 2;
    return kFirstOrderShare * latents.first_order / std::sqrt(fields) +
           (square_of_sum - latents.squares) / 2 / std::sqrt(pairs * static_cast<double>(rank_));
  }
  const auto z = [&](int64_t c) {
    c %= rank_;
    return (latents.sum[c] - label.sum_mean[c]) / label.sum_stddev[c];
  };
  double score = 0;
  for (int64_t c = 0; c < rank_; ++c) score += z(c) * z(c + 1) * (1 + z(c + 3));
  return score / std::sqrt(static_cast<double>(rank_));
}

void Teacher::StandardizeSums(const std::vector<Latents>& sample, Label* label) const {
  for (int64_t c = 0; c < rank_; ++c) {
    const Moments moments =
        MomentsOf(static_cast<int64_t>(sample.size()), [&](int64_t i) { return sample[i].sum[c]; });
    label->sum_mean.push_back(moments.mean);
    label->sum_stddev.push_back(moments.stddev);
  }
}

double Teacher::Mix(int64_t label, double first, double own) const {
  const double share = plan_.label_correlation();
  return label == 0 ? own : share * first + std::sqrt(1 - share * share) * own;
}

// The shift that makes the mean probability the base rate, by bisection.
double Teacher::ShiftOf(const std::vector<double>& mixed) const {
  const double rate = OrDefault(plan_.base_rate(), kDefaultBaseRate);
  double low = -100, high = 100;
  for (int step = 0; step < 60; ++step) {
    const double shift = (low + high) / 2;
    double sum = 0;
    for (const double logit : mixed) sum += Sigmoid(logit + shift);
    (sum / static_cast<double>(mixed.size()) < rate ? low : high) = shift;
  }
  return (low + high) / 2;
}

void Teacher::Calibrate() {
  const int64_t count = std::min<int64_t>(plan_.rows(), kCalibrationRows);
  Rows rows;
  for (int64_t row = 0; row < count; ++row) AppendFeatures(row, &rows);
  std::vector<double> first(count);
  for (int64_t number = 0; number < labels(); ++number) {
    Label& label = labels_[number];
    std::vector<Latents> sample;
    std::vector<double> scores, mixed;
    for (int64_t row = 0; row < count; ++row) {
      if (history_) {
        scores.push_back(HistoryScore(rows, row));
      } else {
        sample.push_back(LatentsOf(rows, row, number));
      }
    }
    if (plan_.teacher() == Synthetic::COORDINATE_MIXING) StandardizeSums(sample, &label);
    for (const Latents& latents : sample) scores.push_back(Score(latents, label));
    const Moments moments = MomentsOf(count, [&](int64_t i) { return scores[i]; });
    label.mean = moments.mean;
    label.scale = OrDefault(plan_.signal(), kDefaultSignal) / moments.stddev;
    for (int64_t i = 0; i < count; ++i) {
      const double own = label.Centred(scores[i]);
      if (number == 0) first[i] = own;
      mixed.push_back(Mix(number, first[i], own));
    }
    label.shift = ShiftOf(mixed);
  }
}

std::vector<double> Teacher::AppendRow(int64_t row, Rows* rows) const {
  AppendFeatures(row, rows);
  std::vector<double> logits;
  double first = 0;
  for (int64_t number = 0; number < labels(); ++number) {
    const Label& label = labels_[number];
    const double score = history_ ? HistoryScore(*rows, rows->rows - 1)
                                  : Score(LatentsOf(*rows, rows->rows - 1, number), label);
    if (number == 0) {
      first = label.Centred(score);
      logits.push_back(label.scale * score + (label.shift - label.scale * label.mean));
    } else {
      logits.push_back(Mix(number, first, label.Centred(score)) + label.shift);
    }
    const PhiloxBlock bits = RowBits(plan_, row, kLabelItem + static_cast<uint32_t>(number), 0);
    const bool missing =
        plan_.after_first() && number > 0 && rows->labels[(rows->rows - 1) * labels()] == 0;
    const float value = Uniform53(bits[0], bits[1]) < Sigmoid(logits[number]) ? 1.0f : 0.0f;
    rows->labels.push_back(missing ? std::numeric_limits<float>::quiet_NaN() : value);
  }
  return logits;
}

}  // namespace elastor
