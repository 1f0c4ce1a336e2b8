#include "trainer/prepare/prepare.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "core/base/exact_sum.h"
#include "core/base/leaves.h"
#include "core/base/thread_pool.h"
#include "trainer/data/block_format.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/prepare/spill.h"
#include "trainer/prepare/split_ranges.h"
#include "trainer/prepare/synthetic.h"
#include "trainer/prepare/text_pass.h"

namespace elastor {
namespace {

DatasetInfo InfoOf(const Schema& schema) {
  DatasetInfo info;
  info.name = schema.name();
  info.rows_per_block = schema.rows_per_block();
  for (const Field& field : schema.fields()) {
    if (field.type() == Field::NUMERIC) {
      info.numeric.push_back({field.name()});
    } else {
      info.categorical.push_back({field.name(), field.buckets(), field.type() == Field::MULTI_HOT,
                                  field.pooling() == Field::MEAN});
    }
  }
  return info;
}

// Everything between the text pass and the finished data set.
class Encoder {
 public:
  Encoder(const PrepareOptions& options, const Spill& spill, const TextPassResult& text,
          ThreadPool* pool, DatasetWriter* writer)
      : options_(options), spill_(spill), text_(text), pool_(pool), writer_(writer) {
    int64_t single = 0, multi = 0;
    for (const Field& field : options.schema.fields()) {
      if (field.type() == Field::NUMERIC) {
        numeric_.push_back({&field, {}});
        continue;
      }
      const bool bag = field.type() == Field::MULTI_HOT;
      const bool numbered = field.encoding() == Field::VOCABULARY;
      const int64_t place = bag ? multi++ : single++;
      const Vocabulary* values = bag ? &text.multi[place] : &text.single[place];
      columns_.push_back({&field, bag, place, numbered ? values : nullptr, {}, 0});
    }
    single_ = single;
    multi_ = multi;
  }

  Status Run();

 private:
  struct NumericColumn {
    const Field* field;
    NumericScale scale;
  };
  struct IdColumn {
    const Field* field;
    bool bag;
    int64_t place;             // among the CATEGORICAL or the MULTI_HOT fields
    const Vocabulary* values;  // null: ids are final already
    std::vector<uint32_t> table_rows;
    int64_t table_size;
  };

  Status ChooseSplits();
  template <typename Visit>
  void VisitTraining(const Visit& visit) const;  // visit(chunk, training rows in it)
  void RankValues(IdColumn* column) const;
  Status Measure(int64_t place, NumericColumn* column) const;
  Status MeasureTraining();
  void Gather(const Range& rows, Rows* out) const;
  void GatherRow(const SpilledChunk& chunk, int64_t row, Rows* out) const;
  Status WriteSplit(Split split);

  const PrepareOptions& options_;
  const Spill& spill_;
  const TextPassResult& text_;
  ThreadPool* const pool_;
  DatasetWriter* const writer_;
  int64_t single_ = 0;
  int64_t multi_ = 0;
  std::array<Range, 3> splits_;  // rows in the spill
  std::vector<NumericColumn> numeric_;
  std::vector<IdColumn> columns_;
};

Status Encoder::ChooseSplits() {
  const SplitPlan& plan = options_.schema.split();
  const int64_t rows = spill_.rows();
  if (rows == 0) return UserError(options_.inputs.front() + ": no rows found");
  if (plan.by_file()) {
    const int64_t train = text_.rows_by_file[0];
    const int64_t validation = train + text_.rows_by_file[1];
    splits_ = {Range{0, train}, Range{train, validation}, Range{validation, rows}};
  } else {
    splits_ = SplitRanges(plan, rows);
  }
  return OkStatus();
}

template <typename Visit>
void Encoder::VisitTraining(const Visit& visit) const {
  for (int64_t i = 0; i < spill_.chunks(); ++i) {
    const SpilledChunk chunk = spill_.chunk(i);
    if (chunk.first_row >= splits_[0].end) return;
    visit(chunk, std::min(chunk.rows, splits_[0].end - chunk.first_row));
  }
}

void Encoder::RankValues(IdColumn* column) const {
  if (column->values == nullptr) {
    column->table_size = column->field->buckets();
    return;
  }
  std::vector<uint64_t> counts(column->values->size(), 0);
  VisitTraining([&](const SpilledChunk& chunk, int64_t rows) {
    if (!column->bag) {
      for (int64_t row = 0; row < rows; ++row) ++counts[chunk.ids[row * single_ + column->place]];
      return;
    }
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t bag = row * multi_ + column->place;
      for (uint32_t i = bag == 0 ? 0 : chunk.bag_ends[bag - 1]; i < chunk.bag_ends[bag]; ++i) {
        ++counts[chunk.bags[i]];
      }
    }
  });
  column->table_rows =
      column->values->Rank(counts, column->field->min_count(), &column->table_size);
}

Status Encoder::Measure(int64_t place, NumericColumn* column) const {
  const Field& field = *column->field;
  if (field.transform() == Field::NONE) return OkStatus();
  column->scale.transform =
      field.transform() == Field::LOG2_STANDARDIZE ? "log2_standardize" : "standardize";
  ExactSum sum, squares;
  int64_t count = 0;
  const int64_t stride = static_cast<int64_t>(numeric_.size());
  VisitTraining([&](const SpilledChunk& chunk, int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) {
      const double value = chunk.numeric[row * stride + place];
      if (std::isnan(value)) continue;
      sum.Add(value);
      squares.Add(value * value);
      ++count;
    }
  });
  if (!sum.ok() || !squares.ok()) {
    return UserError("field " + field.name() + ": values too large to standardise");
  }
  if (count == 0) return OkStatus();
  const double mean = sum.Value() / static_cast<double>(count);
  const double variance = squares.Value() / static_cast<double>(count) - mean * mean;
  column->scale.mean = mean;
  // Equal values leave rounding noise instead of a variance of 0.
  const bool varies = variance > 1e-12 * mean * mean;
  column->scale.stddev = varies ? std::sqrt(variance) : 1;
  return OkStatus();
}

Status Encoder::MeasureTraining() {
  const int64_t numeric = static_cast<int64_t>(numeric_.size());
  const int64_t columns = static_cast<int64_t>(columns_.size());
  std::vector<Status> outcomes(numeric);
  pool_->ParallelFor(numeric + columns, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i < numeric) {
        outcomes[i] = Measure(i, &numeric_[i]);
      } else {
        RankValues(&columns_[i - numeric]);
      }
    }
  });
  for (const Status& outcome : outcomes) ELASTOR_RETURN_IF_ERROR(outcome);
  DatasetInfo info = writer_->info();
  for (int64_t i = 0; i < columns; ++i) info.categorical[i].ids = columns_[i].table_size;
  writer_->SetInfo(info);
  return OkStatus();
}

void Encoder::GatherRow(const SpilledChunk& chunk, int64_t row, Rows* out) const {
  out->labels.push_back(chunk.labels[row]);
  const double* numeric = chunk.numeric + row * static_cast<int64_t>(numeric_.size());
  for (size_t i = 0; i < numeric_.size(); ++i) {
    const NumericScale& scale = numeric_[i].scale;
    out->numeric.push_back(static_cast<float>((numeric[i] - scale.mean) / scale.stddev));
  }
  for (const IdColumn& column : columns_) {
    const auto put = [&](uint64_t id) {
      out->ids.push_back(column.values == nullptr ? static_cast<int64_t>(id)
                                                  : int64_t{column.table_rows[id]});
    };
    if (column.bag) {
      const int64_t bag = row * multi_ + column.place;
      const uint32_t begin = bag == 0 ? 0 : chunk.bag_ends[bag - 1];
      for (uint32_t i = begin; i < chunk.bag_ends[bag]; ++i) put(chunk.bags[i]);
    } else {
      put(chunk.ids[row * single_ + column.place]);
    }
    if (multi_ > 0) out->offsets.push_back(static_cast<int64_t>(out->ids.size()));
  }
}

void Encoder::Gather(const Range& rows, Rows* out) const {
  *out = Rows();
  out->rows = rows.size();
  out->labels.reserve(rows.size());
  out->numeric.reserve(rows.size() * numeric_.size());
  out->ids.reserve(rows.size() * columns_.size());
  if (multi_ > 0) out->offsets.push_back(0);
  for (int64_t row = rows.begin, number = spill_.ChunkOfRow(row); row < rows.end; ++number) {
    const SpilledChunk chunk = spill_.chunk(number);
    const int64_t end = std::min(rows.end, chunk.first_row + chunk.rows);
    for (; row < end; ++row) GatherRow(chunk, row - chunk.first_row, out);
  }
}

Status Encoder::WriteSplit(Split split) {
  const Range range = splits_[static_cast<int>(split)];
  const int64_t block_rows = writer_->info().rows_per_block;
  const int64_t blocks = (range.size() + block_rows - 1) / block_rows;
  const int64_t together = 4 * pool_->threads();
  std::vector<std::string> encoded(together);
  const auto rows_of = [&](int64_t block) -> Range {
    const int64_t begin = range.begin + block * block_rows;
    return {begin, std::min(begin + block_rows, range.end)};
  };
  for (int64_t first = 0; first < blocks; first += together) {
    const int64_t count = std::min(together, blocks - first);
    pool_->ParallelFor(count, 1, [&](int, int64_t begin, int64_t end) {
      Rows rows;
      for (int64_t i = begin; i < end; ++i) {
        Gather(rows_of(first + i), &rows);
        encoded[i] = EncodeBlock(writer_->info(), rows);
      }
    });
    for (int64_t i = 0; i < count; ++i) {
      ELASTOR_RETURN_IF_ERROR(writer_->AppendEncoded(split, rows_of(first + i).size(), encoded[i]));
    }
    if (options_.progress) {
      const int64_t done = std::min(range.begin + (first + count) * block_rows, range.end);
      options_.progress("writing", static_cast<double>(done) / spill_.rows());
    }
  }
  return OkStatus();
}

Status Encoder::Run() {
  ELASTOR_RETURN_IF_ERROR(ChooseSplits());
  ELASTOR_RETURN_IF_ERROR(MeasureTraining());
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    ELASTOR_RETURN_IF_ERROR(WriteSplit(split));
  }
  std::vector<NumericScale> scales;
  for (const NumericColumn& column : numeric_) scales.push_back(column.scale);
  return writer_->Commit(scales);
}

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Status CheckInputs(const PrepareOptions& options) {
  const bool synthetic = options.schema.layout() == Schema::SYNTHETIC;
  if (options.output_dir.empty()) return UserError("--output_dir is missing");
  if (synthetic && !options.inputs.empty()) {
    return UserError("--input is not used by layout SYNTHETIC");
  }
  if (!synthetic && options.inputs.empty()) return UserError("--input is missing");
  if (options.schema.split().by_file() && options.inputs.size() != 3) {
    return UserError("--input: found " + std::to_string(options.inputs.size()) +
                     " files, expected 3 (train, validation, test) with split.by_file");
  }
  return OkStatus();
}

Status PrepareText(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                   PrepareReport* report) {
  ELASTOR_ASSIGN_OR_RETURN(
      const std::unique_ptr<Spill> spill,
      Spill::Create(writer->partial_path() + "/parsed.tmp", IdBytes(writer->info())));
  ELASTOR_ASSIGN_OR_RETURN(const TextPassResult text, RunTextPass(options, pool, spill.get()));
  ELASTOR_RETURN_IF_ERROR(spill->Seal());
  report->bad_rows = text.bad_rows;
  report->text_bytes = text.text_bytes;
  return Encoder(options, *spill, text, pool, writer).Run();
}

}  // namespace

StatusOr<PrepareReport> Prepare(const PrepareOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const double cpu_begin = CpuSeconds();
  ELASTOR_RETURN_IF_ERROR(CheckInputs(options));
  ThreadPool pool(options.threads);
  PrepareReport report;
  const bool synthetic = options.schema.layout() == Schema::SYNTHETIC;
  const DatasetInfo info = synthetic ? SyntheticInfo(options.schema) : InfoOf(options.schema);
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<DatasetWriter> writer,
                           DatasetWriter::Create(options.output_dir, info));
  ELASTOR_RETURN_IF_ERROR(synthetic ? WriteSynthetic(options, &pool, writer.get())
                                    : PrepareText(options, &pool, writer.get(), &report));
  std::copy_n(writer->info().rows, 3, report.rows);
  report.best_auc = writer->info().best_auc;
  for (const DatasetInfo::Categorical& field : writer->info().categorical) {
    report.ids += field.ids;
  }
  report.cpu_seconds = CpuSeconds() - cpu_begin;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

}  // namespace elastor
