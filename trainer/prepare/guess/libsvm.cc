#include "trainer/prepare/guess/libsvm.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "core/base/text.h"
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

struct LibsvmRows {
  size_t least_pairs = std::numeric_limits<size_t>::max();
  size_t most_pairs = 0;
  bool ones = true;                  // all values are 1
  bool disjoint = true;              // no index stands at two places
  bool from_one = true;              // indices are those of the places: 1, 2, ...
  bool from_zero = true;             // or 0, 1, ...
  std::string odd_label;             // the first one that is neither 0, 1 nor -1
  std::string triple, query, wrong;  // the first word of each kind
  std::unordered_map<std::string, size_t> place_of;

  void Add(const std::vector<std::string>& words);
  void AddPair(size_t place, const std::string& word);
};

void Note(const std::string& word, std::string* first) {
  if (first->empty()) *first = word;
}

void LibsvmRows::Add(const std::vector<std::string>& words) {
  if (words.empty()) return;
  float label;
  if (!ParseLabel(words[0], &label) && IsNumber(words[0])) Note(words[0], &odd_label);
  for (size_t i = 1; i < words.size(); ++i) AddPair(i - 1, words[i]);
  least_pairs = std::min(least_pairs, words.size() - 1);
  most_pairs = std::max(most_pairs, words.size() - 1);
}

void LibsvmRows::AddPair(size_t place, const std::string& word) {
  const size_t colon = word.find(':');
  if (word.starts_with("qid:")) return Note(word, &query);
  if (!IsPairOrTriple(word)) return;  // of a bad row
  if (word.find(':', colon + 1) != word.npos) return Note(word, &triple);
  const std::string index = word.substr(0, colon);
  int64_t number = -1;
  if (!ParseInteger(index, &number)) Note(word, &wrong);
  double value = 0;
  ParseNumber(std::string_view(word).substr(colon + 1), &value);
  ones &= value == 1;
  disjoint &= place_of.try_emplace(index, place).first->second == place;
  from_one &= number == static_cast<int64_t>(place) + 1;
  from_zero &= number == static_cast<int64_t>(place);
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
  if (!rows.triple.empty()) {
    return UserError(StrCat(path, ": found ", Shown(rows.triple),
                            ", a triple field:index:value of libffm, which no schema reads; "
                            "expected pairs index:value"));
  }
  if (!rows.query.empty() || !rows.wrong.empty()) {
    return UserError(StrCat(path, ": found ", Shown(rows.query.empty() ? rows.wrong : rows.query),
                            ", which no schema reads; expected pairs index:value alone"));
  }
  if (!rows.odd_label.empty()) {
    return UserError(StrCat(path, ": found label ", Shown(rows.odd_label),
                            " in libsvm's layout; expected 0, 1 or -1"));
  }
  LibsvmFindings found;
  found.least_pairs = rows.least_pairs;
  found.most_pairs = rows.most_pairs;
  const bool same = rows.least_pairs == rows.most_pairs;
  found.zero_based = rows.from_zero;
  if (!rows.ones && !(same && (rows.from_one || rows.from_zero))) {
    return UserError(StrCat(path,
                            ": pairs with values other than 1, and not all indices in every row; "
                            "no schema reads such rows"));
  }
  found.fields = !rows.ones              ? LibsvmFindings::kNumeric
                 : same && rows.disjoint ? LibsvmFindings::kCategorical
                                         : LibsvmFindings::kBag;
  return found;
}

std::string LibsvmSchema(const LibsvmFindings& found, const std::string& bad_rows) {
  const size_t most = found.most_pairs;
  const std::string names = most == 1 ? "\"f1\"" : StrCat("\"f1..f", most, "\"");
  const std::string fields =
      found.fields == LibsvmFindings::kBag
          ? StrCat("name: \"features\" type: MULTI_HOT max_length: ", most)
          : StrCat("names: ", names,
                   " type: ", found.fields == LibsvmFindings::kNumeric ? "NUMERIC" : "CATEGORICAL");
  const bool zero_based = found.fields == LibsvmFindings::kNumeric && found.zero_based;
  return StrCat("layout: LIBSVM\n", zero_based ? "zero_based: true\n" : "", bad_rows,
                "split { train: 0.8 validation: 0.1 test: 0.1 by: HASH }\nfields { ", fields,
                " }\n");
}

std::string LibsvmProposal(const TextSample& text, const LibsvmFindings& found,
                           const ReadBack& read) {
  const std::string pairs = found.least_pairs == found.most_pairs
                                ? StrCat(found.most_pairs)
                                : StrCat(found.least_pairs, " to ", found.most_pairs);
  return StrCat(
      ProposalHead(text, read, StrCat("label, then ", pairs, " pairs index:value")),
      "# Label: ", NumberText(static_cast<double>(read.positives) / static_cast<double>(read.rows)),
      " positive.\n", LibsvmSchema(found, BadRowsText(read)));
}

}  // namespace elastor
