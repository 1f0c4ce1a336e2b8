#include "trainer/prepare/guess/guess.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/text.h"
#include "trainer/prepare/guess/columns.h"
#include "trainer/prepare/guess/dialect.h"
#include "trainer/prepare/guess/header.h"
#include "trainer/prepare/guess/label.h"
#include "trainer/prepare/guess/libsvm.h"
#include "trainer/prepare/guess/nulls.h"
#include "trainer/prepare/guess/proposal.h"
#include "trainer/prepare/guess/read_back.h"
#include "trainer/prepare/guess/text_sample.h"
#include "trainer/prepare/schema_file.h"

namespace elastor {
namespace {

// Whether nearly all of the first lines are objects of JSON.
bool AreObjects(const std::vector<std::string>& lines) {
  const size_t count = std::min(lines.size(), kLayoutLines);
  const auto objects = std::count_if(
      lines.begin(), lines.begin() + static_cast<ptrdiff_t>(count), [](const std::string& line) {
        return line.starts_with('{') && line.ends_with('}') && line.find("\":") != line.npos;
      });
  return static_cast<double>(objects) >= kLayoutShare * static_cast<double>(count);
}

StatusOr<std::vector<size_t>> ChooseLabel(const SampleColumns& sample, const std::string& given,
                                          const std::string& path) {
  if (given.empty()) return LabelCandidates(sample, path);
  ELASTOR_ASSIGN_OR_RETURN(const size_t label, GivenLabel(sample.columns, given));
  return std::vector<size_t>{label};
}

// Checks a proposal and reads the sample by it. Names and labels' values may be ones that no schema
// can have.
StatusOr<ReadBack> Try(const std::string& schema_text, const TextSample& text) {
  const StatusOr<Schema> schema = ParseSchema(schema_text, "a schema of it");
  if (!schema.ok()) {
    return UserError(StrCat(text.paths[0], ": ", schema.status().message()));
  }
  return ReadSampleBack(*schema, text);
}

// How the rows of a table stand in the sample.
Header HeaderOfTable(const TextSample& text) {
  Header header;
  header.schema.set_delimiter(",");
  header.schema.set_quoted(true);
  header.schema.set_header(true);
  header.names = SplitLine(header.schema, text.lines[0][0]);
  header.named = true;
  header.first_row = 1;
  return header;
}

// Finds how lines are cut and which of them names the columns. Joins the lines to records.
StatusOr<Header> FindColumns(TextSample* text) {
  if (!text->lists.empty()) return HeaderOfTable(*text);
  ELASTOR_ASSIGN_OR_RETURN(const Dialect dialect, FindDialect(text->lines[0], text->paths[0]));
  for (auto& lines : text->lines) lines = RecordsOf(dialect.schema, lines);
  return FindHeader(dialect, text->lines[0], text->paths[0]);
}

StatusOr<std::string> ProposeDelimited(TextSample text, const std::string& given_label) {
  const std::string& path = text.paths[0];
  ELASTOR_ASSIGN_OR_RETURN(const Header header, FindColumns(&text));
  text.first_row = header.first_row;
  DelimitedFindings found;
  found.schema = header.schema;
  found.header_fault = header.fault;
  found.sample = ReadColumns(found.schema, header.names, text);
  found.sample.named = header.named;
  found.is_table = !text.lists.empty();
  for (size_t i = 0; i < text.lists.size(); ++i) found.sample.columns[i].is_list = text.lists[i];
  Nulls nulls = FindNulls(found.sample.columns);
  for (const std::string& null : nulls.texts) found.schema.add_null(null);
  for (SampleColumn& column : found.sample.columns) column.Summarise(nulls.texts);
  found.null_doubts = std::move(nulls.doubts);
  found.given_label = !given_label.empty();
  ELASTOR_ASSIGN_OR_RETURN(found.candidates, ChooseLabel(found.sample, given_label, path));
  found.telling = FindTelling(found.schema, text, found.sample.columns, found.candidates[0]);
  ELASTOR_ASSIGN_OR_RETURN(const ReadBack read, Try(DelimitedSchema(found, ""), text));
  return DelimitedProposal(text, found, read);
}

StatusOr<std::string> ProposeLibsvm(const TextSample& text, const std::string& given_label) {
  if (!given_label.empty()) {
    return UserError(
        StrCat("--label=", given_label, ": the label of libsvm's layout is its first word"));
  }
  ELASTOR_ASSIGN_OR_RETURN(const LibsvmFindings found, FindLibsvm(text));
  ELASTOR_ASSIGN_OR_RETURN(const ReadBack read, Try(LibsvmSchema(found, ""), text));
  return LibsvmProposal(text, found, read);
}

}  // namespace

StatusOr<std::string> GuessSchema(const std::vector<std::string>& paths, const std::string& label) {
  for (const std::string& path : paths) {
    if (std::ranges::count(paths, path) == 1) continue;
    return UserError(path + ": stands twice in --guess; expected each file once");
  }
  ELASTOR_ASSIGN_OR_RETURN(TextSample text, ReadTextSample(paths));
  if (!text.lists.empty()) return ProposeDelimited(std::move(text), label);
  if (AreObjects(text.lines[0])) {
    return UserError(StrCat(paths[0],
                            ": lines of JSON, which no schema reads; expected delimited "
                            "text, as jq --raw-output '[.a, .b] | @csv' writes it"));
  }
  return IsLibsvm(text.lines[0]) ? ProposeLibsvm(text, label)
                                 : ProposeDelimited(std::move(text), label);
}

}  // namespace elastor
