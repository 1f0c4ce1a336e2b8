#include "trainer/prepare/histories.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "trainer/data/sized_text.h"
#include "trainer/prepare/external_sort.h"
#include "trainer/prepare/rows/history_columns.h"
#include "trainer/prepare/work_appender.h"

namespace elastor {
namespace {

// A row of a user. Its text has the values that it adds to later histories, or is empty.
struct UserRow {
  std::array<uint64_t, 2> user = {};  // XXH3-128 of the text
  int64_t time = 0;
  uint32_t input = 0, chunk = 0, record = 0;
  uint32_t bytes = 0;  // of text

  size_t text_bytes() const { return bytes; }
  auto operator<=>(const UserRow&) const = default;
};

// Which part of the values' file is a record's history. A record without one has begin = end.
struct Part {
  int64_t begin = 0, end = 0;
  auto operator<=>(const Part&) const = default;
};

struct RecordPart {
  int64_t record = 0;  // of all inputs
  Part part;

  static size_t text_bytes() { return 0; }
  auto operator<=>(const RecordPart&) const = default;
};

// Whether `texts` are whole sized texts, several times as many as `values`.
bool AreWholeTexts(std::string_view texts, int values) {
  int64_t count = 0;
  for (size_t at = 0; at < texts.size(); ++count) {
    size_t size = 0;
    for (int shift = 0;; shift += 7) {
      if (at == texts.size() || shift > 28) return false;
      const unsigned char byte = texts[at++];
      size |= static_cast<size_t>(byte & 127) << shift;
      if (byte < 128) break;
    }
    if (size > texts.size() - at) return false;
    at += size;
  }
  return count % values == 0;
}

// Reads all inputs and sorts their rows, for each history.
class RowCollector {
 public:
  using Sort = ExternalSort<UserRow>;

  RowCollector(const PrepareOptions& options, const LogSource& source, ThreadPool* pool)
      : schema_(options.schema),
        memory_bytes_(source.memory_bytes),
        threads_(pool->threads()),
        pass_(options, source, "reading histories", pool) {}

  // `runs`: a file for each history.
  Status Run(const std::vector<WorkFile*>& runs);
  Sort& sort(size_t history) { return *sorts_[history]; }
  const LogPass& pass() const { return pass_; }

 private:
  Status AddChunk(const TextChunk& source, const ParsedChunk& parsed,
                  std::vector<Sort::Batch>* batches);
  // Adds a row, whose columns begin at *column, to the batch of a history.
  void AddRow(size_t history, const ParsedChunk& parsed, const uint64_t* columns, UserRow row,
              Sort::Batch* batch) const;

  const Schema& schema_;
  const int64_t memory_bytes_;
  const int threads_;
  LogPass pass_;
  std::vector<std::unique_ptr<Sort>> sorts_;
  std::vector<std::optional<RowCondition>> conditions_;
};

Status RowCollector::Run(const std::vector<WorkFile*>& runs) {
  for (const History& history : schema_.history()) {
    sorts_.push_back(std::make_unique<Sort>(runs[sorts_.size()]));
    conditions_.emplace_back();
    if (history.where().empty()) continue;
    ELASTOR_ASSIGN_OR_RETURN(conditions_.back(), RowCondition::Parse(history.where()));
  }
  std::vector<std::vector<Sort::Batch>> batches(threads_);
  for (std::vector<Sort::Batch>& of_thread : batches) {
    for (size_t i = 0; i < sorts_.size(); ++i) {
      of_thread.emplace_back(memory_bytes_ / 2 / (threads_ * std::ssize(sorts_)));
    }
  }
  return pass_.Run(
      [&](int thread, const TextChunk& chunk, const ParsedChunk& parsed) {
        return AddChunk(chunk, parsed, &batches[thread]);
      },
      [&](int thread) -> Status {
        for (size_t i = 0; i < sorts_.size(); ++i) {
          ELASTOR_RETURN_IF_ERROR(sorts_[i]->Spill(&batches[thread][i]));
        }
        return OkStatus();
      });
}

Status RowCollector::AddChunk(const TextChunk& source, const ParsedChunk& parsed,
                              std::vector<Sort::Batch>* batches) {
  UserRow row;
  row.input = source.input;
  row.chunk = source.number;
  const uint64_t* columns = parsed.events.data();
  ForEachRow(parsed, [&](int64_t i, uint32_t record) {
    row.record = record;
    row.time = parsed.times[i];
    for (size_t history = 0; history < sorts_.size(); ++history) {
      AddRow(history, parsed, columns, row, &(*batches)[history]);
      columns += 3 + schema_.history(static_cast<int>(history)).beside_size();
    }
  });
  for (size_t i = 0; i < sorts_.size(); ++i) {
    if ((*batches)[i].full()) ELASTOR_RETURN_IF_ERROR(sorts_[i]->Spill(&(*batches)[i]));
  }
  return OkStatus();
}

void RowCollector::AddRow(size_t history, const ParsedChunk& parsed, const uint64_t* columns,
                          UserRow row, Sort::Batch* batch) const {
  const std::string_view user = parsed.TextOf(columns[0]);
  const std::string_view value = parsed.TextOf(columns[2]);
  if (user.empty()) return;
  const std::optional<RowCondition>& where = conditions_[history];
  std::string text;
  if (!value.empty() && (!where || where->Holds(parsed.TextOf(columns[1])))) {
    PutText(value, &text);
    const uint64_t* column = columns + 3;
    for (const HistoryColumn& beside : schema_.history(static_cast<int>(history)).beside()) {
      PutText(beside.time_gap() ? std::to_string(row.time) : parsed.TextOf(*column), &text);
      ++column;
    }
  }
  const XXH128_hash_t hash = XXH3_128bits(user.data(), user.size());
  row.user = {hash.high64, hash.low64};
  row.bytes = static_cast<uint32_t>(text.size());
  batch->Add(row, text);
}

// Goes through the rows of all users and gives each its history. A part is fixed at the first row
// of a time, before any row of that time or of a later one has added its values.
class PartMaker {
 public:
  // `most`: values of a history.
  PartMaker(int64_t most, Appender* texts) : most_(most), texts_(*texts) {}

  // Returns the history of the next row.
  StatusOr<Part> Next(const UserRow& row, std::string_view text) {
    if (row.user != last_.user) begins_.clear();
    if (row.user != last_.user || row.time != last_.time || is_first_) {
      part_ = {begins_.empty() ? texts_.size() : begins_.front(), texts_.size()};
    }
    is_first_ = false;
    last_ = row;
    if (text.empty()) return part_;
    begins_.push_back(texts_.size());
    if (std::ssize(begins_) > most_) begins_.pop_front();
    ELASTOR_RETURN_IF_ERROR(texts_.Append(text));
    return part_;
  }

 private:
  const int64_t most_;
  Appender& texts_;
  bool is_first_ = true;
  UserRow last_;
  Part part_;
  std::deque<int64_t> begins_;  // of the user's last values
};

}  // namespace

std::string RowHistories::PathOf(size_t history, const char* what) const {
  return StrCat(path_, ".", history, ".", what);
}

RowHistories::~RowHistories() {
  for (size_t i = 0; i < files_.size(); ++i) {
    for (const char* what : {"rows", "unordered", "texts", "parts"}) {
      std::remove(PathOf(i, what).c_str());
    }
  }
}

Status RowHistories::Damaged() const {
  return MachineError(path_ + ": working files are damaged; begin anew with --restart");
}

StatusOr<std::unique_ptr<RowHistories>> RowHistories::Make(const PrepareOptions& options,
                                                           const LogSource& source,
                                                           const std::string& path,
                                                           ThreadPool* pool) {
  std::unique_ptr<RowHistories> made(new RowHistories(path));
  const size_t count = options.schema.history_size();
  made->files_.resize(count);
  std::vector<std::unique_ptr<WorkFile>> runs(count);
  std::vector<WorkFile*> run_files;
  for (size_t i = 0; i < count; ++i) {
    ELASTOR_ASSIGN_OR_RETURN(runs[i], WorkFile::Open(made->PathOf(i, "rows")));
    run_files.push_back(runs[i].get());
  }
  RowCollector collector(options, source, pool);
  ELASTOR_RETURN_IF_ERROR(collector.Run(run_files));
  made->first_records_ = collector.pass().FirstRecords();
  const int64_t all_records = made->first_records_.back().back();
  for (size_t i = 0; i < count; ++i) {
    const History& history = options.schema.history(static_cast<int>(i));
    Files& files = made->files_[i];
    files.values = 1 + history.beside_size();
    ELASTOR_ASSIGN_OR_RETURN(files.texts, WorkFile::Open(made->PathOf(i, "texts")));
    ELASTOR_ASSIGN_OR_RETURN(files.parts, WorkFile::Open(made->PathOf(i, "parts")));
    ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<WorkFile> unordered,
                             WorkFile::Open(made->PathOf(i, "unordered")));
    if (options.progress) options.progress({"sorting histories", double(i) / double(count), 0, 0});
    // From the order of users to the order of records.
    ExternalSort<RecordPart> parts(unordered.get());
    Appender texts(files.texts.get());
    PartMaker maker(LengthOf(history), &texts);
    {
      ExternalSort<RecordPart>::Batch batch(source.memory_bytes / 4);
      const auto add = [&](const UserRow& row, std::string_view text) -> Status {
        ELASTOR_ASSIGN_OR_RETURN(const Part part, maker.Next(row, text));
        const bool known = row.input < made->first_records_.size() &&
                           row.chunk + 1 < made->first_records_[row.input].size();
        const int64_t record =
            known ? made->first_records_[row.input][row.chunk] + row.record : all_records;
        if (record >= all_records) return made->Damaged();
        if (part.begin < part.end) batch.Add({record, part}, "");
        return batch.full() ? parts.Spill(&batch) : OkStatus();
      };
      ELASTOR_RETURN_IF_ERROR(collector.sort(i).Merge(source.memory_bytes / 4, add));
      ELASTOR_RETURN_IF_ERROR(parts.Spill(&batch));
    }
    ELASTOR_RETURN_IF_ERROR(texts.Flush());
    files.text_bytes = texts.size();
    std::remove(made->PathOf(i, "rows").c_str());
    runs[i].reset();
    Appender records(files.parts.get());
    int64_t next = 0;
    const auto append = [&](int64_t record, const Part& part) -> Status {
      for (; next <= record; ++next) {
        const Part here = next == record ? part : Part();
        ELASTOR_RETURN_IF_ERROR(
            records.Append({reinterpret_cast<const char*>(&here), sizeof(Part)}));
      }
      return OkStatus();
    };
    ELASTOR_RETURN_IF_ERROR(
        parts.Merge(source.memory_bytes / 4, [&](const RecordPart& part, std::string_view) {
          return part.record < all_records ? append(part.record, part.part) : made->Damaged();
        }));
    if (next < all_records) ELASTOR_RETURN_IF_ERROR(append(all_records - 1, Part()));
    ELASTOR_RETURN_IF_ERROR(records.Flush());
    std::remove(made->PathOf(i, "unordered").c_str());
  }
  return made;
}

Status RowHistories::ReadParts(const Files& files, int64_t first_record, int64_t records,
                               std::vector<std::pair<size_t, size_t>>* parts,
                               std::string* texts) const {
  // Rows of a user often stand together, and their histories overlap.
  constexpr int64_t kReadBytes = 2 << 10;
  std::vector<Part> at(records);
  ELASTOR_RETURN_IF_ERROR(files.parts->ReadAt(first_record * int64_t{sizeof(Part)},
                                              records * int64_t{sizeof(Part)},
                                              reinterpret_cast<char*>(at.data())));
  std::string read;
  int64_t read_at = 0;
  for (const auto& [begin, end] : at) {
    if (begin < 0 || begin > end || end > files.text_bytes) return Damaged();
    if (begin == end) {
      parts->emplace_back(texts->size(), 0);
      continue;
    }
    if (begin < read_at || end > read_at + std::ssize(read)) {
      read_at = begin;
      read.resize(std::min(std::max(end - begin, kReadBytes), files.text_bytes - begin));
      ELASTOR_RETURN_IF_ERROR(files.texts->ReadAt(begin, std::ssize(read), read.data()));
    }
    const std::string_view part = std::string_view(read).substr(begin - read_at, end - begin);
    if (!AreWholeTexts(part, files.values)) return Damaged();
    parts->emplace_back(texts->size(), part.size());
    texts->append(part);
  }
  return OkStatus();
}

Status RowHistories::Read(uint32_t input, uint32_t number, ParsedChunk* chunk) const {
  chunk->histories.clear();
  chunk->history_texts.clear();
  const std::vector<int64_t>& firsts = first_records_[input];
  if (number + 1 >= firsts.size()) return OkStatus();  // it has changed, which is told at the end
  const int64_t records = firsts[number + 1] - firsts[number];
  std::vector<std::pair<size_t, size_t>> parts;  // [histories][records]
  for (const Files& files : files_) {
    ELASTOR_RETURN_IF_ERROR(
        ReadParts(files, firsts[number], records, &parts, &chunk->history_texts));
  }
  const std::string_view texts = chunk->history_texts;
  for (int64_t record = 0; record < records; ++record) {
    for (size_t i = 0; i < files_.size(); ++i) {
      const auto [at, size] = parts[i * records + record];
      chunk->histories.push_back(texts.substr(at, size));
    }
  }
  return OkStatus();
}

}  // namespace elastor
