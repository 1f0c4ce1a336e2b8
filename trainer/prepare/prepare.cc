#include "trainer/prepare/prepare.h"

#include <limits.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "core/base/text.h"
#include "core/base/thread_pool.h"
#include "core/base/utf8.h"
#include "core/process/claimed_folder.h"
#include "trainer/data/block_format.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/data/saved_vocabulary.h"
#include "trainer/data/stdin_input.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/layouts.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/rows/row_places.h"
#include "trainer/prepare/rows/time_splits.h"
#include "trainer/prepare/run_identity.h"
#include "trainer/prepare/schema_file.h"
#include "trainer/prepare/side_tables.h"
#include "trainer/prepare/text_pass.h"
#include "trainer/prepare/values/data_warnings.h"
#include "trainer/prepare/values/encoding_state.h"
#include "trainer/prepare/values/field_statistics.h"
#include "trainer/prepare/values/measure.h"
#include "trainer/prepare/values/rank_values.h"
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
  Status CheckRows(const TextPassResult& text) const;
  StatusOr<EncodingState> MakeEncoding(const TextPassResult& text, const SplitPlaces& places);
  StatusOr<EncodingState> TakeUpEncoding() const;
  Status CheckScaled(const Measures& measures, const std::vector<NumericScale>& scales) const;
  std::string Work(const char* name) const { return writer_->work_path() + "/" + name; }
  std::string StatisticsPath() const { return writer_->partial_path() + "/" + kStatisticsFile; }
  std::string VocabularyFolder() const { return writer_->partial_path() + "/" + kVocabularyFolder; }

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

// User error without any row; an input without one is told.
Status TextRun::CheckRows(const TextPassResult& text) const {
  std::vector<int64_t> rows(inputs_.size(), 0);
  for (const SpilledChunk& chunk : text.chunks) rows[chunk.input] += chunk.rows;
  if (std::ranges::max(rows) == 0) return UserError(inputs_.front() + ": no rows found");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == 0 && options_.warn) options_.warn(inputs_[i] + ": has no rows");
  }
  return OkStatus();
}

// User error when a scaled value is none of a float: the blocks would hold infinity.
Status TextRun::CheckScaled(const Measures& measures,
                            const std::vector<NumericScale>& scales) const {
  for (const SplitTally& split : measures.splits) {
    for (size_t i = 0; i < scales.size(); ++i) {
      const NumericTally& tally = split.numeric[i];
      for (const double value : {tally.least, tally.largest}) {
        const double scaled = (value - scales[i].mean) / scales[i].stddev;
        if (tally.count == 0 || std::abs(scaled) <= std::numeric_limits<float>::max()) continue;
        return UserError(
            Format("field %s: the value %g is %g times the deviation %g away from "
                   "the mean; expected less than 3.4e38 times",
                   plan_.numeric[i]->name().c_str(), value, std::abs(scaled), scales[i].stddev));
      }
    }
  }
  return OkStatus();
}

// Statistics, vocabularies and ids; its last act is to note that they are complete.
StatusOr<EncodingState> TextRun::MakeEncoding(const TextPassResult& text,
                                              const SplitPlaces& places) {
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
  if (options_.vocabulary_from.empty()) state.scales = ScalesOf(plan_, measures);
  ELASTOR_RETURN_IF_ERROR(CheckScaled(measures, state.scales));
  ELASTOR_RETURN_IF_ERROR(counts->Map());
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<WorkFile> ids, WorkFile::Open(Work("ids")));
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<WorkFile> scratch,
                           WorkFile::Open(Work("scratch")));
  const std::string folder = VocabularyFolder();
  ELASTOR_RETURN_IF_ERROR(MakeWithin(folder));
  ELASTOR_ASSIGN_OR_RETURN(
      const RankedValues ranked,
      RankValues(options_, plan_, text, measures, given,
                 {values_.get(), counts.get(), ids.get(), scratch.get(), folder}, pool_));
  const std::vector<std::string> warnings = DataWarnings(plan_, text, measures, ranked);
  for (const std::string& line : warnings) {
    if (options_.warn) options_.warn(line);
  }
  state.table_rows = ranked.table_rows;
  state.vocabularies.clear();
  for (const SavedVocabulary& saved : ranked.vocabularies) {
    state.vocabularies.push_back(saved.checksum);
  }
  if (!options_.vocabulary_from.empty()) state.unknown_shares = UnknownShares(plan_, ranked);
  const std::string statistics = StatisticsJson(plan_, measures, ranked, text.bad_rows, warnings);
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(StatisticsPath(), statistics));
  state.statistics_checksum = HashTextOf(statistics);
  // Whoever reads the state must find the ids as they are.
  ELASTOR_RETURN_IF_ERROR(ids->Sync());
  ELASTOR_RETURN_IF_ERROR(ids->Map());
  ELASTOR_ASSIGN_OR_RETURN(state.ids_checksum, ids->Checksum());
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(Work(kStateFile), StateJson(state)));
  return state;
}

// What an earlier run has made of all text.
StatusOr<EncodingState> TextRun::TakeUpEncoding() const {
  ELASTOR_ASSIGN_OR_RETURN(const EncodingState state, ReadState(Work(kStateFile)));
  ELASTOR_RETURN_IF_ERROR(CheckFile(StatisticsPath(), state.statistics_checksum));
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    if (state.vocabularies[i].empty()) continue;
    const std::string file = VocabularyFileName(plan_.ids[i].field->name());
    ELASTOR_RETURN_IF_ERROR(CheckFile(VocabularyFolder() + "/" + file, state.vocabularies[i]));
  }
  return state;
}

Status TextRun::Run() {
  if (!options_.vocabulary_from.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(given_, ReadGivenEncoding(options_.vocabulary_from, plan_));
  }
  ELASTOR_ASSIGN_OR_RETURN(rows_, WorkFile::Open(Work("rows")));
  ELASTOR_ASSIGN_OR_RETURN(values_, WorkFile::Open(Work("values")));
  ELASTOR_ASSIGN_OR_RETURN(TextPassResult text,
                           RunTextPass(options_, plan_, inputs_,
                                       {Work("segments"), Work("history"), Work("negatives"),
                                        rows_.get(), values_.get()},
                                       pool_));
  report_->bad_rows = text.bad_rows;
  for (int i = 0; i < options_.schema.lookup_size(); ++i) {
    const Lookup& lookup = options_.schema.lookup(i);
    report_->missing_keys.emplace_back(lookup.by() + "_in_" + lookup.file(), text.missing_keys[i]);
  }
  report_->text_bytes = text.text_bytes;
  report_->segments = static_cast<int64_t>(text.runs.size());
  ELASTOR_RETURN_IF_ERROR(CheckRows(text));
  std::optional<TimeSplits> times;
  if (plan_.split_by_time) {
    ELASTOR_ASSIGN_OR_RETURN(times, SplitByTime(plan_, *rows_, pool_, &text.chunks));
  }
  const SplitPlaces places(plan_, text.chunks, input_splits_, times);
  std::error_code error;
  EncodingState state;
  if (fs::exists(Work(kStateFile), error)) {
    ELASTOR_ASSIGN_OR_RETURN(state, TakeUpEncoding());
  } else {
    ELASTOR_ASSIGN_OR_RETURN(state, MakeEncoding(text, places));
  }
  report_->unknown_shares = state.unknown_shares;
  values_.reset();

  DatasetInfo info = writer_->info();
  for (size_t i = 0; i < info.categorical.size(); ++i) {
    info.categorical[i].ids = state.table_rows[i];
    if (given_.vocabularies.empty() || given_.vocabularies[i].empty()) continue;
    info.categorical[i].grown_from = given_.grown_from[i];
    if (state.vocabularies[i] == given_.vocabularies[i]) continue;
    info.categorical[i].grown_from.push_back({given_.vocabularies[i], given_.table_rows[i]});
  }
  writer_->SetInfo(info);
  writer_->set_vocabularies(state.vocabularies);
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<WorkFile> ids, WorkFile::Open(Work("ids")));
  Encoding encoding = {state.scales, {}, plan_.id_bytes()};
  encoding.ids_at = PlaceIds(text, encoding.id_bytes, ids.get());
  ELASTOR_RETURN_IF_ERROR(ids->Map());
  ELASTOR_ASSIGN_OR_RETURN(const std::string ids_checksum, ids->Checksum());
  if (ids_checksum != state.ids_checksum) {
    return MachineError(Work("ids") + ": damaged; begin anew with --restart");
  }
  ELASTOR_RETURN_IF_ERROR(
      WriteBlocks(options_, plan_, text, places, encoding, *rows_, *ids, pool_, writer_));
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> files, NamesIn(writer_->work_path()));
  for (const std::string& file : files) {
    report_->work_bytes += static_cast<int64_t>(fs::file_size(Work(file.c_str()), error));
  }
  return writer_->Commit(state.scales);
}

const LayoutWriter& WriterOf(const Schema& schema) {
  constexpr auto layout = [](const LayoutRow& row) { return row.rules.layout; };
  return std::ranges::find(kLayouts, schema.layout(), layout)->writer;
}

// A file that stands in two splits would be tested on what it has taught, and rows of one that
// stands twice in a split would count twice.
Status CheckSplitInputs(const PrepareOptions& options) {
  std::map<std::string, const char*> splits;
  for (const auto& [paths, flag] : {std::pair(&options.inputs, "--input"),
                                    std::pair(&options.validation_inputs, "--validation_input"),
                                    std::pair(&options.test_inputs, "--test_input")}) {
    for (const std::string& path : *paths) {
      std::error_code error;
      const fs::path file = fs::weakly_canonical(path, error);
      const auto [first, is_new] = splits.emplace(error ? path : file.string(), flag);
      if (is_new) continue;
      if (first->second == flag) {
        return UserError(path + ": stands twice in " + flag + "; expected each file once");
      }
      return UserError(path + ": stands in " + first->second + " and in " + flag +
                       "; expected other rows in each split");
    }
  }
  return OkStatus();
}

bool HasVocabulary(const Field& field) {
  const bool categorical = field.type() == Field::CATEGORICAL || field.type() == Field::MULTI_HOT ||
                           field.type() == Field::SEQUENCE;
  return categorical && field.encoding() == Field::VOCABULARY;
}

// The name of a field with a vocabulary is that of a file, too.
Status CheckVocabularyNames(const Schema& schema) {
  constexpr size_t kMostBytes = NAME_MAX - std::string_view(".tmp").size();
  for (const Field& field : schema.fields()) {
    if (!HasVocabulary(field)) continue;
    const size_t bytes = VocabularyFileName(field.name()).size();
    if (bytes <= kMostBytes) continue;
    return UserError(StrCat("field ", field.name(), ": its vocabulary's file name would have ",
                            bytes, " bytes; expected ", kMostBytes, " at most"));
  }
  return OkStatus();
}

Status CheckOptions(const PrepareOptions& options) {
  const LayoutRules& rules = RulesOf(options.schema);
  const std::string& layout = Schema::Layout_Name(rules.layout);
  const bool no_input = rules.source == RowSource::kNone;
  const bool whole_files = rules.source == RowSource::kWholeFiles;
  const bool by_input = !options.validation_inputs.empty() || !options.test_inputs.empty();
  if (options.output_dir.empty()) return UserError("--output_dir is missing");
  if (!IsUtf8(options.output_dir)) {
    return UserError("--output_dir is not UTF-8; expected a name that the trainer can be given");
  }
  if (no_input && (by_input || !options.inputs.empty())) {
    return UserError("--input is not used by layout " + layout);
  }
  if (rules.makes_fields && !options.vocabulary_from.empty()) {
    return UserError("--vocabulary_from is not used by layout " + layout);
  }
  if (whole_files && options.unlabelled_test) {
    return UserError("--unlabelled_test is not used by layout " + layout);
  }
  if (options.unlabelled_test && options.test_inputs.empty()) {
    return UserError("--unlabelled_test is of the files of --test_input, which is missing");
  }
  if (options.grow && options.vocabulary_from.empty()) {
    return UserError("--grow adds to the vocabularies of --vocabulary_from, which is missing");
  }
  const bool vocabularies = std::ranges::any_of(options.schema.fields(), HasVocabulary);
  if (options.grow && !vocabularies) {
    return UserError(
        "--grow: no field of the schema has a vocabulary; tables of HASH and IDENTITY "
        "have the rows that `buckets` gives, and keys need none");
  }
  if (!no_input && options.inputs.empty() && (!by_input || rules.has_test_files)) {
    return UserError("--input is missing");
  }
  for (const auto* paths : {&options.inputs, &options.validation_inputs, &options.test_inputs}) {
    if (!whole_files || !std::ranges::count(*paths, kStdinPath)) continue;
    return UserError("--input=- is not read in layout " + layout + "; expected files");
  }
  const SplitPlan& split = options.schema.split();
  // Where test rows have a file of their own, the rest may be cut.
  const bool rest = rules.has_test_files && options.validation_inputs.empty() && split.test() == 0;
  const bool planned = split.train() + split.validation() + split.test() > 0;
  if (by_input && !rest && (planned || split.by() == SplitPlan::TIME)) {
    return UserError("--validation_input and --test_input split by file: remove " +
                     std::string(planned ? "the shares of `split`" : "`split`") +
                     " from the schema");
  }
  ELASTOR_RETURN_IF_ERROR(CheckVocabularyNames(options.schema));
  return CheckSplitInputs(options);
}

// Where the set goes: a link stands for the folder it leads to.
StatusOr<std::string> OutputFolder(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path target = fs::canonical(path, error);
  if (!error) return target.string();
  return UserError(path + ": is a link that leads nowhere; expected a folder, or nothing");
}

// Clear removes everything in the folder: nothing but an earlier run's may be there.
Status CheckPartialFolder(const DatasetWriter& writer) {
  std::set<std::string> ours = {fs::path(writer.begun_path()).filename(),
                                fs::path(writer.work_path()).filename(),
                                kMetaFile,
                                kStatisticsFile,
                                kVocabularyFolder,
                                "blocks.journal"};
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    ours.insert(SplitFileName(split));
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(writer.partial_path()));
  for (const fs::path name : names) {
    if (ours.contains(name.extension() == ".tmp" ? name.stem() : name)) continue;
    return UserError(writer.partial_path() + "/" + name.string() +
                     ": is not of an unfinished run, and " + writer.partial_path() +
                     " will be removed; expected it elsewhere");
  }
  return OkStatus();
}

// Whether there is an unfinished run of this identity, to be taken up.
StatusOr<bool> IsUnfinished(const PrepareOptions& options, const std::string& identity,
                            const DatasetWriter& writer) {
  ELASTOR_ASSIGN_OR_RETURN(const bool begins, IsThere(writer.begun_path()));
  if (options.restart || !begins) return false;
  ELASTOR_ASSIGN_OR_RETURN(const std::string begun, ReadFile(writer.begun_path()));
  const std::string difference = IdentityDifference(begun, identity);
  if (difference.empty()) return !MakesItsFields(options.schema);
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
    ELASTOR_RETURN_IF_ERROR(CheckPartialFolder(*writer));
    ELASTOR_RETURN_IF_ERROR(writer->Clear());
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(writer->begun_path(), identity));
  }
  const Status status = WriterOf(options.schema).write(options, pool, writer, report);
  if (status.ok()) return status;
  std::error_code error;
  if (!fs::exists(writer->begun_path(), error)) {
    return MachineError(writer->partial_path() + ": moved or removed while it was written (" +
                        status.message() + ")");
  }
  // What the user must change makes it another run; a machine can be put right, and so can be what
  // a complete set's name is taken by.
  if (status.code() == StatusCode::kUser && !writer->complete()) writer->Discard();
  return status;
}

// Keeps stdin where it is an input, and tells the run from others.
StatusOr<std::string> TakeInputs(const DatasetWriter& writer, PrepareOptions* options) {
  for (const std::vector<std::string>* paths :
       {&options->inputs, &options->validation_inputs, &options->test_inputs}) {
    if (std::ranges::find(*paths, kStdinPath) == paths->end()) continue;
    ELASTOR_ASSIGN_OR_RETURN(const bool copied, KeepStdin(writer.partial_path() + ".stdin"));
    options->restart |= copied;
  }
  return RunIdentity(*options);
}

// What is right for the program but seldom meant.
void WarnOfSplits(const PrepareOptions& options, const DatasetInfo& info) {
  const int64_t train = info.rows[0], validation = info.rows[1];
  if (!options.warn) return;
  const bool has_training = !options.schema.has_split() || options.schema.split().train() > 0;
  if (train == 0) {
    if (options.inputs.empty() || !has_training) return;
    options.warn(
        "no training rows; another `by`, hash_field or train share in the schema's `split` makes "
        "some");
  } else if (validation == 0) {
    options.warn(
        "no validation rows, so training on this set tells no AUC; "
        "--validation_input or a share in the schema's `split` makes some");
  } else if (!options.validation_inputs.empty() && validation > train) {
    options.warn(StrCat("more validation rows (", validation, ") than training rows (", train,
                        "); are --input and --validation_input swapped?"));
  }
}

}  // namespace

DatasetInfo LinesInfo(const Schema& schema) { return PreparePlan(schema).Info(); }

Status WriteLines(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                  PrepareReport* report) {
  return TextRun(options, pool, writer, report).Run();
}

StatusOr<PrepareReport> Prepare(const PrepareOptions& given) {
  const auto begin = Clock::now();
  const double cpu_begin = CpuSeconds();
  PrepareOptions options = given;
  ELASTOR_RETURN_IF_ERROR(CheckOptions(options));
  ELASTOR_RETURN_IF_ERROR(NoteHashes(&options.schema));
  ThreadPool pool(options.threads);
  PrepareReport report;
  const DatasetInfo info = WriterOf(options.schema).info(options.schema);
  ELASTOR_ASSIGN_OR_RETURN(const std::string folder, OutputFolder(options.output_dir));
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<DatasetWriter> writer,
                           DatasetWriter::Open(folder, info));
  const StatusOr<std::string> identity = TakeInputs(*writer, &options);
  if (!identity.ok()) {
    std::error_code not_empty;
    fs::remove(writer->partial_path(), not_empty);
    return identity.status();
  }
  ELASTOR_RETURN_IF_ERROR(RunToTheEnd(options, *identity, &pool, writer.get(), &report));
  const StatusOr<std::unique_ptr<Dataset>> opened = Dataset::Open(folder);
  if (!opened.ok()) return MachineError("what was written: " + opened.status().message());
  const Dataset& dataset = **opened;
  WarnOfSplits(options, dataset.info());
  std::copy_n(dataset.info().rows, 3, report.rows);
  report.best_auc = dataset.info().best_auc;
  for (const DatasetInfo::Label& label : dataset.info().labels) {
    if (label.best_auc >= 0) report.best_aucs.emplace_back(label.name, label.best_auc);
  }
  report.best_gauc = dataset.info().best_gauc;
  for (const DatasetInfo::Categorical& field : dataset.info().categorical) {
    if (field.shares < 0) report.ids += field.ids;
  }
  report.cpu_seconds = CpuSeconds() - cpu_begin;
  report.seconds = SecondsSince(begin);
  return report;
}

}  // namespace elastor
