#include "trainer/prepare/guess/read_back.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "core/base/text.h"
#include "trainer/data/record_scanner.h"
#include "trainer/prepare/rows/column_names.h"
#include "trainer/prepare/rows/parsed_chunk.h"
#include "trainer/prepare/rows/row_parser.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {

namespace {

// The beginning of the record whose quote stays open to the end of the text; empty: all end.
std::string_view OpenRecord(const Schema& schema, std::string_view text) {
  bool is_open = false;
  for (size_t begin = 0; schema.quoted() && begin < text.size();) {
    const size_t end = EndOfRecord(text, begin, DelimiterOf(schema), &is_open);
    if (end == text.npos) return is_open ? text.substr(begin) : "";
    begin = end;
  }
  return "";
}

}  // namespace

StatusOr<ReadBack> ReadSampleBack(const Schema& schema, const TextSample& sample) {
  const auto header_of = [&](size_t file) -> std::string {
    const auto& lines = sample.lines[file];
    return schema.header() && sample.first_row <= lines.size() ? lines[sample.first_row - 1] : "";
  };
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RowParser> parser,
                           RowParser::Create(schema, header_of(0), sample.paths[0]));
  ReadBack read;
  for (size_t file = 0; file < sample.lines.size(); ++file) {
    if (schema.header() && file > 0) {
      ELASTOR_RETURN_IF_ERROR(parser->CheckHeader(header_of(file), sample.paths[file]));
    }
    ParsedChunk chunk;
    for (size_t i = sample.first_row; i < sample.lines[file].size(); ++i) {
      StrAppend(&chunk.text, sample.lines[file][i], "\n");
    }
    const std::string_view open = sample.whole ? OpenRecord(schema, chunk.text) : "";
    if (!open.empty()) {
      return UserError(StrCat(sample.paths[file], ": a quote opens a value of the row ",
                              Shown(open), ", and none closes it; expected a closing quote"));
    }
    parser->Parse(&chunk);
    read.rows += chunk.rows;
    read.bad_rows += chunk.bad_rows;
    read.positives += std::ranges::count(chunk.labels, 1.0f);
    if (read.first_fault.empty() && !chunk.bad.empty()) read.first_fault = chunk.bad[0].what;
  }
  const std::string& path = sample.paths[0];
  if (read.rows == 0) {
    return UserError(StrCat(path, ": no schema reads a row of it",
                            read.first_fault.empty() ? "" : "; ", read.first_fault));
  }
  if (read.positives == 0 || read.positives == read.rows) {
    return UserError(StrCat(path, ": all ", CountText(read.rows, "row"), " have label ",
                            read.positives == 0 ? 0 : 1, "; expected both 0 and 1"));
  }
  return read;
}

}  // namespace elastor
