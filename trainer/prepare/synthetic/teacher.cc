#include "trainer/prepare/synthetic/teacher.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "embedding/key_space.h"
#include "trainer/prepare/synthetic/planted_random.h"

namespace elastor {

using namespace planted;

namespace {

constexpr uint32_t kLongestBag = 4;
constexpr double kFirstOrderShare = 0.5;
constexpr int64_t kFirstTime = 1'600'000'000;  // of the first row; the others follow each second

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
      labels_(std::max(plan.labels(), 1)) {
  Calibrate();
}

void Teacher::AppendId(int64_t row, int64_t field, int64_t position, Rows* rows) const {
  const PhiloxBlock bits =
      RowBits(plan_, row, kIdItem + static_cast<uint32_t>(field), static_cast<uint32_t>(position));
  const int64_t id =
      HeavyTailed(Uniform53(bits[0], bits[1]), plan_.ids_per_field(), ZipfExponentOf(plan_));
  rows->ids.push_back(plan_.drift() > 0 ? KeyAt(row, field, id) : id);
}

int64_t Teacher::KeyAt(int64_t row, int64_t field, int64_t id) const {
  const PhiloxBlock bits = RowBits(plan_, id, kBirthItem + static_cast<uint32_t>(field), 0);
  const double age = plan_.drift() * static_cast<double>(row) / static_cast<double>(plan_.rows());
  const auto births = static_cast<int64_t>(age + Uniform53(bits[0], bits[1]));
  const auto ids = static_cast<uint64_t>(plan_.ids_per_field());
  const uint64_t born = 1 + static_cast<uint64_t>(id) + static_cast<uint64_t>(births) * ids;
  return static_cast<int64_t>(MixKey(static_cast<int64_t>(born)));
}

int64_t Teacher::BagLength(int64_t row, int64_t field) const {
  return RowBits(plan_, row, kIdItem + static_cast<uint32_t>(field), 0)[2] % (kLongestBag + 1);
}

void Teacher::AppendFeatures(int64_t row, Rows* rows) const {
  ++rows->rows;
  if (plan_.drift() > 0) rows->times.push_back(kFirstTime + row);
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

void Teacher::Calibrate() {
  const int64_t count = std::min<int64_t>(plan_.rows(), kCalibrationRows);
  Rows rows;
  for (int64_t row = 0; row < count; ++row) AppendFeatures(row, &rows);
  std::vector<double> first(count);
  for (int64_t number = 0; number < labels(); ++number) {
    Label& label = labels_[number];
    std::vector<Latents> sample;
    for (int64_t row = 0; row < count; ++row) sample.push_back(LatentsOf(rows, row, number));
    if (plan_.teacher() == Synthetic::COORDINATE_MIXING) StandardizeSums(sample, &label);
    std::vector<double> scores, mixed;
    for (const Latents& latents : sample) scores.push_back(Score(latents, label));
    const Moments moments = MomentsOf(count, [&](int64_t i) { return scores[i]; });
    label.mean = moments.mean;
    label.scale = SignalOf(plan_) / moments.stddev;
    for (int64_t i = 0; i < count; ++i) {
      const double own = label.Centred(scores[i]);
      if (number == 0) first[i] = own;
      mixed.push_back(Mix(number, first[i], own));
    }
    label.shift = ShiftToBaseRate(plan_, mixed);
  }
}

std::vector<double> Teacher::AppendRow(int64_t row, Rows* rows) const {
  AppendFeatures(row, rows);
  std::vector<double> logits;
  double first = 0;
  for (int64_t number = 0; number < labels(); ++number) {
    const Label& label = labels_[number];
    const double score = Score(LatentsOf(*rows, rows->rows - 1, number), label);
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
