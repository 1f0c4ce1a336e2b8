#include "trainer/score/score_rows.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/base/thread_pool.h"
#include "core/process/claimed_folder.h"
#include "core/process/standard_streams.h"
#include "trainer/data/arrow/table_source.h"
#include "trainer/data/file_kind.h"
#include "trainer/data/record_scanner.h"
#include "trainer/data/text_source.h"
#include "trainer/prepare/rows/bad_rows.h"
#include "trainer/prepare/rows/column_names.h"
#include "trainer/prepare/rows/pair_lines.h"
#include "trainer/prepare/rows/row_parser.h"
#include "trainer/prepare/schema_file.h"
#include "trainer/prepare/side_tables.h"
#include "trainer/prepare/table_columns.h"
#include "trainer/records/run_files.h"
#include "trainer/score/row_encoder.h"
#include "trainer/score/scorer.h"

namespace elastor {
namespace {

constexpr char kStdin[] = "-";
constexpr int64_t kChunkBytes = 256 << 10;
constexpr int64_t kChunkRows = 1024;  // of a table

void Warn(const std::string& line) {
  std::fprintf(stderr, "trainer: %s\n", WithoutControls(line).c_str());
  std::fflush(stderr);
}

// The lines go to a file that is there when all are written, or to stdout.
class Lines {
 public:
  static StatusOr<Lines> Open(const std::string& output_dir) {
    Lines lines;
    if (output_dir.empty()) return lines;
    ELASTOR_ASSIGN_OR_RETURN(ClaimedFolder folder, ClaimedFolder::Claim(output_dir));
    ELASTOR_RETURN_IF_ERROR(folder.CheckIsEmpty("a new or empty directory for predictions.csv",
                                                /*remains=*/"predictions.csv.tmp"));
    lines.folder_.emplace(std::move(folder));
    ELASTOR_ASSIGN_OR_RETURN(AtomicFileWriter file,
                             AtomicFileWriter::Open(output_dir + "/" + kPredictionsFile));
    lines.file_.emplace(std::move(file));
    return lines;
  }
  Status Append(const std::string& text) {
    return file_ ? file_->Append(text) : WriteToStdout(text);
  }
  Status Commit() { return file_ ? file_->Commit() : OkStatus(); }

 private:
  std::optional<ClaimedFolder> folder_;
  std::optional<AtomicFileWriter> file_;  // removed before the folder
};

// A piece of the input, and what became of it.
struct Piece {
  std::string text;  // whole records
  TextTable table;   // if it has rows, their values lie in the text
  int64_t first_row = 0;
  std::string lines;  // of the output
  BadRowLedger::Chunk bad;
  Status status;
};

class Scoring {
 public:
  Scoring(const ScoreRowsOptions& options, const Scorer* scorer, const RowEncoder* encoder,
          const SideTables* tables, ThreadPool* pool, Lines* lines)
      : scorer_(*scorer),
        encoder_(*encoder),
        tables_(*tables),
        pool_(*pool),
        lines_(*lines),
        inputs_(options.inputs),
        logit_(options.logit),
        ledger_(Names(options.inputs),
                options.max_bad_rows < 0 ? encoder->schema().max_bad_rows() : options.max_bad_rows,
                Warn),
        delimiter_(DelimiterOf(encoder->schema())),
        pieces_(pool->threads()) {}

  Status Run() {
    for (const std::string& path : inputs_) {
      if (path != kStdin) ELASTOR_RETURN_IF_ERROR(CheckInputFile(path));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      ELASTOR_RETURN_IF_ERROR(RunInput(static_cast<uint32_t>(i)));
    }
    return AppendHeader();
  }
  int64_t rows() const { return rows_; }
  int64_t bad_rows() const { return ledger_.bad_rows(); }

 private:
  static std::vector<std::string> Names(std::vector<std::string> inputs) {
    std::ranges::replace(inputs, std::string(kStdin), std::string("stdin"));
    return inputs;
  }

  bool TakesLines() const {
    return encoder_.schema().header() || encoder_.schema().skip_lines() > 0;
  }

  // Before the first row, or where there is none: a mistake in the first input leaves no output.
  Status AppendHeader() {
    if (std::exchange(has_header_, true)) return OkStatus();
    return lines_.Append(PredictionsHeader(scorer_.task(), logit_));
  }
  Status RunInput(uint32_t input);
  Status RunText(uint32_t input);
  Status RunTable(uint32_t input);
  // Takes a byte order mark, the lines to skip and the header from the beginning of an input.
  Status Begin(const std::string& name, std::string* text, int64_t* lines_taken);
  Status RunPieces(uint32_t input, uint32_t first_number, size_t count);
  void RunPiece(Piece* piece) const;
  // The rows of a piece with bad ones, record by record; good[i] says whether record i is a row.
  std::vector<bool> EncodeByRecord(const Piece& piece, Rows* rows) const;
  // The records of whole lines that are rows, good or bad: comments are none.
  int64_t RecordsIn(std::string_view text) const;
  // Returns the place behind the record that begins at text[begin]; 0: there is none.
  size_t EndOfRow(std::string_view text, size_t begin) const;

  const Scorer& scorer_;
  const RowEncoder& encoder_;
  const SideTables& tables_;
  ThreadPool& pool_;
  Lines& lines_;
  const std::vector<std::string> inputs_;
  const LogitColumn logit_;
  BadRowLedger ledger_;
  const std::string delimiter_;
  std::unique_ptr<RowParser> parser_;
  std::vector<Piece> pieces_;
  int64_t rows_ = 0;
  bool has_header_ = false;  // the output
  bool has_tables_ = false;
};

int64_t Scoring::RecordsIn(std::string_view text) const {
  const Schema& schema = encoder_.schema();
  const bool pairs = RulesOf(schema).source == RowSource::kPairs;
  if (!schema.quoted() && !pairs) return std::ranges::count(text, '\n');
  int64_t records = 0;
  for (size_t begin = 0, end; (end = EndOfRow(text, begin)) > 0; begin = end) {
    records += !pairs || !IsPairComment(text.substr(begin, end - begin));
  }
  return records;
}

size_t Scoring::EndOfRow(std::string_view text, size_t begin) const {
  if (!encoder_.schema().quoted()) return text.find('\n', begin) + 1;
  const size_t end = EndOfRecord(text, begin, delimiter_);
  return end == text.npos ? 0 : end;
}

Status Scoring::Begin(const std::string& name, std::string* text, int64_t* lines_taken) {
  if (text->starts_with(kByteOrderMark)) text->erase(0, kByteOrderMark.size());
  const bool header = encoder_.schema().header();
  const int64_t skip_lines = encoder_.schema().skip_lines();
  *lines_taken = 0;
  std::string first_line;
  for (int64_t line = 0; line < skip_lines + header; ++line) {
    const size_t end = line < skip_lines ? text->find('\n') + 1 : EndOfRow(*text, 0);
    first_line = text->substr(0, end);
    *lines_taken += std::ranges::count(first_line, '\n');
    if (first_line.empty()) {
      return UserError(StrCat(name, line == 0 ? ": is empty" : StrCat(": ends after line ", line),
                              ", expected ", header ? "a header line" : "lines to skip"));
    }
    text->erase(0, first_line.size());
  }
  if (!header) first_line = text->substr(0, EndOfRow(*text, 0));
  if (parser_ == nullptr) {
    ELASTOR_ASSIGN_OR_RETURN(parser_, RowParser::Create(encoder_.SchemaOf(first_line), first_line,
                                                        name, Labels::kOptional, tables_));
  } else if (header) {
    ELASTOR_RETURN_IF_ERROR(parser_->CheckHeader(first_line, name));
  }
  return OkStatus();
}

Status Scoring::RunInput(uint32_t input) {
  bool is_table = false;
  if (inputs_[input] != kStdin) {
    ELASTOR_ASSIGN_OR_RETURN(is_table, IsTable(inputs_[input]));
  }
  if (input > 0 && is_table != has_tables_) {
    return UserError(StrCat(inputs_[input], ": expected ",
                            has_tables_ ? "a Parquet or Arrow file" : "text",
                            ", as the first input is"));
  }
  has_tables_ = is_table;
  return is_table ? RunTable(input) : RunText(input);
}

Status Scoring::RunTable(uint32_t input) {
  const std::string& path = inputs_[input];
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<TableFile> table, OpenTable(path));
  Schema schema = encoder_.schema();
  schema.clear_split();
  ELASTOR_ASSIGN_OR_RETURN(const TableColumns columns, ChooseColumns(schema, *table, path));
  if (parser_ == nullptr) {
    ELASTOR_ASSIGN_OR_RETURN(
        parser_, RowParser::Create(encoder_.SchemaOfTable(columns.header), columns.header, path,
                                   Labels::kOptional, tables_));
  } else {
    ELASTOR_RETURN_IF_ERROR(parser_->CheckHeader(columns.header, path));
  }
  uint32_t number = 0;
  for (size_t group = 0; group < table->groups.size(); ++group) {
    std::string wrong;
    const std::unique_ptr<TableRows> rows =
        table->Read(static_cast<int>(group), columns.places, {}, &wrong);
    const int64_t chunk_rows = ChunkRows(table->groups[group], columns, kChunkBytes, kChunkRows);
    for (int64_t left = table->groups[group].rows; left > 0 && wrong.empty();) {
      size_t count = 0;
      for (; count < pieces_.size() && left > 0 && wrong.empty(); ++count) {
        pieces_[count].bad = {};
        const int64_t taken = std::min(left, chunk_rows);
        wrong = rows->Next(taken, &pieces_[count].text, &pieces_[count].table);
        left -= taken;
      }
      if (!wrong.empty()) break;
      ELASTOR_RETURN_IF_ERROR(RunPieces(input, number, count));
      number += static_cast<uint32_t>(count);
    }
    if (!wrong.empty()) return TableError(path, wrong);
  }
  return ledger_.EndInput(input, number);
}

Status Scoring::RunText(uint32_t input) {
  const bool from_stdin = inputs_[input] == kStdin;
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<TextSource> source,
                           from_stdin ? TextSource::OpenStdin() : TextSource::Open(inputs_[input]));
  const Schema& schema = encoder_.schema();
  if (schema.quoted()) source->ReadRecords(delimiter_, schema.skip_lines());
  uint32_t number = 0;
  while (true) {
    size_t count = 0;
    for (; count < pieces_.size(); ++count) {
      Piece& piece = pieces_[count];
      piece.bad = {};
      ELASTOR_RETURN_IF_ERROR(source->Next(kChunkBytes, &piece.text));
      if (number + count == 0 && (!piece.text.empty() || TakesLines())) {
        const std::string name = from_stdin ? "stdin" : inputs_[input];
        ELASTOR_RETURN_IF_ERROR(Begin(name, &piece.text, &piece.bad.lines_taken));
        if (piece.bad.lines_taken > 0) {
          ++count;  // even if there is no row in it
          break;
        }
      }
      if (piece.text.empty()) break;
    }
    if (count == 0) return ledger_.EndInput(input, number);
    ELASTOR_RETURN_IF_ERROR(RunPieces(input, number, count));
    number += static_cast<uint32_t>(count);
  }
}

Status Scoring::RunPieces(uint32_t input, uint32_t first_number, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    Piece& piece = pieces_[i];
    const bool is_table = piece.table.rows > 0;
    const int64_t lines = is_table ? piece.table.rows : std::ranges::count(piece.text, '\n');
    piece.first_row = rows_;
    piece.bad.lines = lines + piece.bad.lines_taken;
    rows_ += is_table ? lines : RecordsIn(piece.text);
  }
  pool_.ParallelFor(static_cast<int64_t>(count), 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) RunPiece(&pieces_[i]);
  });
  for (size_t i = 0; i < count; ++i) {
    ELASTOR_RETURN_IF_ERROR(pieces_[i].status);
    ELASTOR_RETURN_IF_ERROR(
        ledger_.Add(input, first_number + static_cast<uint32_t>(i), std::move(pieces_[i].bad)));
    ELASTOR_RETURN_IF_ERROR(AppendHeader());
    ELASTOR_RETURN_IF_ERROR(lines_.Append(pieces_[i].lines));
  }
  return OkStatus();
}

void Scoring::RunPiece(Piece* piece) const {
  ParsedChunk chunk;
  chunk.text = piece->text;  // which the parser may change
  chunk.table = piece->table;
  parser_->Parse(&chunk);
  piece->bad.bad_rows = chunk.bad_rows;
  piece->bad.bad = std::move(chunk.bad);
  Rows rows;
  std::vector<bool> good;  // empty: all
  if (chunk.bad_rows == 0) {
    encoder_.Encode(chunk, &rows);
  } else {
    good = EncodeByRecord(*piece, &rows);
  }
  const std::vector<float> labels = rows.labels;
  std::vector<float> logits;
  piece->status = scorer_.Score(&rows, &logits, [&](int64_t row) {
    if (good.empty()) return piece->first_row + row;
    size_t line = 0;
    while (!good[line] || row-- > 0) ++line;
    return piece->first_row + static_cast<int64_t>(line);
  });
  if (!piece->status.ok()) return;
  const Task& task = scorer_.task();
  if (good.empty()) {
    piece->lines = PredictionLines(task, logit_, piece->first_row, labels, logits);
    return;
  }
  piece->lines.clear();
  int64_t row = 0;
  for (size_t record = 0; record < good.size(); ++record) {
    const int64_t index = piece->first_row + static_cast<int64_t>(record);
    if (!good[record]) {
      const int64_t columns = logit_ == LogitColumn::kThere ? 3 : 2;
      StrAppend(&piece->lines, index, std::string(columns * task.outputs(), ','), "\n");
      continue;
    }
    const auto part = [row](const std::vector<float>& all, int64_t width) {
      return std::vector<float>(all.begin() + row * width, all.begin() + (row + 1) * width);
    };
    piece->lines += PredictionLines(task, logit_, index, part(labels, task.labels()),
                                    part(logits, task.outputs()));
    ++row;
  }
}

std::vector<bool> Scoring::EncodeByRecord(const Piece& piece, Rows* rows) const {
  const std::string& text = piece.text;
  std::vector<bool> good;
  ParsedChunk record;
  const auto encode = [&] {
    parser_->Parse(&record);
    if (record.rows + record.bad_rows == 0) return;  // a comment
    good.push_back(record.rows == 1);
    encoder_.Encode(record, rows);
  };
  if (piece.table.rows > 0) record.text = text;
  for (int64_t row = 0; row < piece.table.rows; ++row) {
    record.table = piece.table.RowAt(row);
    encode();
  }
  if (piece.table.rows > 0) return good;
  size_t begin = 0;
  for (size_t end = EndOfRow(text, 0); end > 0; end = EndOfRow(text, begin)) {
    record.text = text.substr(begin, end - begin);
    encode();
    begin = end;
  }
  return good;
}

}  // namespace

Status ScoreRows(const ScoreRowsOptions& options) {
  const Clock::time_point start = Clock::now();
  ThreadPool pool(options.threads);
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<Scorer> scorer,
                           Scorer::Open(options.model_dir, &pool));
  ELASTOR_ASSIGN_OR_RETURN(
      const std::unique_ptr<RowEncoder> encoder,
      RowEncoder::Open(*scorer->model().metadata.encoding, DirectoryToRead(options.model_dir)));
  ELASTOR_ASSIGN_OR_RETURN(const SideTables tables,
                           ReadSideTables(encoder->schema(), std::numeric_limits<int64_t>::max()));
  const double loaded = SecondsSince(start);
  ELASTOR_ASSIGN_OR_RETURN(Lines lines, Lines::Open(options.output_dir));
  Scoring scoring(options, scorer.get(), encoder.get(), &tables, &pool, &lines);
  ELASTOR_RETURN_IF_ERROR(scoring.Run());
  ELASTOR_RETURN_IF_ERROR(lines.Commit());
  const double seconds = SecondsSince(start) - loaded;
  char text[160];
  std::snprintf(text, sizeof(text), "scored rows=%lld bad_rows=%lld seconds=%.1f rows_per_s=%.0f",
                static_cast<long long>(scoring.rows()), static_cast<long long>(scoring.bad_rows()),
                seconds, static_cast<double>(scoring.rows()) / std::max(seconds, 1e-9));
  Warn(text);
  return OkStatus();
}

}  // namespace elastor
