#include "trainer/prepare/guess/proposal.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/base/text.h"
#include "trainer/prepare/guess/label.h"
#include "trainer/prepare/guess/types.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr size_t kMostCandidates = 3;  // for the label, that are told

std::string LabelComments(const std::vector<SampleColumn>& columns,
                          const std::vector<size_t>& candidates) {
  std::string text;
  for (size_t i = 0; i < std::min(candidates.size(), kMostCandidates); ++i) {
    const SampleColumn& column = columns[candidates[i]];
    StrAppend(&text, "# ", i == 0 ? "Label: " : "It could be ", Shown(column.name), ", ",
              NumberText(PositiveRate(column)), " positive.\n");
  }
  return text;
}

std::string ColumnTable(const SampleColumns& sample) {
  std::string table = "#\n#   values  missing         min         max        mean  column\n";
  for (const SampleColumn& column : sample.columns) {
    const double share = static_cast<double>(column.missing) / static_cast<double>(sample.rows);
    const auto number = [&](double value) { return column.numeric() ? NumberText(value) : ""; };
    table += Format("# %8zu %8.4f %11s %11s %11s  ", column.values.size(), share,
                    number(column.least).c_str(), number(column.largest).c_str(),
                    number(column.mean()).c_str());
    StrAppend(&table, Shown(column.name), "\n");
  }
  return table;
}

std::string LayoutText(const Schema& schema) {
  std::string text =
      StrCat("layout: DELIMITED\ndelimiter: ", ProtoQuoted(schema.delimiter()), "\n");
  if (schema.skip_lines() > 0) StrAppend(&text, "skip_lines: ", schema.skip_lines(), "\n");
  if (schema.header()) text += "header: true\n";
  if (schema.quoted()) text += "quoted: true\n";
  for (const std::string& null : schema.null()) {
    StrAppend(&text, "null: ", ProtoQuoted(null), "\n");
  }
  return text;
}

std::string BadRowsText(int64_t missing_labels, int64_t rows) {
  if (missing_labels == 0) return "max_bad_rows: 100\n";
  return StrCat("# Rows without the label are bad rows: ",
                NumberText(static_cast<double>(missing_labels) / static_cast<double>(rows)),
                " of all.\nmax_bad_rows: 1000000000\n");
}

// The hour and the weekday of a time, and the time itself where it is the row's.
std::string TimeFields(const SampleColumn& column, Field::TimeFormat format, bool row_time) {
  const std::string name = ProtoQuoted(column.name);
  const std::string written =
      format == Field::UNIX_SECONDS ? "" : StrCat(" time_format: ", Field::TimeFormat_Name(format));
  const auto made = [&](const char* suffix, const char* transform, bool first) {
    return StrCat("fields {\n  name: ",
                  first ? name : StrCat(ProtoQuoted(column.name + suffix), " column: ", name),
                  "\n  type: CATEGORICAL transform: ", transform, written, "\n}\n");
  };
  const std::string time =
      row_time ? StrCat("fields { name: ", name, " type: TIME", written, " }\n") : "";
  return StrCat(time, made("_hour", "HOUR", !row_time), made("_weekday", "WEEKDAY", false));
}

// Gathers columns of one type that follow one another in one entry of `fields`.
class FieldList {
 public:
  // `header`: the columns have names of their own, so that no range of names stands for them.
  explicit FieldList(bool header) : header_(header) {}

  void Add(const std::string& name, const std::string& type) {
    // ".." in a name reads as a range, so that such a name stands alone.
    const bool alone = IsRange(name) || (!names_.empty() && IsRange(names_.back()));
    if (type != type_ || alone) Flush();
    type_ = type;
    names_.push_back(name);
  }
  void AddText(const std::string& text) {
    Flush();
    text_ += text;
  }
  std::string Take() {
    Flush();
    return text_;
  }

 private:
  static bool IsRange(const std::string& name) { return name.find("..") != name.npos; }

  void Flush() {
    if (names_.empty()) return;
    const size_t comment = std::min(type_.find("  #"), type_.size());
    StrAppend(&text_, "fields { ", NamesText(), " type: ", type_.substr(0, comment), " }",
              type_.substr(comment), "\n");
    names_.clear();
  }

  std::string NamesText() const {
    if (names_.size() == 1) return StrCat("name: ", ProtoQuoted(names_[0]));
    if (names_.size() > 2 && !header_) {
      return StrCat("names: ", ProtoQuoted(StrCat(names_.front(), "..", names_.back())));
    }
    std::vector<std::string> quoted;
    for (const std::string& name : names_) quoted.push_back(ProtoQuoted(name));
    return StrCat("names: [", Join(quoted, ", "), "]");
  }

  const bool header_;
  std::vector<std::string> names_;  // of columns whose type is type_
  std::string type_;
  std::string text_;
};

std::string FieldsText(const DelimitedFindings& found) {
  FieldList list(found.schema.header());
  bool has_row_time = false;
  const size_t label = found.candidates[0];
  for (size_t i = 0; i < found.sample.columns.size(); ++i) {
    const SampleColumn& column = found.sample.columns[i];
    if (column.name.empty()) continue;  // the names of rows
    if (const std::optional<Field::TimeFormat> format = TimeFormatOf(column)) {
      const bool row_time = !has_row_time && column.missing == 0;
      has_row_time |= row_time;
      list.AddText(TimeFields(column, *format, row_time));
    } else {
      list.Add(column.name, i == label ? LabelType(column)
                                       : ColumnType(column, found.sample.rows, found.copies[i],
                                                    found.schema.delimiter()));
    }
  }
  return list.Take();
}

}  // namespace

std::string ProposalHead(const TextSample& text, int64_t rows, int64_t bad_rows,
                         std::string_view layout) {
  std::vector<std::string> files;
  for (const std::string& path : text.paths) {
    files.push_back(std::filesystem::path(path).filename().string());
  }
  return StrCat("# Proposed by prepare --guess from the first ", text.bytes(), " bytes of ",
                Join(files, ", "), ":\n# ", rows, " rows, ", bad_rows, " bad ones; ", layout,
                ".\n");
}

std::string DelimitedProposal(const TextSample& text, const DelimitedFindings& found) {
  const SampleColumns& sample = found.sample;
  const std::string& delimiter = found.schema.delimiter();
  const std::string layout = StrCat(sample.columns.size(), " columns between ",
                                    delimiter == "\t" ? "tabs" : Shown(delimiter), ", ",
                                    found.schema.header() ? "with" : "no", " header");
  const SampleColumn& label = sample.columns[found.candidates[0]];
  return StrCat(ProposalHead(text, sample.rows, sample.bad_rows, layout),
                LabelComments(sample.columns, found.candidates), ColumnTable(sample),
                LayoutText(found.schema), BadRowsText(label.missing, sample.rows),
                "split { train: 0.8 validation: 0.1 test: 0.1 by: HASH }\n", FieldsText(found));
}

}  // namespace elastor
