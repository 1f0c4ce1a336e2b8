#include "trainer/prepare/values/measure.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>

#include "trainer/data/value_runs.h"

namespace elastor {
namespace {

// Squares of smaller integers, as many as a chunk may have rows, add up in 63 bits.
constexpr int64_t kSmall = 1 << 20;
constexpr int kMostReadings = 4;
constexpr int kMostExponent = 1000;  // of a scale, which must be finite
// Sums of squares keep enough digits if the largest addend is in this range, and their difference
// to the square of the mean does if it is a larger share of that than kLeastVarianceShare.
constexpr double kLeastReach = 0x1p-60;
constexpr double kMostReach = 0x1p48;
constexpr double kLeastVarianceShare = 1e-6;

class Measurer {
 public:
  Measurer(const PrepareOptions& options, const PreparePlan& plan, const TextPassResult& text,
           const SplitPlaces& places, const WorkFile& rows, const WorkFile& values,
           WorkFile* counts)
      : options_(options),
        plan_(plan),
        text_(text),
        places_(places),
        rows_(rows),
        values_(values),
        counts_(counts),
        chunks_(text.runs.size()) {
    for (size_t i = 0; i < text.chunks.size(); ++i) {
      chunks_[text.chunks[i].segment].push_back(static_cast<int64_t>(i));
    }
    measures_.counts.resize(text.runs.size());
    for (SplitTally& tally : measures_.splits) {
      tally.labels.resize(plan_.labels.size());
      tally.numeric.resize(plan_.numeric.size());
      tally.values.resize(plan_.ids.size(), 0);
      tally.empty_bags.resize(plan_.ids.size(), 0);
      tally.keys.resize(plan_.ids.size());
    }
    empty_ = measures_.splits;
  }

  StatusOr<Measures> Run(ThreadPool* pool);

 private:
  using Tallies = std::array<SplitTally, 3>;
  // By column, then Split, then number of the value; empty for a split without rows.
  using SegmentCounts = std::vector<std::array<std::vector<uint32_t>, 3>>;

  Status ReadAllRows(ThreadPool* pool);
  // Chooses the fields whose sums have to be taken again. False: there are none.
  bool Recentre();
  Status Work();
  Status MeasureSegment(size_t segment, Tallies* tallies);
  void MeasureChunk(const UnpackedChunk& chunk, const std::vector<uint32_t>& rows, int split,
                    SegmentCounts* counts, SplitTally* tally) const;
  void MeasureNumeric(const PackedColumn& column, const std::vector<uint32_t>& rows,
                      NumericTally* tally) const;
  void MeasureAgain(const UnpackedChunk& chunk, const std::vector<uint32_t>& rows, int split,
                    SplitTally* tally) const;
  Status WriteCounts(size_t segment, const SegmentCounts& counts);

  const PrepareOptions& options_;
  const PreparePlan& plan_;
  const TextPassResult& text_;
  const SplitPlaces& places_;
  const WorkFile& rows_;
  const WorkFile& values_;
  WorkFile* const counts_;
  std::vector<std::vector<int64_t>> chunks_;  // by segment
  std::atomic<size_t> next_{0};
  // The reading at hand.
  bool first_reading_ = true;
  Tallies empty_;                              // what every thread begins with
  std::array<std::vector<int64_t>, 3> again_;  // numeric fields, by split, after the first reading

  std::mutex mutex_;  // guards the rest
  Measures measures_;
  int64_t rows_done_ = 0;
  Status failure_;
};

void Measurer::MeasureNumeric(const PackedColumn& column, const std::vector<uint32_t>& rows,
                              NumericTally* tally) const {
  if (column.integral() && column.width() == 1) {
    std::array<uint32_t, 256> codes{};
    for (const uint32_t row : rows) ++codes[column.Code(row)];
    if (codes[0] > 0) tally->Add(std::numeric_limits<double>::quiet_NaN(), codes[0]);
    for (int code = 1; code < 256; ++code) {
      if (codes[code] == 0) continue;
      tally->Add(static_cast<double>(column.least() + code - 1), codes[code]);
    }
    return;
  }
  if (!column.integral() || !first_reading_) {
    for (const uint32_t row : rows) tally->Add(column.Numeric(row), 1);
    return;
  }
  // Integers add up in integers, as long as they are small.
  int64_t sum = 0, squares = 0;
  for (const uint32_t row : rows) {
    const uint64_t code = column.Code(row);
    const int64_t value = column.least() + static_cast<int64_t>(code) - 1;
    if (code == 0 || value > kSmall || value < -kSmall) {
      tally->Add(column.Numeric(row), 1);
      continue;
    }
    sum += value;
    squares += value * value;
    ++tally->count;
    ++tally->bins[NumericTally::BinOf(static_cast<double>(value))];
    tally->least = std::min(tally->least, static_cast<double>(value));
    tally->largest = std::max(tally->largest, static_cast<double>(value));
  }
  // In two parts, each exact as a double.
  for (const auto& [total, exact] :
       {std::pair(sum, &tally->sum), std::pair(squares, &tally->squares)}) {
    exact->Add(static_cast<double>(total >> 32) * 0x1p32);
    exact->Add(static_cast<double>(total & 0xffffffff));
  }
}

void Measurer::MeasureAgain(const UnpackedChunk& chunk, const std::vector<uint32_t>& rows,
                            int split, SplitTally* tally) const {
  for (const int64_t field : again_[split]) {
    MeasureNumeric(chunk.numeric(field), rows, &tally->numeric[field]);
  }
}

void Measurer::MeasureChunk(const UnpackedChunk& chunk, const std::vector<uint32_t>& rows,
                            int split, SegmentCounts* counts, SplitTally* tally) const {
  tally->rows += static_cast<int64_t>(rows.size());
  tally->weighted_rows +=
      plan_.weights
          ? std::ranges::count_if(rows, [&](uint32_t row) { return chunk.weight(row) > 0; })
          : static_cast<int64_t>(rows.size());
  for (size_t i = 0; plan_.times && i < rows.size(); ++i) {
    tally->earliest = std::min(tally->earliest, chunk.time(rows[i]));
    tally->latest = std::max(tally->latest, chunk.time(rows[i]));
  }
  for (size_t i = 0; i < plan_.labels.size(); ++i) {
    for (const uint32_t row : rows) {
      const float label = chunk.label(row, static_cast<int64_t>(i));
      tally->labels[i].rows += !std::isnan(label);
      tally->labels[i].positives += label > 0.5f;
    }
  }
  for (size_t field = 0; field < plan_.numeric.size(); ++field) {
    MeasureNumeric(chunk.numeric(static_cast<int64_t>(field)), rows, &tally->numeric[field]);
  }
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    const PackedColumn& numbers = chunk.numbers(static_cast<int64_t>(i));
    uint32_t* times = (*counts)[i][split].data();
    KeyTally& keys = tally->keys[i];
    const auto count = [&](uint32_t at) {
      const uint64_t number = numbers.Integer(at);
      if (!plan_.ids[i].keyed) {
        ++times[number];
      } else if (number == 0) {
        ++keys.missing;
      } else {
        keys.others.Add(number);
      }
    };
    if (!plan_.ids[i].bag) {
      for (const uint32_t row : rows) count(row);
      tally->values[i] += static_cast<int64_t>(rows.size());
      continue;
    }
    const std::vector<uint32_t>& ends = chunk.ends(static_cast<int64_t>(i));
    for (const uint32_t row : rows) {
      const uint32_t begin = row == 0 ? 0 : ends[row - 1];
      tally->empty_bags[i] += begin == ends[row];
      tally->values[i] += ends[row] - begin;
      for (uint32_t at = begin; at < ends[row]; ++at) count(at);
    }
  }
}

Status Measurer::WriteCounts(size_t segment, const SegmentCounts& counts) {
  std::vector<RunCounts> places(plan_.ids.size());
  std::string sorted;
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    ELASTOR_RETURN_IF_ERROR(CheckValueRun(text_.runs[segment][i], values_));
    const ValueRunView run(text_.runs[segment][i], values_);
    for (int split = 0; split < 3; ++split) {
      const std::vector<uint32_t>& times = counts[i][split];
      if (times.empty()) continue;
      sorted.resize(times.size() * sizeof(uint32_t));
      uint32_t* ordered = reinterpret_cast<uint32_t*>(sorted.data());
      for (int64_t at = 0; at < run.size(); ++at) ordered[at] = times[run.number(at)];
      places[i].at[split] = counts_->Reserve(static_cast<int64_t>(sorted.size()));
      ELASTOR_RETURN_IF_ERROR(counts_->WriteAt(places[i].at[split], sorted));
    }
    run.Forget(0, run.size());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  measures_.counts[segment] = std::move(places);
  return OkStatus();
}

Status Measurer::MeasureSegment(size_t segment, Tallies* tallies) {
  SegmentCounts counts(plan_.ids.size());
  for (int split = 0; split < 3; ++split) {
    const bool used = std::any_of(chunks_[segment].begin(), chunks_[segment].end(),
                                  [&](int64_t number) { return places_.count(split, number) > 0; });
    for (size_t i = 0; first_reading_ && used && i < plan_.ids.size(); ++i) {
      counts[i][split].resize(text_.runs[segment][i].size, 0);
    }
  }
  UnpackedChunk chunk(plan_);
  std::vector<uint32_t> rows;
  for (const int64_t number : chunks_[segment]) {
    ELASTOR_RETURN_IF_ERROR(chunk.Read(rows_, text_.chunks[number]));
    for (int split = 0; split < 3; ++split) {
      if (places_.count(split, number) == 0) continue;
      places_.Select(chunk, split, number, {0, places_.count(split, number)}, &rows);
      if (first_reading_) {
        MeasureChunk(chunk, rows, split, &counts, &(*tallies)[split]);
      } else {
        MeasureAgain(chunk, rows, split, &(*tallies)[split]);
      }
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    rows_done_ += chunk.rows();
    if (options_.progress) {
      const int64_t all = places_.rows(0) + places_.rows(1) + places_.rows(2);
      options_.progress(
          {"measuring", static_cast<double>(rows_done_) / static_cast<double>(all), rows_done_, 0});
    }
  }
  return first_reading_ ? WriteCounts(segment, counts) : OkStatus();
}

Status Measurer::Work() {
  Tallies tallies = empty_;
  for (size_t segment = next_++; segment < chunks_.size(); segment = next_++) {
    ELASTOR_RETURN_IF_ERROR(MeasureSegment(segment, &tallies));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int split = 0; split < 3; ++split) {
    SplitTally& all = measures_.splits[split];
    all.rows += tallies[split].rows;
    all.weighted_rows += tallies[split].weighted_rows;
    all.earliest = std::min(all.earliest, tallies[split].earliest);
    all.latest = std::max(all.latest, tallies[split].latest);
    for (size_t i = 0; i < all.labels.size(); ++i) {
      all.labels[i].rows += tallies[split].labels[i].rows;
      all.labels[i].positives += tallies[split].labels[i].positives;
    }
    for (size_t i = 0; i < all.numeric.size(); ++i) {
      all.numeric[i].Merge(tallies[split].numeric[i]);
    }
    for (size_t i = 0; i < all.empty_bags.size(); ++i) {
      all.values[i] += tallies[split].values[i];
      all.empty_bags[i] += tallies[split].empty_bags[i];
      all.keys[i].missing += tallies[split].keys[i].missing;
      all.keys[i].others.Merge(tallies[split].keys[i].others);
    }
  }
  return OkStatus();
}

Status Measurer::ReadAllRows(ThreadPool* pool) {
  next_ = 0;
  rows_done_ = 0;
  pool->Run([this](int) {
    const Status status = Work();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!status.ok() && failure_.ok()) failure_ = status;
  });
  return failure_;
}

bool Measurer::Recentre() {
  first_reading_ = false;
  bool any = false;
  for (int split = 0; split < 3; ++split) {
    again_[split].clear();
    for (size_t field = 0; field < plan_.numeric.size(); ++field) {
      NumericTally& tally = measures_.splits[split].numeric[field];
      if (tally.Settled()) continue;
      again_[split].push_back(static_cast<int64_t>(field));
      empty_[split].numeric[field] = tally = tally.Recentred();
      any = true;
    }
  }
  return any;
}

StatusOr<Measures> Measurer::Run(ThreadPool* pool) {
  ELASTOR_RETURN_IF_ERROR(ReadAllRows(pool));
  for (int reading = 1; reading < kMostReadings && Recentre(); ++reading) {
    ELASTOR_RETURN_IF_ERROR(ReadAllRows(pool));
  }
  return std::move(measures_);
}

}  // namespace

int NumericTally::BinOf(double value) {
  if (value == 0) return 1;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  const int step = std::clamp(exponent + 32, 0, 127);
  return 2 + static_cast<int>(bits >> 63) * 512 + step * 4 + static_cast<int>(bits >> 50 & 3);
}

void NumericTally::Add(double value, int64_t times) {
  if (std::isnan(value)) {
    bins[0] += times;
    return;
  }
  // `times` addends at once, exactly: a product of a value and a power of two is exact.
  const double addend = (value - shift) * scale;
  for (int64_t left = times; left > 0; left &= left - 1) {
    const double power = static_cast<double>(left & -left);
    sum.Add(addend * power);
    squares.Add(addend * addend * power);
  }
  count += times;
  bins[BinOf(value)] += times;
  least = std::min(least, value);
  largest = std::max(largest, value);
}

void NumericTally::Merge(const NumericTally& other) {
  sum.Merge(other.sum);
  squares.Merge(other.squares);
  count += other.count;
  least = std::min(least, other.least);
  largest = std::max(largest, other.largest);
  for (int i = 0; i < kBins; ++i) bins[i] += other.bins[i];
}

double NumericTally::Mean() const {
  if (count == 0) return 0;
  // Adding 0 makes 0 of -0, which may be the least of equal zeros or not.
  if (least == largest) return least + 0.0;
  return shift + sum.Value() / static_cast<double>(count) / scale;
}

double NumericTally::ScaledVariance() const {
  const double rows = static_cast<double>(count);
  const double mean = sum.Value() / rows;
  return squares.Value() / rows - mean * mean;
}

double NumericTally::Stddev() const {
  if (count == 0 || least == largest) return 1;
  return std::sqrt(ScaledVariance()) / scale;
}

bool NumericTally::Settled() const {
  if (count == 0 || least == largest) return true;
  if (!sum.ok() || !squares.ok()) return false;
  const double reach = std::max(std::abs(least - shift), std::abs(largest - shift)) * scale;
  if (reach < kLeastReach || reach > kMostReach) return false;
  const double mean = sum.Value() / static_cast<double>(count);
  return ScaledVariance() > kLeastVarianceShare * mean * mean;
}

NumericTally NumericTally::Recentred() const {
  NumericTally tally;
  if (sum.ok()) tally.shift = Mean();
  int exponent;
  std::frexp(std::max(std::abs(least - tally.shift), std::abs(largest - tally.shift)), &exponent);
  tally.scale = std::ldexp(1.0, std::min(-exponent, kMostExponent));
  return tally;
}

StatusOr<Measures> MeasureRows(const PrepareOptions& options, const PreparePlan& plan,
                               const TextPassResult& text, const SplitPlaces& places,
                               const WorkFile& rows, const WorkFile& values, ThreadPool* pool,
                               WorkFile* counts) {
  return Measurer(options, plan, text, places, rows, values, counts).Run(pool);
}

}  // namespace elastor
