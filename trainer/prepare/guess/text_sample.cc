#include "trainer/prepare/guess/text_sample.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "core/base/text.h"
#include "trainer/data/arrow/table_source.h"
#include "trainer/data/file_kind.h"
#include "trainer/data/sized_text.h"
#include "trainer/data/text_source.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr int64_t kSampleBytes = 16 << 20;  // of text, of all files together

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const bool carriage_return = end > begin && text[end - 1] == '\r';
    lines.push_back(text.substr(begin, end - begin - carriage_return));
    begin = end + 1;
  }
  return lines;
}

std::string CsvLine(std::string_view text, const TextTable& table, int64_t row) {
  std::string line;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const TextColumn& column = table.columns[i];
    std::string_view value = column.Text(row, text);
    std::string items;
    while (column.is_list && !value.empty()) {
      const std::string_view item = TakeText(&value);
      if (!item.empty()) StrAppend(&items, items.empty() ? "" : "|", item);
    }
    if (column.is_list) value = items;
    if (i > 0) line += ',';
    line += value.find_first_of("\",\r\n") == value.npos ? std::string(value) : QuotedText(value);
  }
  return line;
}

// Adds the first rows of a table as CSV. One without rows adds nothing.
Status AddTable(const std::string& path, int64_t most, TextSample* sample) {
  constexpr int64_t kRows = 512;
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<TableFile> table, OpenTable(path));
  std::vector<int> places;
  std::vector<bool> lists;
  std::string header, left_out;
  for (size_t i = 0; i < table->columns.size(); ++i) {
    const TableColumn& column = table->columns[i];
    if (!column.is_readable) {
      StrAppend(&left_out, "# Left out: ", Shown(column.name), " of type ", Shown(column.type),
                ".\n");
      continue;
    }
    places.push_back(static_cast<int>(i));
    lists.push_back(column.is_list);
    StrAppend(&header, header.empty() ? "" : ",", QuotedText(column.name));
  }
  if (places.empty()) return UserError(path + ": has no column that a field reads");
  if (!sample->lines.empty() && (sample->lists != lists || sample->lines[0][0] != header)) {
    return UserError(StrCat(path, ": has other columns than ", sample->paths[0],
                            "; expected the same in all files"));
  }
  std::vector<std::string>& lines = sample->lines.emplace_back(1, header);
  int64_t bytes = 0;
  std::string wrong, text;
  TextTable rows;
  for (size_t group = 0; group < table->groups.size() && bytes < most; ++group) {
    const auto reader = table->Read(static_cast<int>(group), places, {}, &wrong);
    for (int64_t left = table->groups[group].rows; left > 0 && wrong.empty() && bytes < most;) {
      wrong = reader->Next(std::min(left, kRows), &text, &rows);
      if (!wrong.empty()) break;
      left -= rows.rows;
      for (int64_t row = 0; row < rows.rows; ++row) {
        lines.push_back(CsvLine(text, rows, row));
        bytes += std::ssize(lines.back());
      }
    }
    if (!wrong.empty()) return TableError(path, wrong);
  }
  sample->whole = sample->whole && bytes < most;
  if (lines.size() == 1) {
    sample->lines.pop_back();
  } else {
    sample->paths.push_back(path);
    sample->lists = lists;
    sample->left_out = left_out;
  }
  return OkStatus();
}

}  // namespace

int64_t TextSample::bytes() const {
  int64_t bytes = 0;
  for (const auto& file : lines) {
    for (const std::string& line : file) bytes += static_cast<int64_t>(line.size()) + 1;
  }
  return bytes;
}

StatusOr<TextSample> ReadTextSample(const std::vector<std::string>& paths) {
  TextSample sample;
  for (const std::string& path : paths) {
    const int64_t most = kSampleBytes / static_cast<int64_t>(paths.size());
    ELASTOR_ASSIGN_OR_RETURN(const bool is_table, IsTable(path));
    if (!sample.lines.empty() && is_table == sample.lists.empty()) {
      return UserError(StrCat(path, ": expected ", is_table ? "text" : "a Parquet or Arrow file",
                              ", as ", sample.paths[0], " is"));
    }
    if (is_table) {
      ELASTOR_RETURN_IF_ERROR(AddTable(path, most, &sample));
      continue;
    }
    ELASTOR_ASSIGN_OR_RETURN(const auto source, TextSource::Open(path));
    std::string text;
    ELASTOR_RETURN_IF_ERROR(source->Next(most, &text));
    sample.whole = sample.whole && static_cast<int64_t>(text.size()) < most / 2;
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    if (text.empty()) continue;
    if (const size_t end = text.find('\n');
        end != text.npos && text.substr(0, end).ends_with("\r\r")) {
      return UserError(path + ": lines end in CR CR LF, expected LF or CR LF; convert them with " +
                       "tr -d '\\r'");
    }
    sample.lines.push_back(SplitLines(text));
    sample.paths.push_back(path);
  }
  if (sample.lines.empty()) return UserError(paths[0] + ": is empty, expected rows");
  return sample;
}

}  // namespace elastor
