#include "trainer/prepare/side_tables.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash_text.h"
#include "core/base/text.h"
#include "trainer/data/record_scanner.h"
#include "trainer/data/text_source.h"
#include "trainer/prepare/inputs.h"
#include "trainer/prepare/rows/column_names.h"
#include "trainer/prepare/rows/row_parser.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

StatusOr<std::string> HashOfFile(const std::string& path) {
  ELASTOR_RETURN_IF_ERROR(CheckInputFile(path));
  ELASTOR_ASSIGN_OR_RETURN(const FileFacts facts, ReadFileFacts(path));
  return facts.xxh3;
}

// Reads the file of one lookup.
class TableReader {
 public:
  TableReader(const Schema& schema, const Lookup& lookup)
      : lookup_(lookup), schema_(TableSchema(schema, lookup)) {}

  StatusOr<SideTable> Read(int64_t most_bytes, int64_t all_bytes);

 private:
  Status Open();
  // Replaces parsed_ by the next rows; *found is false at the end.
  Status Next(bool* found);
  std::string_view KeyOf(int64_t row) const { return TextOf(row, key_); }
  std::string_view TextOf(int64_t row, size_t column) const {
    return parsed_.TextOf(parsed_.ids[row * parser_->single_fields() + column]);
  }
  // Adds the rows of parsed_; false: one has no key.
  bool AddRows(SideTable* table) const;
  // Returns the lines of all rows with a key. Reads the file again.
  StatusOr<std::vector<int64_t>> LinesOf(std::string_view key);
  Status KeyError(const std::string& key);

  const Lookup& lookup_;
  const Schema schema_;
  std::unique_ptr<InputFiles> inputs_;
  std::unique_ptr<RowParser> parser_;
  size_t key_ = 0;  // among the columns that are read
  TextChunk source_;
  ParsedChunk parsed_;
  int64_t lines_ = 0;  // before parsed_
};

Status TableReader::Open() {
  const std::string& file = lookup_.file();
  ELASTOR_ASSIGN_OR_RETURN(inputs_, InputFiles::Open({file}, schema_));
  ELASTOR_ASSIGN_OR_RETURN(
      parser_, RowParser::Create(inputs_->SchemaOf(0, schema_), inputs_->header(0), file));
  lines_ = 0;
  return OkStatus();
}

Status TableReader::Next(bool* found) {
  ELASTOR_RETURN_IF_ERROR(inputs_->Next(&source_, &parsed_, found));
  if (*found) lines_ += source_.lines_taken;
  return OkStatus();
}

bool TableReader::AddRows(SideTable* table) const {
  std::vector<std::string_view> cells;
  for (int64_t row = 0; row < parsed_.rows; ++row) {
    cells.clear();
    for (size_t i = 0; i < table->columns().size() + 1; ++i) {
      if (i != key_) cells.push_back(TextOf(row, i));
    }
    if (KeyOf(row).empty()) return false;
    table->Add(KeyOf(row), cells.data());
  }
  return true;
}

StatusOr<std::vector<int64_t>> TableReader::LinesOf(std::string_view key) {
  ELASTOR_RETURN_IF_ERROR(Open());
  std::vector<int64_t> found_at;
  const std::string delimiter = DelimiterOf(schema_);
  const auto add_row = [&] {
    parser_->Parse(&parsed_);
    if (parsed_.rows == 1 && KeyOf(0) == key) found_at.push_back(lines_ + 1);
    lines_ += parsed_.lines;
  };
  bool found = true;
  while (true) {
    ELASTOR_RETURN_IF_ERROR(Next(&found));
    if (!found) return found_at;
    if (inputs_->is_table(0)) {
      const TextTable table = std::move(parsed_.table);
      for (int64_t row = 0; row < table.rows; ++row) {
        parsed_.table = table.RowAt(row);
        add_row();
      }
      continue;
    }
    const std::string text = std::move(parsed_.text);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end =
          schema_.quoted() ? EndOfRecord(text, begin, delimiter) : text.find('\n', begin) + 1;
      parsed_.text = text.substr(begin, end - begin);
      add_row();
      begin = end;
    }
  }
}

// What is wrong with a key that is empty or stands twice.
Status TableReader::KeyError(const std::string& key) {
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<int64_t> lines, LinesOf(key));
  const std::string& file = lookup_.file();
  if (lines.size() < (key.empty() ? 1U : 2U))
    return UserError(file + ": changed while it was read");
  if (key.empty()) {
    return UserError(StrCat(file, ":", lines[0], ": the key ", lookup_.key(),
                            " is missing; expected one in every row"));
  }
  return UserError(StrCat(file, ":", lines[1], ": ", lookup_.key(), " ", Shown(key),
                          " stands in line ", lines[0], ", too; expected every key once"));
}

StatusOr<SideTable> TableReader::Read(int64_t most_bytes, int64_t all_bytes) {
  const std::string& file = lookup_.file();
  if (!lookup_.xxh3().empty()) {
    ELASTOR_ASSIGN_OR_RETURN(const std::string hash, HashOfFile(file));
    if (hash != lookup_.xxh3()) {
      return UserError(StrCat(file, ": has the hash ", hash, "; expected ", lookup_.xxh3(),
                              ", the file as it was when the training rows were prepared"));
    }
  }
  ELASTOR_RETURN_IF_ERROR(Open());
  std::vector<std::string> columns;
  for (const Field& field : schema_.fields()) {
    if (field.type() == Field::IGNORED) continue;
    if (field.name() == lookup_.key()) {
      key_ = columns.size();
    } else {
      columns.push_back(field.name());
    }
  }
  SideTable table(lookup_, std::move(columns));
  while (true) {
    bool found = false;
    ELASTOR_RETURN_IF_ERROR(Next(&found));
    if (!found) break;
    parser_->Parse(&parsed_);
    if (!parsed_.bad.empty()) {
      return UserError(StrCat(file, ":", lines_ + parsed_.bad[0].line + 1, ": ",
                              parsed_.bad[0].what, "; a side table has no bad rows"));
    }
    if (!AddRows(&table)) return KeyError("");
    lines_ += parsed_.lines;
    if (table.bytes() > most_bytes) {
      return UserError(StrCat(file, ":", lines_,
                              ": the side tables up to this line take more than ", all_bytes >> 20,
                              " MiB, half of --memory_gib; expected a larger --memory_gib"));
    }
  }
  ELASTOR_RETURN_IF_ERROR(inputs_->CheckUnchanged());
  if (table.rows() == 0) return UserError(file + ": has no rows");
  const std::optional<std::string> twice = table.Index();
  if (twice) return KeyError(*twice);
  return table;
}

}  // namespace

Status NoteHashes(Schema* schema) {
  for (Lookup& lookup : *schema->mutable_lookup()) {
    if (!lookup.xxh3().empty()) continue;
    ELASTOR_ASSIGN_OR_RETURN(*lookup.mutable_xxh3(), HashOfFile(lookup.file()));
  }
  return OkStatus();
}

StatusOr<SideTables> ReadSideTables(const Schema& schema, int64_t most_bytes) {
  SideTables tables;
  int64_t left = most_bytes;
  for (const Lookup& lookup : schema.lookup()) {
    ELASTOR_ASSIGN_OR_RETURN(SideTable table, TableReader(schema, lookup).Read(left, most_bytes));
    left -= table.bytes();
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace elastor
