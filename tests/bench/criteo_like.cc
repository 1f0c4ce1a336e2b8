#include "tests/bench/criteo_like.h"

#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "trainer/experiment/make_options.h"

namespace elastor {
namespace {

constexpr int64_t kNumericFields = 13;
constexpr int64_t kCategoricalFields = 26;

// Id with P(id) about (id + 1)^-zipf by inverting the continuous distribution.
int64_t ZipfId(double u, int64_t ids, double zipf) {
  const double exponent = 1 - zipf;
  const double x =
      std::pow(u * (std::pow(static_cast<double>(ids) + 1, exponent) - 1) + 1, 1 / exponent);
  return std::clamp<int64_t>(static_cast<int64_t>(x) - 1, 0, ids - 1);
}

}  // namespace

DatasetInfo CriteoLikeData(int64_t ids_per_field) {
  DataShape shape;
  shape.set_numeric_fields(kNumericFields);
  shape.set_categorical_fields(kCategoricalFields);
  shape.set_ids_per_field(ids_per_field);
  return AssumedData(shape);
}

LocalBatch CriteoLikeBatch(int index, int64_t rows, int64_t ids_per_field, double zipf,
                           int64_t leaves) {
  const uint64_t key = MakeRandomKey(index, RandomPurpose::kSynthetic, 0);
  Rows drawn;
  drawn.rows = rows;
  uint32_t counter = 0;
  const auto uniform = [&] { return UniformFromBits(Philox(key, {counter++, 0, 0, 0})[0]); };
  for (int64_t row = 0; row < rows; ++row) {
    drawn.labels.push_back(uniform() < 0.25 ? 1.0f : 0.0f);
    for (int64_t i = 0; i < kNumericFields; ++i) {
      drawn.numeric.push_back(static_cast<float>(uniform()));
    }
    for (int64_t i = 0; i < kCategoricalFields; ++i) {
      drawn.ids.push_back(ZipfId(uniform(), ids_per_field, zipf));
    }
  }
  LocalBatch batch;
  FillLocalBatch(index * rows, rows, 0, 1, leaves, kCategoricalFields, &drawn, &batch);
  return batch;
}

}  // namespace elastor
