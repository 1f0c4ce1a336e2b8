#include "trainer/prepare/rows/spill.h"

#include <xxhash.h>

#include <cmath>
#include <limits>

#include "core/base/text.h"

namespace elastor {
namespace {

constexpr uint8_t kMissingLabel = 2;

}  // namespace

std::vector<uint64_t> BagValues(const PreparePlan& plan, const PreparePlan::IdColumn& column,
                                const ParsedChunk& chunk) {
  std::vector<uint64_t> values;
  for (int64_t row = 0; row < chunk.rows; ++row) {
    const int64_t bag = row * plan.bags + column.place;
    values.insert(values.end(), chunk.bags.begin() + (bag == 0 ? 0 : chunk.bag_ends[bag - 1]),
                  chunk.bags.begin() + chunk.bag_ends[bag]);
  }
  return values;
}

std::string PackChunk(const PreparePlan& plan, const ParsedChunk& chunk,
                      const ValueNumbers& numbers) {
  const int64_t rows = chunk.rows;
  std::string bytes;
  bytes.reserve(chunk.text.size() + chunk.table.number_bytes());
  std::vector<uint8_t> labels;
  for (const float label : chunk.labels) {
    labels.push_back(std::isnan(label) ? kMissingLabel : static_cast<uint8_t>(label));
  }
  const int64_t label_count = static_cast<int64_t>(plan.labels.size());
  for (int64_t label = 0; label < label_count; ++label) {
    PackedColumn::AppendIntegers(labels.data() + label, rows, label_count, &bytes);
  }
  if (plan.weights) {
    const std::vector<double> weights(chunk.weights.begin(), chunk.weights.end());
    PackedColumn::AppendNumeric(weights.data(), rows, 1, &bytes);
  }
  if (plan.groups) PackedColumn::AppendIntegers(chunk.groups.data(), rows, 1, &bytes);
  if (plan.times) {
    // Times before 1970 wrap around, here and back.
    const std::vector<uint64_t> times(chunk.times.begin(), chunk.times.end());
    PackedColumn::AppendIntegers(times.data(), rows, 1, &bytes);
  }
  if (plan.stores_splits) PackedColumn::AppendIntegers(chunk.splits.data(), rows, 1, &bytes);
  for (const auto& [values, stride] : chunk.numeric_columns) {
    PackedColumn::AppendNumeric(values, rows, stride, &bytes);
  }
  for (size_t i = 0; i < plan.ids.size(); ++i) {
    if (plan.ids[i].bag) {
      std::vector<uint32_t> lengths(rows);
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t bag = row * plan.bags + plan.ids[i].place;
        lengths[row] = chunk.bag_ends[bag] - (bag == 0 ? 0 : chunk.bag_ends[bag - 1]);
      }
      PackedColumn::AppendIntegers(lengths.data(), rows, 1, &bytes);
    }
    if (!plan.ids[i].keyed) {
      PackedColumn::AppendIntegers(numbers[i].data(), static_cast<int64_t>(numbers[i].size()), 1,
                                   &bytes);
    } else if (plan.ids[i].bag) {
      const std::vector<uint64_t> keys = BagValues(plan, plan.ids[i], chunk);
      PackedColumn::AppendIntegers(keys.data(), static_cast<int64_t>(keys.size()), 1, &bytes);
    } else {
      const auto& [keys, stride] = chunk.single_columns[plan.ids[i].place].ids;
      PackedColumn::AppendIntegers(keys, rows, stride, &bytes);
    }
  }
  PackedColumn::Pad(&bytes);
  return bytes;
}

Status UnpackedChunk::Read(const WorkFile& file, const SpilledChunk& chunk) {
  bytes_.resize(chunk.bytes);
  ELASTOR_RETURN_IF_ERROR(file.ReadAt(chunk.at, chunk.bytes, bytes_.data()));
  if (XXH3_64bits(bytes_.data(), bytes_.size()) != chunk.checksum) {
    return MachineError(StrCat("the working file of rows is damaged at byte ", chunk.at,
                               "; begin anew with --restart"));
  }
  rows_ = chunk.rows;
  const char* at = bytes_.data();
  const auto column = [&](int64_t count) { return PackedColumn(at, count, &at); };
  labels_.resize(plan_.labels.size());
  for (PackedColumn& label : labels_) label = column(rows_);
  if (plan_.weights) weights_ = column(rows_);
  if (plan_.groups) groups_ = column(rows_);
  if (plan_.times) times_ = column(rows_);
  if (plan_.stores_splits) splits_ = column(rows_);
  numeric_.resize(plan_.numeric.size());
  for (PackedColumn& numeric : numeric_) numeric = column(rows_);
  numbers_.resize(plan_.ids.size());
  ends_.resize(plan_.ids.size());
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    int64_t count = rows_;
    if (plan_.ids[i].bag) {
      const PackedColumn lengths = column(rows_);
      ends_[i].resize(rows_);
      uint32_t end = 0;
      for (int64_t row = 0; row < rows_; ++row) {
        ends_[i][row] = end += static_cast<uint32_t>(lengths.Integer(row));
      }
      count = end;
    }
    numbers_[i] = column(count);
  }
  return OkStatus();
}

float UnpackedChunk::label(int64_t row, int64_t label) const {
  const uint64_t code = labels_[label].Integer(row);
  return code == kMissingLabel ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(code);
}

}  // namespace elastor
