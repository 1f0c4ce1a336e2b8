#include "trainer/prepare/teacher.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "trainer/prepare/planted_random.h"

namespace elastor {

using namespace planted;

namespace {

constexpr uint32_t kLongestBag = 4;
constexpr double kFirstOrderShare = 0.5;

int64_t RankOf(const Synthetic& plan) {
  if (plan.rank() > 0) return plan.rank();
  return plan.teacher() == Synthetic::COORDINATE_MIXING ? 16 : 4;
}

}  // namespace

Teacher::Teacher(const Synthetic& plan)
    : plan_(plan),
      rank_(RankOf(plan)),
      numeric_(plan.numeric_fields()),
      columns_(plan.categorical_fields() + plan.multi_hot_fields()),
      sum_mean_(rank_, 0),
      sum_stddev_(rank_, 1) {
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
  const bool bags = plan_.multi_hot_fields() > 0;
  if (bags && rows->offsets.empty()) rows->offsets.push_back(0);
  for (int64_t field = 0; field < columns_; ++field) {
    const int64_t length = field < plan_.categorical_fields() ? 1 : BagLength(row, field);
    for (int64_t i = 0; i < length; ++i) AppendId(row, field, i, rows);
    if (bags) rows->offsets.push_back(static_cast<int64_t>(rows->ids.size()));
  }
}

Teacher::Latents Teacher::LatentsOf(const Rows& rows) const {
  Latents latents;
  latents.sum.assign(rank_, 0);
  std::vector<double> normals(rank_ + 1), vector(rank_);
  // Adds `weight` times the latent vector and weight of (field, id) to the field's vector.
  const auto add = [&](int64_t field, uint64_t id, double weight) {
    const uint64_t key =
        MakeRandomKey(plan_.seed(), RandomPurpose::kSynthetic, static_cast<uint32_t>(field + 1));
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
    const float value = rows.numeric[(rows.rows - 1) * numeric_ + field];
    if (!std::isnan(value)) add(columns_ + field, 0, value);
    end_field();
  }
  const int64_t first_bag = (rows.rows - 1) * columns_;
  for (int64_t field = 0; field < columns_; ++field) {
    const int64_t bag = first_bag + field;
    const int64_t begin = rows.offsets.empty() ? bag : rows.offsets[bag];
    const int64_t end = rows.offsets.empty() ? bag + 1 : rows.offsets[bag + 1];
    for (int64_t i = begin; i < end; ++i) add(field, rows.ids[i], 1);
    end_field();
  }
  return latents;
}

double Teacher::RawScore(const Latents& latents) const {
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
    return (latents.sum[c] - sum_mean_[c]) / sum_stddev_[c];
  };
  double score = 0;
  for (int64_t c = 0; c < rank_; ++c) score += z(c) * z(c + 1) * (1 + z(c + 3));
  return score / std::sqrt(static_cast<double>(rank_));
}

void Teacher::StandardizeSums(const std::vector<Latents>& sample) {
  for (int64_t c = 0; c < rank_; ++c) {
    const Moments moments =
        MomentsOf(static_cast<int64_t>(sample.size()), [&](int64_t i) { return sample[i].sum[c]; });
    sum_mean_[c] = moments.mean;
    sum_stddev_[c] = moments.stddev;
  }
}

void Teacher::Calibrate() {
  std::vector<Latents> sample(std::min<int64_t>(plan_.rows(), kCalibrationRows));
  Rows rows;
  for (size_t i = 0; i < sample.size(); ++i) {
    AppendFeatures(static_cast<int64_t>(i), &rows);
    sample[i] = LatentsOf(rows);
  }
  if (plan_.teacher() == Synthetic::COORDINATE_MIXING) StandardizeSums(sample);
  std::vector<double> scores;
  for (const Latents& latents : sample) scores.push_back(RawScore(latents));
  const int64_t count = static_cast<int64_t>(scores.size());
  const Moments moments = MomentsOf(count, [&](int64_t i) { return scores[i]; });
  scale_ = OrDefault(plan_.signal(), kDefaultSignal) / moments.stddev;
  std::vector<double> logits;
  for (const double score : scores) logits.push_back(scale_ * (score - moments.mean));
  shift_ = ShiftToBaseRate(plan_, logits) - scale_ * moments.mean;
}

double Teacher::AppendRow(int64_t row, Rows* rows) const {
  AppendFeatures(row, rows);
  const double logit = scale_ * RawScore(LatentsOf(*rows)) + shift_;
  const PhiloxBlock bits = RowBits(plan_, row, kLabelItem, 0);
  rows->labels.push_back(Uniform53(bits[0], bits[1]) < Sigmoid(logit) ? 1.0f : 0.0f);
  return logit;
}

}  // namespace elastor
