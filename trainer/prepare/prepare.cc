#include "trainer/prepare/prepare.h"

#include <time.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/thread_pool.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/prepare/encoding_state.h"
#include "trainer/prepare/field_statistics.h"
#include "trainer/prepare/measure.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/rank_values.h"
#include "trainer/prepare/row_places.h"
#include "trainer/prepare/run_identity.h"
#include "trainer/prepare/synthetic.h"
#include "trainer/prepare/text_pass.h"
#include "trainer/prepare/work_file.h"
#include "trainer/prepare/write_blocks.h"

namespace elastor {
namespace {

namespace fs = std::filesystem;

constexpr char kStateFile[] = "encoding.json";
constexpr char kStatisticsFile[] = "stats.json";
constexpr char kVocabularyFolder[] = "vocabulary";

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// One run from text to a prepared set, or what is left of it.
class TextRun {
 public:
  TextRun(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
          PrepareReport* report)
      : options_(options), plan_(options.schema), pool_(pool), writer_(writer), report_(report) {
    const bool by_input = !options.validation_inputs.empty() || !options.test_inputs.empty();
    int split = 0;
    for (const std::vector<std::string>* paths :
         {&options.inputs, &options.validation_inputs, &options.test_inputs}) {
      inputs_.insert(inputs_.end(), paths->begin(), paths->end());
      if (by_input) input_splits_.insert(input_splits_.end(), paths->size(), split);
      ++split;
    }
  }

  Status Run();

 private:
  StatusOr<EncodingState> MakeEncoding(const TextPassResult& text, const RowPlaces& places);
  std::string Work(const char* name) const { return writer_->work_path() + "/" + name; }

  const PrepareOptions& options_;
  const PreparePlan plan_;
  ThreadPool* const pool_;
  DatasetWriter* const writer_;
  PrepareReport* const report_;
  std::vector<std::string> inputs_;
  std::vector<int> input_splits_;
  EncodingState given_;  // of options.vocabulary_from
  std::unique_ptr<WorkFile> rows_;
  std::unique_ptr<WorkFile> values_;
};

// Statistics, vocabularies and ids; its last act is to note that they are complete.
StatusOr<EncodingState> TextRun::MakeEncoding(const TextPassResult& text, const RowPlaces& places) {
  std::vector<GivenVocabulary> given;
  EncodingState state = given_;
  if (!options_.vocabulary_from.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(given, ReadGivenVocabularies(options_, plan_, state, values_.get()));
  }
  ELASTOR_RETURN_IF_ERROR(values_->Map());
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<WorkFile> counts, WorkFile::Open(Work("counts")));
  ELASTOR_ASSIGN_OR_RETURN(
      const Measures measures,
      MeasureRows(options_, plan_, text, places, *rows_, *values_, pool_, counts.get()));
  ELASTOR_RETURN_IF_ERROR(counts->Map());
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<WorkFile> ids, WorkFile::Open(Work("ids")));
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<WorkFile> scratch,
                           WorkFile::Open(Work("scratch")));
  const std::string folder = writer_->partial_path() + "/" + kVocabularyFolder;
  ELASTOR_RETURN_IF_ERROR(MakeDirectory(folder));
  ELASTOR_ASSIGN_OR_RETURN(
      const RankedValues ranked,
      RankValues(options_, plan_, text, measures, given,
                 {values_.get(), counts.get(), ids.get(), scratch.get(), folder}, pool_));
  if (options_.vocabulary_from.empty()) state.scales = ScalesOf(plan_, measures);
  state.table_rows = ranked.table_rows;
  state.vocabularies.clear();
  for (const SavedVocabulary& saved : ranked.vocabularies) {
    state.vocabularies.push_back(saved.checksum);
  }
  if (!options_.vocabulary_from.empty()) state.unknown_shares = UnknownShares(plan_, ranked);
  ELASTOR_RETURN_IF_ERROR(
      WriteFileAtomically(writer_->partial_path() + "/" + kStatisticsFile,
                          StatisticsJson(plan_, measures, ranked, text.bad_rows)));
  // Ids have no checksum: whoever reads the state must find them as they are.
  ELASTOR_RETURN_IF_ERROR(ids->Sync());
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(Work(kStateFile), StateJson(state)));
  return state;
}

Status TextRun::Run() {
  if (!options_.vocabulary_from.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(given_, ReadGivenEncoding(options_.vocabulary_from, plan_));
  }
  ELASTOR_ASSIGN_OR_RETURN(rows_, WorkFile::Open(Work("rows")));
  ELASTOR_ASSIGN_OR_RETURN(values_, WorkFile::Open(Work("values")));
  ELASTOR_ASSIGN_OR_RETURN(
      const TextPassResult text,
      RunTextPass(options_, plan_, inputs_, {Work("segments"), rows_.get(), values_.get()}, pool_));
  report_->bad_rows = text.bad_rows;
  report_->text_bytes = text.text_bytes;
  report_->segments = static_cast<int64_t>(text.runs.size());
  const RowPlaces places(plan_, text.chunks, input_splits_);
  if (places.rows(0) + places.rows(1) + places.rows(2) == 0) {
    return UserError(inputs_.front() + ": no rows found");
  }
  std::error_code error;
  EncodingState state;
  if (fs::exists(Work(kStateFile), error)) {
    ELASTOR_ASSIGN_OR_RETURN(state, ReadState(Work(kStateFile)));
  } else {
    ELASTOR_ASSIGN_OR_RETURN(state, MakeEncoding(text, places));
  }
  report_->unknown_shares = state.unknown_shares;
  values_.reset();

  DatasetInfo info = writer_->info();
  for (size_t i = 0; i < info.categorical.size(); ++i) {
    info.categorical[i].ids = state.table_rows[i];
  }
  writer_->SetInfo(info);
  writer_->set_vocabularies(state.vocabularies);
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<WorkFile> ids, WorkFile::Open(Work("ids")));
  Encoding encoding = {state.scales, {}, plan_.id_bytes()};
  encoding.ids_at = PlaceIds(text, encoding.id_bytes, ids.get());
  ELASTOR_RETURN_IF_ERROR(ids->Map());
  ELASTOR_RETURN_IF_ERROR(
      WriteBlocks(options_, plan_, text, places, encoding, *rows_, *ids, pool_, writer_));
  for (const fs::directory_entry& file : fs::directory_iterator(writer_->work_path(), error)) {
    report_->work_bytes += static_cast<int64_t>(file.file_size(error));
  }
  return writer_->Commit(state.scales);
}

// A file that stands in two splits would be tested on what it has taught.
Status CheckSplitInputs(const PrepareOptions& options) {
  std::map<std::string, const char*> splits;
  for (const auto& [paths, flag] : {std::pair(&options.inputs, "--input"),
                                    std::pair(&options.validation_inputs, "--validation_input"),
                                    std::pair(&options.test_inputs, "--test_input")}) {
    for (const std::string& path : *paths) {
      std::error_code error;
      const fs::path file = fs::weakly_canonical(path, error);
      const auto [first, is_new] = splits.emplace(error ? path : file.string(), flag);
      if (is_new || first->second == flag) continue;
      return UserError(path + ": stands in " + first->second + " and in " + flag +
                       "; expected other rows in each split");
    }
  }
  return OkStatus();
}

Status CheckOptions(const PrepareOptions& options) {
  const bool synthetic = options.schema.layout() == Schema::SYNTHETIC;
  const bool by_input = !options.validation_inputs.empty() || !options.test_inputs.empty();
  if (options.output_dir.empty()) return UserError("--output_dir is missing");
  if (synthetic && (by_input || !options.inputs.empty())) {
    return UserError("--input is not used by layout SYNTHETIC");
  }
  if (synthetic && !options.vocabulary_from.empty()) {
    return UserError("--vocabulary_from is not used by layout SYNTHETIC");
  }
  if (!synthetic && options.inputs.empty() && !by_input) return UserError("--input is missing");
  const SplitPlan& split = options.schema.split();
  if (by_input && split.train() + split.validation() + split.test() > 0) {
    return UserError(
        "--validation_input and --test_input split by file: remove the shares of "
        "`split` from the schema");
  }
  return CheckSplitInputs(options);
}

// Whether there is an unfinished run of this identity, to be taken up.
StatusOr<bool> IsUnfinished(const PrepareOptions& options, const std::string& identity,
                            const DatasetWriter& writer) {
  std::error_code error;
  if (options.restart || !fs::exists(writer.begun_path(), error)) return false;
  ELASTOR_ASSIGN_OR_RETURN(const std::string begun, ReadFile(writer.begun_path()));
  const std::string difference = IdentityDifference(begun, identity);
  if (difference.empty()) return options.schema.layout() != Schema::SYNTHETIC;
  return UserError(writer.partial_path() + ": an unfinished run with " + difference +
                   "; repeat that command to go on with it, or add --restart to begin anew");
}

Status RunToTheEnd(const PrepareOptions& options, const std::string& identity, ThreadPool* pool,
                   DatasetWriter* writer, PrepareReport* report) {
  ELASTOR_ASSIGN_OR_RETURN(const bool unfinished, IsUnfinished(options, identity, *writer));
  if (unfinished && writer->complete()) return writer->Publish();
  if (unfinished) {
    ELASTOR_RETURN_IF_ERROR(writer->Continue(pool));
  } else {
    ELASTOR_RETURN_IF_ERROR(writer->Clear());
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(writer->begun_path(), identity));
  }
  const Status status = options.schema.layout() == Schema::SYNTHETIC
                            ? WriteSynthetic(options, pool, writer)
                            : TextRun(options, pool, writer, report).Run();
  // What the user must change makes it another run; a machine can be put right.
  if (status.code() == StatusCode::kUser) writer->Discard();
  return status;
}

}  // namespace

StatusOr<PrepareReport> Prepare(const PrepareOptions& options) {
  const auto begin = Clock::now();
  const double cpu_begin = CpuSeconds();
  ELASTOR_RETURN_IF_ERROR(CheckOptions(options));
  ELASTOR_ASSIGN_OR_RETURN(const std::string identity, RunIdentity(options));
  ThreadPool pool(options.threads);
  PrepareReport report;
  const bool synthetic = options.schema.layout() == Schema::SYNTHETIC;
  const DatasetInfo info =
      synthetic ? SyntheticInfo(options.schema) : PreparePlan(options.schema).Info();
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<DatasetWriter> writer,
                           DatasetWriter::Open(options.output_dir, info));
  ELASTOR_RETURN_IF_ERROR(RunToTheEnd(options, identity, &pool, writer.get(), &report));
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> made, Dataset::Open(options.output_dir));
  std::copy_n(made->info().rows, 3, report.rows);
  report.best_auc = made->info().best_auc;
  for (const DatasetInfo::Categorical& field : made->info().categorical) {
    if (field.shares < 0) report.ids += field.ids;
  }
  report.cpu_seconds = CpuSeconds() - cpu_begin;
  report.seconds = SecondsSince(begin);
  return report;
}

}  // namespace elastor
