#include "trainer/prepare/guess/proposal.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/base/text.h"
#include "trainer/prepare/guess/name_hints.h"
#include "trainer/prepare/guess/types.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr int64_t kBadRows = 100;      // that are allowed where a sample has hardly any
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

// The line that tells a doubt about a column.
std::string DoubtText(const std::string& name, const std::string& doubt) {
  return doubt.empty() ? "" : StrCat("# check ", name, ": ", doubt, "\n");
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
  // `named`: the columns have names of their own, so that no range of names stands for them.
  explicit FieldList(bool named) : named_(named) {}

  // `comment`: lines to stand above the entry.
  void Add(const std::string& name, const std::string& type, const std::string& comment) {
    // ".." in a name reads as a range, so that such a name stands alone.
    const bool alone = IsRange(name) || (!names_.empty() && IsRange(names_.back()));
    if (type != type_ || alone || !comment.empty()) Flush();
    text_ += comment;
    type_ = type;
    names_.push_back(name);
    if (!comment.empty()) Flush();
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
    if (names_.size() > 2 && !named_) {
      return StrCat("names: ", ProtoQuoted(StrCat(names_.front(), "..", names_.back())));
    }
    std::vector<std::string> quoted;
    for (const std::string& name : names_) quoted.push_back(ProtoQuoted(name));
    return StrCat("names: [", Join(quoted, ", "), "]");
  }

  const bool named_;
  std::vector<std::string> names_;  // of columns whose type is type_
  std::string type_;
  std::string text_;
};

// The place of the column that is the row's time: the first one that is never missing and no day
// of birth. *doubt names another one.
size_t FindRowTime(const SampleColumns& sample, const std::vector<ColumnProposal>& proposals,
                   std::string* doubt) {
  size_t place = proposals.size();
  for (size_t i = 0; i < proposals.size(); ++i) {
    const SampleColumn& column = sample.columns[i];
    const bool birth = sample.named && IsBirthName(column.name);
    if (!proposals[i].time || column.missing > 0 || birth) continue;
    if (place == proposals.size()) {
      place = i;
    } else if (doubt->empty()) {
      *doubt = StrCat("taken for the row's time; ", Shown(column.name), " can be it, too");
    }
  }
  return place;
}

std::string FieldsText(const DelimitedFindings& found) {
  const SampleColumns& sample = found.sample;
  const size_t label = found.candidates[0];
  const std::string delimiter = found.schema.quoted() ? "" : found.schema.delimiter();
  const bool unnamed = !sample.named && !found.header_fault.empty();
  std::vector<ColumnProposal> proposals(sample.columns.size());
  for (size_t i = 0; i < proposals.size(); ++i) {
    ColumnProposal& proposal = proposals[i];
    if (i == label) {
      proposal.type = LabelType(sample.columns[i]);
      proposal.doubt = LabelDoubt(sample, found.candidates, found.given_label);
      if (proposal.doubt.empty() && !found.given_label && unnamed) {
        proposal.doubt = "taken for the label without its name";
      }
    } else {
      proposal =
          ProposeColumn(sample.columns[i], sample.named, sample.rows, found.telling[i], delimiter);
    }
    const bool tells_label = found.telling[i] == Telling::kValue;
    const bool may_be_label = !found.given_label && (tells_label || proposal.reason.empty()) &&
                              proposal.doubt.empty() && MayBeLabel(sample, found.candidates, i);
    if (may_be_label) proposal.doubt = "may be the label";
    const std::string& null_doubt = found.null_doubts[i];
    if (null_doubt.empty() || !proposal.reason.empty()) continue;
    StrAppend(&proposal.doubt, proposal.doubt.empty() ? "" : "; ", null_doubt);
  }
  std::string time_doubt;
  const size_t row_time = FindRowTime(sample, proposals, &time_doubt);
  FieldList list(sample.named);
  for (size_t i = 0; i < proposals.size(); ++i) {
    const SampleColumn& column = sample.columns[i];
    const ColumnProposal& proposal = proposals[i];
    if (column.name.empty()) continue;  // the names of rows
    const std::string comment = DoubtText(
        column.name, i == row_time && proposal.doubt.empty() ? time_doubt : proposal.doubt);
    if (proposal.time) {
      list.AddText(StrCat(comment, TimeFields(column, *proposal.time, i == row_time)));
    } else {
      list.Add(column.name,
               StrCat(proposal.type, proposal.reason.empty() ? "" : "  # ", proposal.reason),
               comment);
    }
  }
  return list.Take();
}

// The split by a hash of whole lines, or of the column of a table that tells most rows apart. Few
// values would make splits of no rows.
std::string SplitText(const DelimitedFindings& found) {
  constexpr size_t kLeastHashed = 30;
  const std::string shares = "split { train: 0.8 validation: 0.1 test: 0.1";
  if (!found.is_table) return shares + " by: HASH }\n";
  const SampleColumn* best = nullptr;
  const std::vector<SampleColumn>& columns = found.sample.columns;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool fraction = columns[i].numeric() && !columns[i].whole();
    if (i == found.candidates[0] || columns[i].is_list || fraction) continue;
    if (best == nullptr || columns[i].values.size() > best->values.size()) best = &columns[i];
  }
  if (best == nullptr || best->values.size() < kLeastHashed) {
    return StrCat("# Rows in order, as no column of single values has ", kLeastHashed,
                  " of them.\n", shares, " }\n");
  }
  return StrCat("# Rows of equal ", Shown(best->name), " share a split.\n", shares,
                " by: HASH hash_field: ", ProtoQuoted(best->name), " }\n");
}

}  // namespace

std::string ProposalHead(const TextSample& text, const ReadBack& read, std::string_view layout) {
  std::vector<std::string> files;
  for (const std::string& path : text.paths) {
    files.push_back(std::filesystem::path(path).filename().string());
  }
  std::string head = StrCat("# Proposed by prepare --guess from the first ", text.bytes(),
                            " bytes of ", Join(files, ", "), ":\n# ", read.rows, " rows, ",
                            read.bad_rows, " bad ones; ", layout, ".\n");
  if (read.bad_rows > 0) StrAppend(&head, "# The first bad one: ", read.first_fault, ".\n");
  return head;
}

std::string BadRowsText(const ReadBack& read) {
  // As many as the sample has are no surprise behind it.
  constexpr double kFewBadRows = 0.01;
  const auto all = static_cast<double>(read.rows + read.bad_rows);
  const double share = static_cast<double>(read.bad_rows) / all;
  if (share <= kFewBadRows && read.bad_rows <= kBadRows / 2) {
    return StrCat("max_bad_rows: ", kBadRows, "\n");
  }
  return StrCat("# Bad rows are left out: ", NumberText(share),
                " of all.\nmax_bad_rows: 1000000000\n");
}

std::string DelimitedSchema(const DelimitedFindings& found, const std::string& bad_rows) {
  return StrCat(LayoutText(found.schema), bad_rows, SplitText(found), FieldsText(found));
}

std::string DelimitedProposal(const TextSample& text, const DelimitedFindings& found,
                              const ReadBack& read) {
  const SampleColumns& sample = found.sample;
  const std::string& delimiter = found.schema.delimiter();
  const std::string between =
      found.is_table ? ""
                     : StrCat(" between ", delimiter == "\t" ? "tabs" : Shown(delimiter), ", ",
                              sample.named ? "with" : "no", " header");
  const std::string layout = StrCat(sample.columns.size(), " columns", between);
  const std::string fault =
      found.header_fault.empty()
          ? ""
          : StrCat("# Fields go by the places of columns, not by the header: ", found.header_fault,
                   ".\n");
  return StrCat(ProposalHead(text, read, layout), text.left_out, fault,
                LabelComments(sample.columns, found.candidates), ColumnTable(sample),
                DelimitedSchema(found, BadRowsText(read)));
}

}  // namespace elastor
