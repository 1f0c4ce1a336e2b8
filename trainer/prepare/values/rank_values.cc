#include "trainer/prepare/values/rank_values.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "core/base/file.h"
#include "core/base/text.h"
#include "trainer/prepare/values/kept_values.h"
#include "trainer/prepare/values/parallel_tasks.h"
#include "trainer/prepare/values/value_merge.h"

namespace elastor {
namespace {

constexpr int64_t kMostPartValues = 1 << 20;
// Memory, in bytes, that a value takes while its part is merged, besides its place in the runs.
constexpr int64_t kBytesPerPartValue = 128;

// In a code: the rest is the training count of a value whose id goes by rank.
constexpr uint64_t kByRank = uint64_t{1} << 63;

// A run of the data, or of a given vocabulary.
struct Source {
  int column;  // among those of the table; -1: given
  const uint32_t* counts[3];
  int64_t ids_at;    // of the run, in the file of ids
  int64_t first_id;  // of a given vocabulary
};

// Values of a table between two bounds.
struct Part {
  int table;
  int number;
  int64_t codes = 0;     // distinct values
  int64_t codes_at = 0;  // u64 each in the scratch file: the id, or kByRank and the training count
  KeptValues kept;       // in the scratch file
  std::map<uint64_t, int64_t> classes;     // kept values by count; then the first id of each class
  std::vector<ValueTallyBuilder> tallies;  // by column of the table
};

struct Table {
  std::vector<int> columns;
  const GivenVocabulary* given = nullptr;
  bool text = false;
  uint64_t min_count = 1;
  std::vector<Source> sources;
  std::vector<ValueRunView> runs;  // of the sources
  int64_t run_bytes = 0;
  std::vector<std::vector<Range>> ranges;
};

// What merging a part's runs gives.
struct MergedPart {
  std::vector<std::vector<uint64_t>> numbers;  // by run: which of the distinct values each is
  std::vector<uint64_t> codes;                 // by distinct value
  std::vector<std::pair<uint64_t, RunPlace>> kept;
};

class Ranker {
 public:
  Ranker(const PrepareOptions& options, const PreparePlan& plan, const TextPassResult& text,
         const Measures& measures, const std::vector<GivenVocabulary>& given,
         const RankFiles& files, ThreadPool* pool)
      : options_(options),
        plan_(plan),
        text_(text),
        measures_(measures),
        given_(given),
        files_(files),
        pool_(pool) {}

  StatusOr<RankedValues> Run();

 private:
  void MakeTables();
  void MakeParts();
  Status MergePart(Part* part);
  uint64_t MergeValue(const Table& table, const std::vector<RunPlace>& places,
                      std::vector<SplitCounts>* counts, MergedPart* merged) const;
  void TallyValue(const Table& table, const std::vector<SplitCounts>& counts, uint64_t code,
                  std::string_view value, Part* part) const;
  Status WritePart(const MergedPart& merged, Part* part) const;
  void ForgetPart(const Part& part) const;
  Status ChooseIds();
  Status TranslatePart(Part* part) const;
  Status OrderByNumber(const Source& source, const ValueRunView& run) const;
  Status SaveVocabulary(int table);
  void MergeTallies();
  Status WriteIds(int64_t at, const std::vector<uint64_t>& ids) const;
  Status ReadIds(int64_t at, int64_t count, std::vector<uint64_t>* ids) const;

  const PrepareOptions& options_;
  const PreparePlan& plan_;
  const TextPassResult& text_;
  const Measures& measures_;
  const std::vector<GivenVocabulary>& given_;
  const RankFiles files_;
  ThreadPool* const pool_;
  std::vector<Table> tables_;  // by column; without columns where another's is used
  std::vector<Part> parts_;
  RankedValues result_;
};

void Ranker::MakeTables() {
  tables_.resize(plan_.ids.size());
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    const PreparePlan::IdColumn& column = plan_.ids[i];
    Table& table = tables_[column.table];
    table.columns.push_back(static_cast<int>(i));
    table.text = column.text;
    table.min_count = std::max<int64_t>(plan_.ids[column.table].field->min_count(), 1);
    if (!given_.empty() && column.text) table.given = &given_[column.table];
    for (size_t segment = 0; segment < text_.runs.size(); ++segment) {
      const ValueRun& run = text_.runs[segment][i];
      Source source = {
          static_cast<int>(table.columns.size()) - 1, {}, result_.ids_at[segment][i], 0};
      for (int split = 0; split < 3; ++split) {
        const int64_t at = measures_.counts[segment][i].at[split];
        if (at < 0) continue;
        source.counts[split] = reinterpret_cast<const uint32_t*>(files_.counts->data() + at);
      }
      table.sources.push_back(source);
      table.runs.emplace_back(run, *files_.values);
      table.run_bytes += run.bytes;
    }
  }
  for (Table& table : tables_) {
    if (table.given == nullptr) continue;
    for (size_t i = 0; i < table.given->runs.size(); ++i) {
      table.sources.push_back({-1, {}, 0, table.given->first_ids[i]});
      table.runs.emplace_back(table.given->runs[i], *files_.values);
      table.run_bytes += table.given->runs[i].bytes;
    }
  }
}

void Ranker::MakeParts() {
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].columns.empty()) continue;
    int64_t all_values = 1;
    for (const ValueRunView& run : tables_[i].runs) all_values += run.size();
    const int64_t value_bytes = kBytesPerPartValue + tables_[i].run_bytes / all_values;
    const int64_t values = std::clamp<int64_t>(
        options_.memory_bytes / (pool_->threads() * value_bytes), 1024, kMostPartValues);
    tables_[i].ranges = CutRuns(tables_[i].runs, values);
    for (size_t part = 0; part < tables_[i].ranges.size(); ++part) {
      parts_.push_back({static_cast<int>(i), static_cast<int>(part), 0, 0, {}, {}, {}});
    }
  }
}

// Adds up the counts of a value by column of the table, and returns its code.
uint64_t Ranker::MergeValue(const Table& table, const std::vector<RunPlace>& places,
                            std::vector<SplitCounts>* counts, MergedPart* merged) const {
  std::fill(counts->begin(), counts->end(), SplitCounts{0, 0, 0});
  uint64_t given_id = 0;
  for (const RunPlace& place : places) {
    const Source& source = table.sources[place.run];
    if (source.column < 0) {
      given_id = source.first_id + table.runs[place.run].number(place.at);
      continue;
    }
    merged->numbers[place.run].push_back(merged->codes.size());
    for (int split = 0; split < 3; ++split) {
      if (source.counts[split] == nullptr) continue;
      (*counts)[source.column][split] += source.counts[split][place.at];
    }
  }
  const RunPlace& first = places.front();
  if (!table.text) return table.runs[first.run].prefix(first.at);
  if (table.given != nullptr && (given_id > 0 || !options_.grow)) return given_id;
  if (table.runs[first.run].length(first.at) == 0) return 0;
  uint64_t count = 0;
  for (const SplitCounts& of_column : *counts) count += of_column[0];
  if (count < table.min_count) return 0;
  merged->kept.push_back({count, first});
  return kByRank | count;
}

void Ranker::TallyValue(const Table& table, const std::vector<SplitCounts>& counts, uint64_t code,
                        std::string_view value, Part* part) const {
  using Kind = ValueTallyBuilder::Kind;
  Kind kind = Kind::kKnown;
  if (table.text && code == 0) kind = value.empty() ? Kind::kMissing : Kind::kUnknown;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    part->tallies[i].Add(value, kind, counts[i]);
  }
}

Status Ranker::MergePart(Part* part) {
  const Table& table = tables_[part->table];
  const std::vector<Range>& ranges = table.ranges[part->number];
  for (const int column : table.columns) {
    SplitCounts values;
    for (int split = 0; split < 3; ++split) values[split] = measures_.splits[split].values[column];
    part->tallies.emplace_back(values);
  }
  MergedPart merged;
  merged.numbers.resize(table.sources.size());
  for (size_t run = 0; run < ranges.size(); ++run) {
    if (table.sources[run].column >= 0) merged.numbers[run].reserve(ranges[run].size());
  }
  std::vector<SplitCounts> counts(table.columns.size());
  ValueMerge merge(table.runs, ranges);
  for (const std::vector<RunPlace>* places = &merge.Next(); !places->empty();
       places = &merge.Next()) {
    const uint64_t code = MergeValue(table, *places, &counts, &merged);
    merged.codes.push_back(code);
    ShortText short_text(0, 0);
    const RunPlace& first = places->front();
    TallyValue(table, counts, code, table.runs[first.run].Value(first.at, &short_text), part);
  }
  ELASTOR_RETURN_IF_ERROR(WritePart(merged, part));
  ForgetPart(*part);
  return OkStatus();
}

Status Ranker::WritePart(const MergedPart& merged, Part* part) const {
  const Table& table = tables_[part->table];
  const std::string_view bytes(reinterpret_cast<const char*>(merged.codes.data()),
                               merged.codes.size() * sizeof(uint64_t));
  part->codes = static_cast<int64_t>(merged.codes.size());
  part->codes_at = files_.scratch->Reserve(static_cast<int64_t>(bytes.size()));
  ELASTOR_RETURN_IF_ERROR(files_.scratch->WriteAt(part->codes_at, bytes));
  for (size_t run = 0; run < merged.numbers.size(); ++run) {
    const Source& source = table.sources[run];
    if (source.column < 0) continue;
    const int64_t begin = table.ranges[part->number][run].begin;
    ELASTOR_RETURN_IF_ERROR(
        WriteIds(source.ids_at + begin * result_.id_bytes, merged.numbers[run]));
  }
  for (const auto& [count, place] : merged.kept) ++part->classes[count];
  ELASTOR_ASSIGN_OR_RETURN(part->kept, WriteKeptValues(table.runs, merged.kept, files_.scratch));
  return OkStatus();
}

// Gives back the memory behind what only this part reads.
void Ranker::ForgetPart(const Part& part) const {
  const Table& table = tables_[part.table];
  for (size_t run = 0; run < table.runs.size(); ++run) {
    const Range& range = table.ranges[part.number][run];
    table.runs[run].Forget(range.begin, range.end);
    for (const uint32_t* counts : table.sources[run].counts) {
      if (counts == nullptr) continue;
      const char* at = reinterpret_cast<const char*>(counts + range.begin);
      files_.counts->Forget(at - files_.counts->data(), range.size() * int64_t{sizeof(uint32_t)});
    }
  }
}

// Gives every class of every part its first id: higher counts first, then by part.
Status Ranker::ChooseIds() {
  std::vector<std::map<uint64_t, int64_t>> classes(tables_.size());
  for (const Part& part : parts_) {
    for (const auto& [count, values] : part.classes) classes[part.table][count] += values;
  }
  result_.table_rows.resize(plan_.ids.size());
  for (size_t i = 0; i < tables_.size(); ++i) {
    const Table& table = tables_[i];
    int64_t next = table.given == nullptr ? 1 : table.given->saved.rows;
    for (auto size = classes[i].rbegin(); size != classes[i].rend(); ++size) {
      next += std::exchange(size->second, next);
    }
    if (!table.text && !table.columns.empty()) next = plan_.ids[i].field->buckets();
    if (table.text && result_.id_bytes == 4 && next > int64_t{1} << 32) {
      return UserError(StrCat("field ", plan_.ids[i].field->name(), ": found ", next - 1,
                              " values to keep, expected fewer than 2^32; raise min_count or use "
                              "HASH"));
    }
    for (const int column : table.columns) result_.table_rows[column] = next;
  }
  for (Part& part : parts_) {
    for (auto& [count, values] : part.classes) {
      int64_t& next = classes[part.table][count];
      values = std::exchange(next, next + values);
    }
  }
  return OkStatus();
}

Status Ranker::TranslatePart(Part* part) const {
  const Table& table = tables_[part->table];
  std::vector<uint64_t> codes(part->codes);
  ELASTOR_RETURN_IF_ERROR(files_.scratch->ReadAt(part->codes_at,
                                                 part->codes * int64_t{sizeof(uint64_t)},
                                                 reinterpret_cast<char*>(codes.data())));
  for (uint64_t& code : codes) {
    if ((code & kByRank) != 0) code = part->classes.at(code & ~kByRank)++;
  }
  std::vector<uint64_t> ids;
  for (size_t run = 0; run < table.sources.size(); ++run) {
    const Range& range = table.ranges[part->number][run];
    if (table.sources[run].column < 0 || range.size() == 0) continue;
    const int64_t at = table.sources[run].ids_at + range.begin * result_.id_bytes;
    ELASTOR_RETURN_IF_ERROR(ReadIds(at, range.size(), &ids));
    for (uint64_t& id : ids) id = codes[id];
    ELASTOR_RETURN_IF_ERROR(WriteIds(at, ids));
  }
  return OkStatus();
}

Status Ranker::OrderByNumber(const Source& source, const ValueRunView& run) const {
  std::vector<uint64_t> sorted;
  ELASTOR_RETURN_IF_ERROR(ReadIds(source.ids_at, run.size(), &sorted));
  std::vector<uint64_t> ids(sorted.size());
  for (int64_t at = 0; at < run.size(); ++at) ids[run.number(at)] = sorted[at];
  run.Forget(0, run.size());
  return WriteIds(source.ids_at, ids);
}

Status Ranker::WriteIds(int64_t at, const std::vector<uint64_t>& ids) const {
  if (result_.id_bytes == 8) {
    return files_.ids->WriteAt(at, {reinterpret_cast<const char*>(ids.data()), ids.size() * 8});
  }
  const std::vector<uint32_t> narrow(ids.begin(), ids.end());
  return files_.ids->WriteAt(at, {reinterpret_cast<const char*>(narrow.data()), ids.size() * 4});
}

Status Ranker::ReadIds(int64_t at, int64_t count, std::vector<uint64_t>* ids) const {
  ids->resize(count);
  if (result_.id_bytes == 8) {
    return files_.ids->ReadAt(at, count * 8, reinterpret_cast<char*>(ids->data()));
  }
  std::vector<uint32_t> narrow(count);
  const Status status = files_.ids->ReadAt(at, count * 4, reinterpret_cast<char*>(narrow.data()));
  std::copy(narrow.begin(), narrow.end(), ids->begin());
  return status;
}

Status Ranker::SaveVocabulary(int table) {
  if (tables_[table].columns.empty() || !tables_[table].text) return OkStatus();
  const std::string path =
      files_.vocabulary_folder + "/" + VocabularyFileName(plan_.ids[table].field->name());
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<VocabularyFileWriter> writer,
                           VocabularyFileWriter::Open(path));
  if (const GivenVocabulary* given = tables_[table].given; given != nullptr) {
    ELASTOR_RETURN_IF_ERROR(writer->AddFile(given->path, given->saved));
  }
  std::vector<KeptValuesReader> readers;
  // Readers by (count descending, part); one with nothing left is not in it.
  std::map<std::pair<uint64_t, size_t>, size_t> order;
  const auto advance = [&](size_t reader) -> Status {
    bool found;
    ELASTOR_RETURN_IF_ERROR(readers[reader].Next(&found));
    if (found) order[{~readers[reader].count(), reader}] = reader;
    return OkStatus();
  };
  for (const Part& part : parts_) {
    if (part.table == table) readers.emplace_back(*files_.scratch, part.kept);
  }
  for (size_t reader = 0; reader < readers.size(); ++reader) {
    ELASTOR_RETURN_IF_ERROR(advance(reader));
  }
  while (!order.empty()) {
    const size_t reader = order.begin()->second;
    order.erase(order.begin());
    ELASTOR_RETURN_IF_ERROR(writer->Add(readers[reader].value(), readers[reader].count()));
    ELASTOR_RETURN_IF_ERROR(advance(reader));
  }
  ELASTOR_ASSIGN_OR_RETURN(result_.vocabularies[table], writer->Finish());
  return OkStatus();
}

void Ranker::MergeTallies() {
  std::vector<ValueTallyBuilder> sums;
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    SplitCounts values;
    for (int split = 0; split < 3; ++split) values[split] = measures_.splits[split].values[i];
    sums.emplace_back(values);
  }
  for (const Part& part : parts_) {
    for (size_t i = 0; i < part.tallies.size(); ++i) {
      sums[tables_[part.table].columns[i]].Append(part.tallies[i]);
    }
  }
  for (ValueTallyBuilder& sum : sums) result_.tallies.push_back(sum.Finish());
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    for (int split = 0; plan_.ids[i].keyed && split < 3; ++split) {
      result_.tallies[i].missing[split] = measures_.splits[split].keys[i].missing;
    }
  }
}

StatusOr<RankedValues> Ranker::Run() {
  result_.id_bytes = plan_.id_bytes();
  result_.ids_at = PlaceIds(text_, result_.id_bytes, files_.ids);
  result_.vocabularies.resize(plan_.ids.size());
  MakeTables();
  MakeParts();
  const auto report = [&](double share) {
    if (options_.progress) options_.progress({"ranking values", share, 0, 0});
  };
  report(0);
  const int64_t parts = static_cast<int64_t>(parts_.size());
  ELASTOR_RETURN_IF_ERROR(RunTasks(parts, pool_, [&](int64_t i) { return MergePart(&parts_[i]); }));
  report(0.5);
  ELASTOR_RETURN_IF_ERROR(ChooseIds());
  ELASTOR_RETURN_IF_ERROR(RunTasks(static_cast<int64_t>(tables_.size()), pool_,
                                   [&](int64_t i) { return SaveVocabulary(static_cast<int>(i)); }));
  ELASTOR_RETURN_IF_ERROR(
      RunTasks(parts, pool_, [&](int64_t i) { return TranslatePart(&parts_[i]); }));
  report(0.8);
  std::vector<std::pair<const Source*, const ValueRunView*>> runs;
  for (const Table& table : tables_) {
    for (size_t run = 0; run < table.sources.size(); ++run) {
      if (table.sources[run].column >= 0) runs.push_back({&table.sources[run], &table.runs[run]});
    }
  }
  ELASTOR_RETURN_IF_ERROR(RunTasks(static_cast<int64_t>(runs.size()), pool_, [&](int64_t i) {
    return OrderByNumber(*runs[i].first, *runs[i].second);
  }));
  MergeTallies();
  return std::move(result_);
}

}  // namespace

std::vector<std::vector<int64_t>> PlaceIds(const TextPassResult& text, int id_bytes,
                                           WorkFile* ids) {
  std::vector<std::vector<int64_t>> places(text.runs.size());
  for (size_t segment = 0; segment < text.runs.size(); ++segment) {
    for (const ValueRun& run : text.runs[segment]) {
      places[segment].push_back(ids->Reserve(run.size * id_bytes));
    }
  }
  return places;
}

StatusOr<RankedValues> RankValues(const PrepareOptions& options, const PreparePlan& plan,
                                  const TextPassResult& text, const Measures& measures,
                                  const std::vector<GivenVocabulary>& given, const RankFiles& files,
                                  ThreadPool* pool) {
  return Ranker(options, plan, text, measures, given, files, pool).Run();
}

}  // namespace elastor
