#include "trainer/prepare/guess/nulls.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "core/base/text.h"
#include "trainer/prepare/guess/name_hints.h"
#include "trainer/prepare/guess/value_kinds.h"
#include "trainer/prepare/rows/time_text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr size_t kMostCodeLetters = 3;
constexpr size_t kManyColumns = 3;  // that write a missing value in one way tell that it is one
constexpr size_t kLeastCodes = 3;   // of a column that tell codes from chance

bool IsNumberOrTime(const std::string& text) {
  double number;
  int64_t seconds;
  return ParseNumber(text, &number) || IsWrittenNumber(text) ||
         ParseTime(text, Field::YYYY_MM_DD_HH_MM_SS, &seconds) || IsWrittenTime(text);
}

// Whether all values but those that look missing are numbers or times.
bool IsTyped(const SampleColumn& column) {
  bool some = false;
  for (const auto& [value, rows] : column.values) {
    if (LooksMissing(value)) continue;
    if (!IsNumberOrTime(value)) return false;
    some = true;
  }
  return some;
}

// Whether `text` is one of a column's codes, as NA is of countries: short, of letters like all
// others, and as long as most.
bool IsCode(const SampleColumn& column, const std::string& text) {
  const auto alike = [&](const std::string& value) {
    return value.size() <= kMostCodeLetters && std::ranges::all_of(value, [&](char c) {
             return std::isalpha(static_cast<unsigned char>(c)) != 0 &&
                    (std::isupper(static_cast<unsigned char>(c)) != 0) ==
                        (std::isupper(static_cast<unsigned char>(text[0])) != 0);
           });
  };
  size_t codes = 0;
  for (const auto& [value, rows] : column.values) {
    if (value == text) continue;
    if (!alike(value)) return false;
    codes += value.size() == text.size();
  }
  return alike(text) && codes >= kLeastCodes && 2 * codes >= column.values.size() - 1;
}

// Whether `text` is the third one of a label that has two values.
bool IsMissingLabel(const SampleColumn& column, const std::string& text) {
  return MayBeValue(text) && column.values.size() == 3 &&
         LabelNameOf(column.name) == LabelName::kYes;
}

}  // namespace

Nulls FindNulls(const std::vector<SampleColumn>& columns) {
  struct Use {
    size_t columns = 0;  // that have the text
    std::string typed;   // one of them that has numbers or times, if any
  };
  std::map<std::string, Use> uses;
  std::vector<bool> typed;
  for (const SampleColumn& column : columns) {
    typed.push_back(IsTyped(column));
    for (const auto& [value, rows] : column.values) {
      if (!LooksMissing(value)) continue;
      Use& use = uses[value];
      ++use.columns;
      if (typed.back()) use.typed = column.name;
    }
  }
  for (const SampleColumn& column : columns) {
    for (const auto& [value, rows] : column.values) {
      if (IsMissingLabel(column, value)) uses[value].typed = column.name;
    }
  }
  const auto means_missing = [](const std::string& text, const Use& use) {
    return !MayBeValue(text) || !use.typed.empty() || use.columns >= kManyColumns;
  };
  // Whoever leaves missing values empty writes no NA for them.
  const bool empties = std::ranges::any_of(columns, [](const auto& c) { return c.missing > 0; });
  const auto doubt_of = [&](const SampleColumn& column, const std::string& text) -> std::string {
    const Use& use = uses[text];
    const bool code = IsCode(column, text);
    if (IsMissingLabel(column, text)) return "";
    if (!means_missing(text, use)) {
      const bool certain = code && empties && IsPlaceName(column.name);
      return certain ? "" : StrCat(Shown(text), " is taken for a value, and may mean missing");
    }
    if (use.columns >= kManyColumns && !code) return "";
    return StrCat(Shown(text), " means missing, as in ",
                  use.typed.empty() ? "other columns" : Shown(use.typed),
                  ", and may be a value here");
  };
  Nulls result;
  for (const auto& [text, use] : uses) {
    if (means_missing(text, use)) result.texts.push_back(text);
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    std::string& doubt = result.doubts.emplace_back();
    for (const auto& [value, rows] : columns[i].values) {
      if (typed[i] || !MayBeValue(value)) continue;
      if (const std::string found = doubt_of(columns[i], value); !found.empty()) doubt = found;
    }
  }
  return result;
}

}  // namespace elastor
