#include "trainer/prepare/inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "trainer/data/arrow/table_source.h"
#include "trainer/data/file_kind.h"
#include "trainer/data/record_scanner.h"
#include "trainer/prepare/rows/column_names.h"
#include "trainer/prepare/rows/history_columns.h"
#include "trainer/prepare/table_columns.h"

namespace elastor {
namespace {

int64_t ModifiedNs(const std::string& path, int64_t* bytes) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return -1;
  *bytes = facts.st_size;
  return int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
}

// Several lines before the rows must end within it.
constexpr int64_t kBeginBytes = 64 << 10;

// How large a chunk is: its numbers of one column stay in a core's cache. Long histories and many
// negatives make the rows of a text many times larger.
int64_t ChunkBytes(const Schema& schema) {
  constexpr int64_t kMost = 512 << 10, kHistoryLength = 8;
  // The first chunk holds all lines before the rows.
  const int64_t kLeast = schema.skip_lines() + schema.header() > 1 ? 2 * kBeginBytes : 4 << 10;
  int64_t length = 0;
  for (const HistoryPlace& place : HistoryPlaces(schema)) {
    length += LengthOf(schema.history(place.history));
  }
  length = std::max<int64_t>(length, 1) * (1 + schema.negatives().per_positive());
  return std::max(kMost * kHistoryLength / std::max(length, kHistoryLength), kLeast);
}

}  // namespace

InputFiles::InputFiles(const Schema& schema)
    : skip_lines_(schema.skip_lines()),
      begin_lines_(schema.skip_lines() + schema.header()),
      chunk_bytes_(ChunkBytes(schema)),
      record_delimiter_(schema.quoted() ? DelimiterOf(schema) : "") {}

StatusOr<std::unique_ptr<TextSource>> InputFiles::OpenSource(const std::string& path) const {
  ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<TextSource> source, TextSource::Open(path));
  if (!record_delimiter_.empty()) source->ReadRecords(record_delimiter_, skip_lines_);
  return source;
}

StatusOr<std::unique_ptr<InputFiles>> InputFiles::Open(const std::vector<std::string>& paths,
                                                       const Schema& schema) {
  std::unique_ptr<InputFiles> inputs(new InputFiles(schema));
  for (const std::string& path : paths) {
    auto input = std::make_unique<Input>();
    input->path = path;
    input->first_part = static_cast<uint32_t>(inputs->parts_.size());
    ELASTOR_ASSIGN_OR_RETURN(const bool is_table, IsTable(path));
    input->modified_ns = ModifiedNs(path, &input->file_bytes);
    if (is_table) {
      ELASTOR_RETURN_IF_ERROR(inputs->OpenParts(input.get(), schema));
    } else {
      ELASTOR_RETURN_IF_ERROR(inputs->OpenText(input.get()));
    }
    input->parts = static_cast<uint32_t>(inputs->parts_.size()) - input->first_part;
    input->parts_left = input->parts;
    inputs->inputs_.push_back(std::move(input));
  }
  return inputs;
}

Schema InputFiles::SchemaOf(size_t input, const Schema& schema) const {
  return is_table(input) ? SchemaOfTables(schema) : schema;
}

Status InputFiles::OpenText(Input* input) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<TextSource> source, OpenSource(input->path));
  if (begin_lines_ > 0) {
    ELASTOR_RETURN_IF_ERROR(ReadBegin(input->path, source.get(), &input->header));
  }
  auto part = std::make_unique<Part>();
  part->input = static_cast<uint32_t>(inputs_.size());
  part->file_bytes = input->file_bytes;
  parts_.push_back(std::move(part));
  return OkStatus();
}

// How many rows a chunk has follows from the footer alone.
Status InputFiles::OpenParts(Input* input, const Schema& schema) {
  constexpr int64_t kMostChunkRows = 1 << 16, kMostRows = int64_t{1} << 46;
  ELASTOR_ASSIGN_OR_RETURN(input->table, OpenTable(input->path));
  ELASTOR_ASSIGN_OR_RETURN(const TableColumns columns,
                           ChooseColumns(schema, *input->table, input->path));
  input->columns = columns.places;
  input->forms = columns.forms;
  input->header = columns.header;
  std::vector<TableGroup> groups = input->table->groups;
  if (groups.empty()) groups.emplace_back();
  int64_t rows = 0, chunks = 0;
  for (const TableGroup& group : groups) {
    if (group.rows < 0 || group.rows > kMostRows - rows) {
      return TableError(input->path, StrCat("a group of ", group.rows, " rows"));
    }
    rows += group.rows;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    auto part = std::make_unique<Part>();
    part->input = static_cast<uint32_t>(inputs_.size());
    part->group = static_cast<int>(i);
    part->rows = groups[i].rows;
    part->chunk_rows = ChunkRows(groups[i], columns, chunk_bytes_, kMostChunkRows);
    part->first = part->next = static_cast<uint32_t>(chunks);
    part->file_bytes = static_cast<int64_t>(static_cast<double>(input->file_bytes) *
                                            static_cast<double>(part->rows) /
                                            static_cast<double>(std::max<int64_t>(rows, 1)));
    chunks += (part->rows + part->chunk_rows - 1) / part->chunk_rows;
    parts_.push_back(std::move(part));
    if (chunks > std::numeric_limits<uint32_t>::max()) {
      return TableError(input->path, StrCat(rows, " rows in chunks of few"));
    }
  }
  input->chunks = static_cast<uint32_t>(chunks);
  return OkStatus();
}

size_t InputFiles::EndOfLine(std::string_view text, size_t begin, int64_t line) const {
  if (record_delimiter_.empty() || line < skip_lines_) return text.find('\n', begin) + 1;
  const size_t end = EndOfRecord(text, begin, record_delimiter_);
  return end == text.npos ? 0 : end;
}

// The lines before the rows of an input, which are to be in its first chunk.
Status InputFiles::ReadBegin(const std::string& path, TextSource* source,
                             std::string* header) const {
  std::string text, more;
  ELASTOR_RETURN_IF_ERROR(source->Next(kBeginBytes, &text));
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  size_t end = 0;
  for (int64_t line = 0; line < begin_lines_; ++line) {
    const size_t begin = end;
    end = EndOfLine(text, begin, line);
    *header = text.substr(begin, end - begin);
    // A single long line is the first chunk; several must surely be in it.
    const bool near = begin_lines_ == 1 || std::cmp_less_equal(end, kBeginBytes);
    if (end > 0 && near) continue;
    if (near) ELASTOR_RETURN_IF_ERROR(source->Next(kBeginBytes, &more));
    const std::string expected =
        line < skip_lines_ ? StrCat(skip_lines_, " lines to skip") : "a header line";
    if (!near || !more.empty()) {
      return UserError(StrCat(path, ": found ", line, " lines in the first ", kBeginBytes,
                              " bytes, expected ", expected, " there"));
    }
    return UserError(path + (line == 0 ? ": is empty" : ": ends after line ") +
                     (line == 0 ? "" : std::to_string(line)) + ", expected " + expected);
  }
  return OkStatus();
}

void InputFiles::Skip(const SpilledChunk& chunk) {
  const Input& input = *inputs_[chunk.input];
  uint32_t part = input.first_part + input.parts - 1;
  while (parts_[part]->first > chunk.number) --part;
  parts_[part]->skipped[chunk.number] = chunk.text_bytes;
}

void InputFiles::SkipRestOf(uint32_t number, uint32_t chunks) {
  const Input& input = *inputs_[number];
  const std::span parts(parts_.begin() + input.first_part, input.parts);
  size_t skipped = 0;
  for (const auto& part : parts) skipped += part->skipped.size();
  if (skipped != chunks) return;
  for (const auto& part : parts) {
    part->ended = true;
    part->consumed = part->file_bytes;
  }
}

Status InputFiles::ReadText(Part* part, TextChunk* chunk, ParsedChunk* parsed) const {
  if (part->source == nullptr) {
    ELASTOR_ASSIGN_OR_RETURN(part->source, OpenSource(inputs_[part->input]->path));
  }
  for (auto skip = part->skipped.find(part->next); skip != part->skipped.end();
       skip = part->skipped.find(part->next)) {
    ELASTOR_RETURN_IF_ERROR(part->source->Skip(skip->second, chunk_bytes_));
    part->text_at += skip->second;
    ++part->next;
  }
  ELASTOR_RETURN_IF_ERROR(part->source->Next(chunk_bytes_, &parsed->text));
  parsed->table.rows = 0;
  part->consumed = part->source->consumed_bytes();
  chunk->text_at = part->text_at;
  part->text_at += std::ssize(parsed->text);
  return OkStatus();
}

Status InputFiles::ReadTable(Part* part, TextChunk* chunk, ParsedChunk* parsed) const {
  const Input& input = *inputs_[part->input];
  const auto next_rows = [&] { return std::min(part->chunk_rows, part->rows - part->rows_taken); };
  for (; part->skipped.contains(part->next); ++part->next) {
    part->rows_to_skip += next_rows();
    part->rows_taken += next_rows();
  }
  const int64_t rows = next_rows();
  parsed->text.clear();
  parsed->table.rows = 0;
  part->rows_taken += rows;
  part->consumed = static_cast<int64_t>(static_cast<double>(part->file_bytes) *
                                        static_cast<double>(part->rows_taken) /
                                        static_cast<double>(std::max<int64_t>(part->rows, 1)));
  chunk->text_at = 0;
  if (rows == 0) return OkStatus();
  std::string wrong;
  if (part->table_rows == nullptr) {
    part->table_rows = input.table->Read(part->group, input.columns, input.forms, &wrong);
  }
  if (wrong.empty()) wrong = part->table_rows->Skip(std::exchange(part->rows_to_skip, 0));
  if (wrong.empty()) wrong = part->table_rows->Next(rows, &parsed->text, &parsed->table);
  return wrong.empty() ? OkStatus() : TableError(input.path, wrong);
}

Status InputFiles::ReadFrom(uint32_t number, TextChunk* chunk, ParsedChunk* parsed, bool* found) {
  Part& part = *parts_[number];
  Input& input = *inputs_[part.input];
  const bool is_table = input.table != nullptr;
  ELASTOR_RETURN_IF_ERROR(is_table ? ReadTable(&part, chunk, parsed)
                                   : ReadText(&part, chunk, parsed));
  *found = parsed->table.rows > 0 || !parsed->text.empty();
  if (*found) {
    chunk->input = part.input;
    chunk->part = number;
    chunk->number = part.next++;
    chunk->text_bytes = std::ssize(parsed->text);
    if (is_table) chunk->text_bytes += parsed->table.number_bytes();
    chunk->lines_taken = 0;
    return OkStatus();
  }
  part.source.reset();
  part.table_rows.reset();
  part.ended = true;
  if (--input.parts_left > 0 || !on_end_) return OkStatus();
  return on_end_(part.input, is_table ? input.chunks : part.next);
}

void InputFiles::TakeBegin(TextChunk* chunk, std::string* text) const {
  if (chunk->number != 0) return;
  if (text->starts_with(kByteOrderMark)) text->erase(0, kByteOrderMark.size());
  size_t end = 0;
  for (int64_t line = 0; line < begin_lines_; ++line) end = EndOfLine(*text, end, line);
  chunk->lines_taken = std::count(text->begin(), text->begin() + end, '\n');
  text->erase(0, end);
}

Status InputFiles::Next(TextChunk* chunk, ParsedChunk* parsed, bool* found) {
  const uint32_t count = static_cast<uint32_t>(parts_.size()), near = chunk->part;
  *found = false;
  for (bool waiting = false; !*found; waiting = true) {
    bool left = false;
    // The own part first, then the others in order; only when all are being read, wait for one.
    for (uint32_t i = 0; i <= count && !*found; ++i) {
      const uint32_t number = i == 0 ? near : i - 1;
      Part& part = *parts_[number];
      if (part.ended) continue;
      std::unique_lock<std::mutex> lock(part.mutex, std::defer_lock);
      if (waiting) {
        lock.lock();
      } else if (!lock.try_lock()) {
        left = true;
        continue;
      }
      if (part.ended) continue;
      ELASTOR_RETURN_IF_ERROR(ReadFrom(number, chunk, parsed, found));
    }
    if (!*found && !left) return OkStatus();
  }
  if (!is_table(chunk->input)) TakeBegin(chunk, &parsed->text);
  return OkStatus();
}

Status InputFiles::CheckUnchanged() const {
  for (const auto& input : inputs_) {
    int64_t bytes = -1;
    const int64_t modified_ns = ModifiedNs(input->path, &bytes);
    if (bytes != input->file_bytes || modified_ns != input->modified_ns) {
      return UserError(StrCat(input->path, ": changed while it was read (", input->file_bytes,
                              " bytes, now ", bytes < 0 ? "gone" : std::to_string(bytes), ")"));
    }
  }
  return OkStatus();
}

bool InputFiles::ended() const {
  return std::ranges::all_of(parts_, [](const auto& part) { return part->ended.load(); });
}

double InputFiles::share_read() const {
  int64_t consumed = 0, bytes = 0;
  for (const auto& part : parts_) {
    consumed += part->consumed;
    bytes += part->file_bytes;
  }
  return bytes == 0 ? 1 : static_cast<double>(consumed) / static_cast<double>(bytes);
}

}  // namespace elastor
