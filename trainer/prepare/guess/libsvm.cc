#include "trainer/prepare/guess/libsvm.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "core/base/text.h"
#include "trainer/prepare/guess/columns.h"
#include "trainer/prepare/guess/label.h"
#include "trainer/prepare/guess/proposal.h"
#include "trainer/prepare/guess/types.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

// The words of a line up to a comment, which SVMlight allows.
std::vector<std::string> RowWords(const std::string& line) {
  std::vector<std::string> words;
  for (size_t at = line.find_first_not_of(" \t"); at < line.size() && line[at] != '#';
       at = line.find_first_not_of(" \t", at)) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

bool IsNumber(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number;
  return ParseNumber(text, &number);
}

// Whether the parts of a word between colons are a name or index, and numbers.
bool IsPairOrTriple(const std::string& word) {
  const size_t first = word.find(':'), last = word.rfind(':');
  if (first == word.npos || first == 0) return false;
  return IsNumber(std::string_view(word).substr(last + 1)) &&
         (first == last || IsNumber(std::string_view(word).substr(first + 1, last - first - 1)));
}

constexpr int64_t kMostIndexed = 4096;       // features that are proposed as fields of numbers
constexpr int64_t kMostTripleFields = 4096;  // of libffm

// What the triples of one field of libffm are.
struct TripleField {
  bool once = true;  // in every row
  bool ones = true;  // all values are 1
  size_t most = 0;   // triples of a row
  std::string index;
  bool one_index = true;
};

struct LibsvmRows {
  SampleColumn label;
  size_t least_pairs = std::numeric_limits<size_t>::max();
  size_t most_pairs = 0;
  bool ones = true;                                     // all values are 1
  bool alike = true;                                    // all values of a row are the same
  bool disjoint = true;                                 // no index stands at two places
  int64_t least = std::numeric_limits<int64_t>::max();  // index, or field of a triple
  int64_t largest = -1;
  size_t pairs = 0, triples = 0;
  bool query = false;
  std::string wrong;  // the first word whose index or field is no integer from 0 on
  std::unordered_map<std::string, size_t> place_of;
  std::map<int64_t, TripleField> fields;

  void Add(const std::vector<std::string>& words);

 private:
  void AddPair(size_t place, const std::string& word, std::string* value);
};

void LibsvmRows::Add(const std::vector<std::string>& words) {
  if (words.empty()) return;
  if (IsNumber(words[0])) label.Add(words[0]);
  size_t place = 0;
  std::string value;
  std::map<int64_t, size_t> triples_of;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with("qid:")) {
      query = true;
    } else if (IsPairOrTriple(words[i])) {  // else the row is bad
      AddPair(place++, words[i], &value);
      int64_t field;
      const std::string name = words[i].substr(0, words[i].find(':'));
      if (ParseInteger(name, &field)) ++triples_of[field];
    }
  }
  for (const auto& [field, count] : triples_of) {
    const auto found = fields.find(field);
    if (found == fields.end()) continue;
    found->second.once &= count == 1;
    found->second.most = std::max(found->second.most, count);
  }
  least_pairs = std::min(least_pairs, place);
  most_pairs = std::max(most_pairs, place);
}

// *value: of the pair before, in the row.
void LibsvmRows::AddPair(size_t place, const std::string& word, std::string* value) {
  const size_t first = word.find(':'), last = word.rfind(':');
  const std::string name = word.substr(0, first);
  int64_t number = -1;
  if ((!ParseInteger(name, &number) || number < 0) && wrong.empty()) wrong = word;
  if (number >= 0) least = std::min(least, number);
  largest = std::max(largest, number);
  const std::string text = word.substr(last + 1);
  double parsed = 0;
  ParseNumber(text, &parsed);
  ones &= parsed == 1;
  alike &= place == 0 || text == *value;
  *value = text;
  if (first == last) {
    ++pairs;
    disjoint &= place_of.try_emplace(name, place).first->second == place;
    return;
  }
  ++triples;
  if (number < 0 || (fields.size() > kMostTripleFields && !fields.contains(number))) return;
  TripleField& field = fields[number];
  const std::string index = word.substr(first + 1, last - first - 1);
  field.ones &= parsed == 1;
  field.one_index &= field.index.empty() || field.index == index;
  field.index = index;
}

// "f1", or "f1..f4".
std::string NamesFrom(int64_t first, int64_t last) {
  return first == last ? StrCat("f", first) : StrCat("f", first, "..f", last);
}

// Pairs index:value as fields.
LibsvmFindings::Fields PairFields(const LibsvmRows& rows) {
  const std::string bag = StrCat("MULTI_HOT max_length: ", rows.most_pairs);
  if (rows.ones && rows.least_pairs == rows.most_pairs && rows.disjoint) {
    return {NamesFrom(1, static_cast<int64_t>(rows.most_pairs)), "CATEGORICAL", ""};
  }
  if (rows.ones) return {"features", bag, ""};
  if (rows.largest <= kMostIndexed) {
    return {NamesFrom(rows.least == 0 ? 0 : 1, rows.largest), "NUMERIC", ""};
  }
  return {"features", bag + " any_value: true",
          rows.alike ? ""
                     : StrCat("numbers at indices up to ", rows.largest,
                              " are left out; the indices alone are read")};
}

// Returns the type of a field of libffm, and a doubt.
LibsvmFindings::Fields TripleType(const TripleField& field, bool alike) {
  const bool numbers = !field.ones && !alike;
  if (numbers && field.once && field.one_index) return {"", "NUMERIC", ""};
  const std::string any = field.ones ? "" : " any_value: true";
  const std::string doubt =
      numbers ? "numbers other than 1 are left out; the indices alone are read" : "";
  if (field.once) return {"", "CATEGORICAL" + any, doubt};
  return {"", StrCat("MULTI_HOT max_length: ", field.most, any), doubt};
}

// Triples field:index:value as fields; neighbours of one type are one entry.
std::vector<LibsvmFindings::Fields> TripleFields(const LibsvmRows& rows) {
  std::vector<LibsvmFindings::Fields> entries;
  int64_t first = rows.least == 0 ? 0 : 1;
  for (int64_t number = first; number <= rows.largest; ++number) {
    const auto field = rows.fields.find(number);
    LibsvmFindings::Fields entry = field == rows.fields.end()
                                       ? LibsvmFindings::Fields{"", "IGNORED", ""}
                                       : TripleType(field->second, rows.alike);
    const bool same = !entries.empty() && entries.back().type == entry.type &&
                      entries.back().doubt == entry.doubt;
    if (!same) {
      first = number;
      entries.push_back(std::move(entry));
    }
    entries.back().names = NamesFrom(first, number);
  }
  return entries;
}

// Puts a field of the label first if the label is not 0 or -1, and 1.
void AddLabel(LibsvmRows* rows, LibsvmFindings* found) {
  rows->label.Summarise({});
  const LabelForm form = LabelFormOf(rows->label);
  const bool three = form == LabelForm::kZeroOne && HasThreeSigns(rows->label);
  if (form != LabelForm::kTwoNumbers && form != LabelForm::kRatings && !three) return;
  const std::string threshold = NumberText(LabelThreshold(rows->label));
  found->fields.insert(
      found->fields.begin(),
      {"label", LabelType(rows->label),
       three                         ? kThreeSigns
       : form == LabelForm::kRatings ? StrCat("numbers from ", threshold, " on count as 1")
                                     : ""});
}

}  // namespace

bool IsLibsvm(const std::vector<std::string>& lines) {
  const size_t count = std::min(lines.size(), kLayoutLines);
  size_t good = 0, with_pairs = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::vector<std::string> words = RowWords(lines[i]);
    if (words.empty() || !IsNumber(words[0])) continue;
    if (!std::all_of(words.begin() + 1, words.end(), IsPairOrTriple)) continue;
    ++good;
    with_pairs += words.size() > 1;
  }
  return 2 * with_pairs > count &&
         static_cast<double>(good) >= kLayoutShare * static_cast<double>(count);
}

StatusOr<LibsvmFindings> FindLibsvm(const TextSample& text) {
  LibsvmRows rows;
  for (const auto& lines : text.lines) {
    for (const std::string& line : lines) rows.Add(RowWords(line));
  }
  const std::string& path = text.paths[0];
  if (!rows.wrong.empty()) {
    return UserError(StrCat(path, ": found ", Shown(rows.wrong),
                            ", which no schema reads; expected pairs index:value alone, each "
                            "index an integer from 0 on"));
  }
  if (rows.pairs > 0 && rows.triples > 0) {
    return UserError(path +
                     ": pairs index:value stand beside triples field:index:value; "
                     "expected one of them");
  }
  if (rows.triples > 0 && rows.largest > kMostTripleFields) {
    return UserError(StrCat(path, ": found field ", rows.largest, " of libffm; expected ",
                            kMostTripleFields, " at most"));
  }
  LibsvmFindings found;
  found.least_pairs = rows.least_pairs;
  found.most_pairs = rows.most_pairs;
  found.triples = rows.triples > 0;
  found.query = rows.query;
  found.fields = found.triples ? TripleFields(rows) : std::vector{PairFields(rows)};
  found.zero_based = rows.least == 0 && (found.triples || found.fields[0].type == "NUMERIC");
  AddLabel(&rows, &found);
  if (found.query) found.fields.insert(found.fields.begin(), {"query", "GROUP", ""});
  return found;
}

std::string LibsvmSchema(const LibsvmFindings& found, const std::string& bad_rows) {
  std::string text = StrCat("layout: ", found.triples ? "LIBFFM" : "LIBSVM", "\n",
                            found.zero_based ? "zero_based: true\n" : "", bad_rows,
                            "split { train: 0.8 validation: 0.1 test: 0.1 by: HASH",
                            found.query ? " hash_field: \"query\"" : "", " }\n");
  for (const LibsvmFindings::Fields& entry : found.fields) {
    if (!entry.doubt.empty()) StrAppend(&text, "# check ", entry.names, ": ", entry.doubt, "\n");
    const bool range = entry.names.find("..") != std::string::npos;
    StrAppend(&text, "fields { ", range ? "names: " : "name: ", ProtoQuoted(entry.names),
              " type: ", entry.type, " }\n");
  }
  return text;
}

std::string LibsvmProposal(const TextSample& text, const LibsvmFindings& found,
                           const ReadBack& read) {
  const std::string pairs = found.least_pairs == found.most_pairs
                                ? StrCat(found.most_pairs)
                                : StrCat(found.least_pairs, " to ", found.most_pairs);
  return StrCat(
      ProposalHead(text, read,
                   StrCat("label, then ", pairs,
                          found.triples ? " triples field:index:value" : " pairs index:value")),
      "# Label: ", NumberText(static_cast<double>(read.positives) / static_cast<double>(read.rows)),
      " positive.\n", LibsvmSchema(found, BadRowsText(read)));
}

}  // namespace elastor
