#include "trainer/prepare/guess/libsvm.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/base/text.h"
#include "trainer/prepare/guess/proposal.h"
#include "trainer/prepare/guess/types.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words;
  for (size_t at = line.find_first_not_of(" \t"); at < line.size();
       at = line.find_first_not_of(" \t", at)) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

bool IsPair(const std::string& word) {
  const size_t colon = word.find(':');
  int64_t index;
  double value;
  return colon != word.npos && ParseInteger(word.substr(0, colon), &index) &&
         ParseNumber(word.substr(colon + 1), &value);
}

// `words`: a line's.
bool IsLibsvmRow(const std::vector<std::string>& words) {
  float label;
  return words.size() > 1 && ParseLabel(words[0], &label) &&
         std::all_of(words.begin() + 1, words.end(), IsPair);
}

struct LibsvmRows {
  int64_t rows = 0;
  int64_t bad_rows = 0;
  int64_t positives = 0;
  size_t least_pairs = std::numeric_limits<size_t>::max();
  size_t most_pairs = 0;
  bool ones = true;  // all values are 1

  void Add(const std::vector<std::string>& words) {
    if (!IsLibsvmRow(words)) {
      ++bad_rows;
      return;
    }
    ++rows;
    float label = 0;
    ParseLabel(words[0], &label);
    positives += label == 1;
    least_pairs = std::min(least_pairs, words.size() - 1);
    most_pairs = std::max(most_pairs, words.size() - 1);
    for (size_t i = 1; i < words.size(); ++i) {
      double value = 0;
      ParseNumber(std::string_view(words[i]).substr(words[i].find(':') + 1), &value);
      ones &= value == 1;
    }
  }
};

std::string FieldsText(const LibsvmRows& found) {
  const size_t most = found.most_pairs;
  if (found.least_pairs != most) {
    return StrCat("fields { name: \"features\" type: MULTI_HOT max_length: ", most, " }\n");
  }
  const std::string names = most == 1 ? "\"f1\"" : StrCat("\"f1..f", most, "\"");
  return StrCat("fields { names: ", names, " type: ", found.ones ? "CATEGORICAL" : "NUMERIC",
                " }\n");
}

}  // namespace

bool IsLibsvm(const std::vector<std::string>& lines) {
  const size_t count = std::min(lines.size(), kLayoutLines);
  const auto good = std::count_if(lines.begin(), lines.begin() + count,
                                  [](const auto& line) { return IsLibsvmRow(WordsOf(line)); });
  return static_cast<double>(good) >= kLayoutShare * static_cast<double>(count);
}

StatusOr<std::string> LibsvmProposal(const TextSample& text) {
  LibsvmRows found;
  for (const auto& lines : text.lines) {
    for (const std::string& line : lines) found.Add(WordsOf(line));
  }
  const bool same = found.least_pairs == found.most_pairs;
  if (!found.ones && !same) {
    return UserError(StrCat(text.paths[0],
                            ": pairs with values other than 1, and not as many in every row; "
                            "no schema reads such rows"));
  }
  const std::string pairs =
      same ? StrCat(found.most_pairs) : StrCat(found.least_pairs, " to ", found.most_pairs);
  return StrCat(ProposalHead(text, found.rows, found.bad_rows,
                             StrCat("label, then ", pairs, " pairs index:value")),
                "# Label: ",
                NumberText(static_cast<double>(found.positives) / static_cast<double>(found.rows)),
                " positive.\nlayout: LIBSVM\nmax_bad_rows: 100\n"
                "split { train: 0.8 validation: 0.1 test: 0.1 by: HASH }\n",
                FieldsText(found));
}

}  // namespace elastor
