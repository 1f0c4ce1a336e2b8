#include "trainer/prepare/values/field_statistics.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/canonical_math.h"
#include "core/base/json.h"

namespace elastor {
namespace {

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Json NumericJson(const PreparePlan& plan, const Measures& measures, size_t field) {
  Json json;
  json["name"] = plan.numeric[field]->name();
  json["transform"] = Field::Transform_Name(plan.numeric[field]->transform());
  for (int split = 0; split < 3; ++split) {
    const NumericTally& tally = measures.splits[split].numeric[field];
    Json& part = json[SplitName(split)];
    part["count"] = tally.count;
    part["missing"] = tally.bins[0];
    if (tally.count == 0) continue;
    part["min"] = tally.least;
    part["max"] = tally.largest;
    part["mean"] = tally.Mean();
    part["stddev"] = tally.Stddev();
  }
  for (int split = 1; split < 3; ++split) {
    json["drift"][SplitName(split)] = HistogramDivergence(
        measures.splits[0].numeric[field].bins, measures.splits[split].numeric[field].bins);
  }
  return json;
}

Json CategoricalJson(const PreparePlan& plan, const Measures& measures, const RankedValues& ranked,
                     size_t column) {
  const PreparePlan::IdColumn& id = plan.ids[column];
  const Field& owner = *plan.ids[id.table].field;
  const ValueTally& tally = ranked.tallies[column];
  Json json;
  json["name"] = id.field->name();
  json["encoding"] = Field::Encoding_Name(owner.encoding());
  if (!id.keyed) json["ids"] = ranked.table_rows[column];
  for (int split = 0; split < 3; ++split) {
    Json& part = json[SplitName(split)];
    part["values"] = tally.values[split];
    if (id.bag) {
      part["empty"] = measures.splits[split].empty_bags[column];
    }
    if (id.keyed || (id.text && !id.bag)) part["missing"] = tally.missing[split];
    if (id.keyed) {
      part["distinct_estimate"] = measures.splits[split].keys[column].others.Estimate();
      continue;
    }
    part["distinct"] = tally.distinct[split];
    if (!id.text) continue;
    part["unknown"] = tally.unknown[split];
    part["unknown_share"] = Share(tally.unknown[split], tally.values[split] - tally.missing[split]);
  }
  if (id.keyed) return json;
  for (int split = 1; split < 3; ++split) json["drift"][SplitName(split)] = tally.divergence[split];
  json["top"] = Json::array();
  for (const TopValue& top : tally.top) {
    Json value;
    value["value"] = top.value;
    if (!id.text) {
      uint64_t integer = 0;
      for (const char c : top.value) integer = integer << 8 | static_cast<uint8_t>(c);
      const int64_t offset = owner.encoding() == Field::IDENTITY ? owner.offset() : 0;
      value["value"] = static_cast<int64_t>(integer) + offset;
    }
    for (int split = 0; split < 3; ++split) value[SplitName(split)] = top.counts[split];
    json["top"].push_back(value);
  }
  return json;
}

}  // namespace

double HistogramDivergence(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const int64_t all_a = std::accumulate(a.begin(), a.end(), int64_t{0});
  const int64_t all_b = std::accumulate(b.begin(), b.end(), int64_t{0});
  if (all_a == 0 || all_b == 0) return 0;
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double p = Share(a[i], all_a), q = Share(b[i], all_b);
    if (p > 0) sum += p * CanonicalLog(2 * p / (p + q));
    if (q > 0) sum += q * CanonicalLog(2 * q / (p + q));
  }
  return std::max(0.0, 0.5 * sum / CanonicalLog(2.0));
}

std::string StatisticsJson(const PreparePlan& plan, const Measures& measures,
                           const RankedValues& ranked, int64_t bad_rows,
                           const std::vector<std::string>& warnings) {
  Json json;
  json["format"] = "elastor-statistics";
  json["version"] = 1;
  json["name"] = plan.schema.name();
  json["bad_rows"] = bad_rows;
  for (const std::string& line : warnings) json["warnings"].push_back(line);
  for (int split = 0; split < 3; ++split) {
    const SplitTally& tally = measures.splits[split];
    Json& part = json["splits"][SplitName(split)];
    part["rows"] = tally.rows;
    if (plan.weights) part["weighted_rows"] = tally.weighted_rows;
    for (size_t i = 0; i < plan.labels.size(); ++i) {
      const SplitTally::Label& label = tally.labels[i];
      Json& of_label = plan.labels.size() == 1 ? part : part["labels"][plan.labels[i]];
      // A single label is there in all rows or in none.
      if (plan.labels.size() > 1) of_label["rows"] = label.rows;
      if (label.rows == 0 && tally.rows > 0) {
        of_label["positives"] = of_label["label_rate"] = nullptr;
        continue;
      }
      of_label["positives"] = label.positives;
      of_label["label_rate"] = Share(label.positives, label.rows);
    }
  }
  json["numeric"] = Json::array();
  for (size_t field = 0; field < plan.numeric.size(); ++field) {
    json["numeric"].push_back(NumericJson(plan, measures, field));
  }
  json["categorical"] = Json::array();
  for (size_t column = 0; column < plan.ids.size(); ++column) {
    json["categorical"].push_back(CategoricalJson(plan, measures, ranked, column));
  }
  // Values need not be UTF-8.
  return json.dump(1) + "\n";
}

}  // namespace elastor
