#include "trainer/prepare/guess/lists.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/text.h"
#include "trainer/prepare/guess/name_hints.h"
#include "trainer/prepare/guess/value_kinds.h"
#include "trainer/prepare/rows/list_text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

// In this order: what stands within the items of a list comes later. Control characters separate
// items in tables of Hive.
constexpr std::string_view kSeparators = "\x01\x02\x03|^;,/+&~ :_-#$@*";
constexpr std::string_view kSure = "\x01\x02\x03|^";  // stand between items only
constexpr std::string_view kUsual = ";,";
constexpr std::string_view kWithinNumbers = "/:_-";  // of dates, telephones, codes

constexpr std::string_view kBetweenNumbers = "|;, ";

constexpr int64_t kLeastLists = 20;  // whose second item is the same tell a sign from chance
constexpr size_t kFewSeconds = 20;   // of such lists
constexpr size_t kFewTuples = 20;
constexpr double kBracketShare = 0.9;
constexpr double kListShare = 0.02;    // of the values of a list have several items
constexpr double kRecurShare = 0.9;    // of these consist of items that other values have
constexpr double kMaybeShare = 0.5;    // the same, of what may be a list
constexpr double kNamedShare = 0.05;   // of the values of what its name calls a list have several
constexpr size_t kMostValues = 20000;  // are looked at for their items

// What a character separates in a column's values.
struct Items {
  int64_t rows = 0;  // that have it
  size_t values = 0;
  size_t several = 0;    // values of two items or more
  size_t recurring = 0;  // of these, made of items that other values have
  size_t least = 0;      // items of a value, and the most
  size_t most = 0;
  size_t distinct = 0;
  bool padded = false;   // some items have blanks around them, which are not of them
  size_t nested = 0;     // items with another separator in them
  size_t fractions = 0;  // items that are numbers with a fraction
  size_t numbers = 0;
  size_t uses = 0;    // items of all values together
  size_t reused = 0;  // of these, items that another value has, too
  bool alike = true;  // all items are integers, or the same letters before digits

  bool varies() const { return least < most; }
  // Whether the values are coordinates or other numbers with fractions, as many in each.
  bool AreNumbers() const {
    return fractions > 0 && numbers == distinct && several == values && values > kFewTuples;
  }
};

// Calls `add` for each item of a value that is not empty.
template <typename Add>
void ForEachItem(std::string_view value, char separator, const Add& add) {
  while (!value.empty()) {
    const size_t size = std::min(value.find(separator), value.size());
    if (size > 0) add(value.substr(0, size));
    value.remove_prefix(std::min(size + 1, value.size()));
  }
}

// The letters before the digits of an item that has nothing else: "N" of N55528; else all of it.
std::string_view ShapeOf(std::string_view item) {
  const size_t digits = std::min(item.find_last_not_of("0123456789") + 1, item.size());
  const std::string_view letters = item.substr(0, digits);
  const bool plain = std::ranges::all_of(
      letters, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  return plain && digits < item.size() ? letters : item;
}

void LookAt(std::string_view item, char separator, Items* items, std::string_view* shape) {
  constexpr std::string_view kNested = "|^;,:";
  items->nested += std::ranges::any_of(
      kNested, [&](char c) { return c != separator && item.find(c) != item.npos; });
  double number;
  if (ParseNumber(item, &number)) {
    ++items->numbers;
    items->fractions += item.find('.') != item.npos;
  }
  const std::string_view of_item = ShapeOf(item);
  if (items->distinct == 1) *shape = of_item;
  items->alike &= of_item == *shape && of_item.size() < item.size();
}

Items ItemsOf(const SampleColumn& column, char separator) {
  struct Use {
    size_t value = 0;  // the last one that has the item
    size_t values = 0;
  };
  Items items;
  std::unordered_map<std::string_view, Use> uses;
  std::string_view shape;
  for (const auto& [value, rows] : column.values) {
    if (value.find(separator) != value.npos) items.rows += rows;
    if (items.values == kMostValues) continue;
    ++items.values;
    size_t count = 0;
    ForEachItem(value, separator, [&](std::string_view text) {
      const std::string_view item = TrimBlanks(text);
      items.padded |= item.size() < text.size();
      if (item.empty()) return;
      Use& use = uses[item];
      items.distinct = uses.size();
      if (use.values == 0) LookAt(item, separator, &items, &shape);
      if (use.value != items.values) ++use.values;
      use.value = items.values;
      ++count;
    });
    items.several += count > 1;
    items.least = items.values == 1 ? count : std::min(items.least, count);
    items.most = std::max(items.most, count);
  }
  size_t looked = 0;
  for (const auto& [value, rows] : column.values) {
    if (looked++ == kMostValues) break;
    size_t count = 0;
    bool recurs = true;
    ForEachItem(value, separator, [&](std::string_view text) {
      const std::string_view item = TrimBlanks(text);
      if (item.empty()) return;
      const bool again = uses[item].values > 1;
      recurs &= again;
      ++items.uses;
      items.reused += again;
      ++count;
    });
    items.recurring += count > 1 && recurs;
  }
  return items;
}

int64_t LongestList(const SampleColumn& column, char separator) {
  int64_t longest = 1;
  for (const auto& [value, rows] : column.values) {
    int64_t count = 0;
    ForEachItem(value, separator, [&](std::string_view) { ++count; });
    longest = std::max(longest, count);
  }
  return longest;
}

// The separators that some value has.
std::string SeparatorsOf(const SampleColumn& column) {
  std::array<bool, 256> has = {};
  for (const auto& [value, rows] : column.values) {
    for (const char c : value) has[static_cast<unsigned char>(c)] = true;
  }
  std::string there;
  for (const char c : kSeparators) {
    if (has[static_cast<unsigned char>(c)]) there += c;
  }
  return there;
}

// Whether nearly all values begin and end with a bracket, or begin with one and the same word
// before it, as array([1, 2]).
bool InBrackets(const SampleColumn& column) {
  const auto word_of = [](std::string_view value) {
    const auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
    return value.substr(0, std::ranges::find_if_not(value, letter) - value.begin());
  };
  int64_t rows = 0;
  std::string_view first = column.values.begin()->first;
  for (const auto& [value, count] : column.values) first = std::min<std::string_view>(first, value);
  for (const auto& [value, count] : column.values) {
    const std::string_view word = word_of(value);
    if (word != word_of(first)) continue;
    const std::string_view text = std::string_view(value).substr(word.size());
    for (const std::string_view pair : {"[]", "{}", "()", "<>"}) {
      if (text.size() > 1 && text.front() == pair[0] && text.back() == pair[1]) rows += count;
    }
  }
  return column.values.size() > 1 &&
         static_cast<double>(rows) >= kBracketShare * static_cast<double>(column.count);
}

// Lists of Python or JSON. REQUIRES: InBrackets.
ListFinding FindBrackets(const SampleColumn& column) {
  ListFinding found;
  found.form = Field::BRACKETS;
  std::vector<std::string> items;
  int64_t rows = 0;
  size_t uses = 0, numbers = 0, fractions = 0;
  std::string odd;
  for (const auto& [value, count] : column.values) {
    if (!BracketItems(value, &items)) {
      if (odd.empty() || value < odd) odd = value;
      continue;
    }
    rows += count;
    std::erase(items, "");
    found.longest = std::max(found.longest, static_cast<int64_t>(items.size()));
    for (const std::string& item : items) {
      double number;
      ++uses;
      if (!ParseNumber(item, &number)) continue;
      ++numbers;
      fractions += item.find('.') != item.npos;
    }
  }
  if (static_cast<double>(rows) < kBracketShare * static_cast<double>(column.count)) {
    found.kind = ListFinding::kUnreadable;
    found.doubt =
        StrCat("values in brackets that are no lists, such as ", Shown(odd), "; left out");
  } else if (found.longest == 1) {  // as (none), (direct)
    found.kind = ListFinding::kMaybe;
    found.doubt = "may be lists in brackets of one item each, and is taken for single values";
  } else if (fractions > 0 && numbers == uses) {
    found.kind = ListFinding::kUnreadable;
    found.doubt = "several numbers in brackets, which no schema reads; left out";
  } else {
    found.kind = ListFinding::kList;
    if (!odd.empty()) found.doubt = StrCat(Shown(odd), " is no list, and makes a bad row");
  }
  return found;
}

// The signs between items that no separator is, as schemas have one byte.
constexpr std::string_view kWideSigns[] = {"\u3001", "\uff0c", "\uff1b", "\u060c", "\u061b",
                                           "\u00b7", "\u2022", "\u2192", "\uff5c", "\uff0f"};

// Whether most values begin with the slash of a path or have the "//" of an address.
bool ArePaths(const SampleColumn& column) {
  int64_t rows = 0;
  for (const auto& [value, count] : column.values) {
    if (value[0] == '/' || value.find("//") != value.npos) rows += count;
  }
  return 2 * rows > column.count;
}

bool IsOneOf(std::string_view characters, char c) { return characters.find(c) != characters.npos; }

ListFinding::Kind KindOf(const Items& items, char separator, int64_t count) {
  if (items.several == 0) return ListFinding::kNone;
  const bool often = static_cast<double>(items.rows) >= kListShare * static_cast<double>(count);
  const double recurs = static_cast<double>(items.recurring) / static_cast<double>(items.several);
  const bool reused = 2 * items.reused >= items.uses;
  const bool most_several = 2 * items.several >= items.values;
  const bool usual = IsOneOf(kUsual, separator);
  const bool digits = items.numbers == items.distinct;
  const bool alike =
      items.alike &&
      (digits ? (items.most > 2 || usual) && !IsOneOf(kWithinNumbers, separator) : items.most > 1);
  if (IsOneOf(kSure, separator) && (alike || most_several || recurs >= kMaybeShare)) {
    return ListFinding::kList;
  }
  if (often && items.varies() && alike) return ListFinding::kList;
  const size_t values_of_item = usual ? 1 : 2;
  const bool few = items.distinct * values_of_item < items.values;
  if (often && items.varies() && few && recurs >= kRecurShare) return ListFinding::kList;
  const bool shared = recurs >= kMaybeShare && items.distinct < items.values && items.several > 1;
  const bool words = reused && 3 * items.several >= items.values && items.varies();
  const bool parts =
      (usual || separator == '/') && items.varies() && 4 * items.several >= items.values;
  const bool maybe = shared || words || parts || (items.alike && items.most > 2) ||
                     (IsOneOf(kSure, separator) && often);
  return maybe ? ListFinding::kMaybe : ListFinding::kNone;
}

// The sign of several bytes that stands between the items of a list; empty: none does.
std::string_view WideSign(const SampleColumn& column) {
  constexpr char kCut = '\x1e';
  for (const std::string_view sign : kWideSigns) {
    const auto has = [&](const auto& each) { return each.first.find(sign) != std::string::npos; };
    if (std::ranges::none_of(column.values, has)) continue;
    SampleColumn cut;
    for (const auto& [value, rows] : column.values) {
      std::string text = value;
      for (size_t at = 0; (at = text.find(sign, at)) != text.npos; ++at) {
        text.replace(at, sign.size(), 1, kCut);
      }
      cut.values[text] += rows;
    }
    if (KindOf(ItemsOf(cut, kCut), kCut, column.count) != ListFinding::kNone) return sign;
  }
  return "";
}

// Why the items of a list should be looked at: nearly all lists have one and the same second item,
// as the sign of a > b > c, or an item looks missing. Empty: no reason.
std::string ItemDoubt(const SampleColumn& column, char separator) {
  std::map<std::string, int64_t> seconds;
  int64_t several = 0;
  std::string missing;
  for (const auto& [value, rows] : column.values) {
    size_t count = 0;
    ForEachItem(value, separator, [&, rows = rows](std::string_view text) {
      const std::string item(TrimBlanks(text));
      if (++count == 2) seconds[item] += rows;
      const bool is_null = item.empty() || column.nulls.contains(item) || !LooksMissing(item);
      if (!is_null && (missing.empty() || item < missing)) missing = item;
    });
    several += count > 1 ? rows : 0;
  }
  for (const auto& [item, rows] : seconds) {
    if (seconds.size() > kFewSeconds || rows < kLeastLists) continue;
    if (static_cast<double>(rows) < kRecurShare * static_cast<double>(several)) continue;
    return StrCat("taken for lists; ", Shown(item),
                  " is the second item of nearly all, and may stand between items");
  }
  return missing.empty()
             ? ""
             : StrCat("the item ", Shown(missing), " is taken for a value, and may mean missing");
}

std::string Named(char separator) { return separator == ' ' ? "blanks" : Shown({&separator, 1}); }

// Finds a separator of one byte.
ListFinding FindSeparated(const SampleColumn& column, bool named, std::string_view delimiter) {
  ListFinding found;
  const std::string there = SeparatorsOf(column);
  for (const char separator : kSeparators) {
    if (!IsOneOf(there, separator)) continue;
    if (delimiter == std::string_view(&separator, 1)) continue;
    if (separator == '/' && ArePaths(column)) continue;
    const Items items = ItemsOf(column, separator);
    if (items.AreNumbers() && IsOneOf(kBetweenNumbers, separator)) {
      found.kind = ListFinding::kUnreadable;
      found.doubt = StrCat("several numbers with ", Named(separator),
                           " between them, which no schema reads; left out");
      return found;
    }
    ListFinding::Kind kind = KindOf(items, separator, column.count);
    if (named && items.varies() && IsListName(column.name)) {
      const bool some =
          static_cast<double>(items.several) >= kNamedShare * static_cast<double>(items.values);
      if (kind == ListFinding::kMaybe) kind = ListFinding::kList;
      if (kind == ListFinding::kNone && some) kind = ListFinding::kMaybe;
    }
    if (kind == ListFinding::kNone || (kind == ListFinding::kMaybe && found.kind == kind)) continue;
    found.kind = kind;
    found.separator = separator;
    found.doubt = "";
    if (kind == ListFinding::kMaybe) {
      found.doubt = StrCat("may be lists with ", Named(separator),
                           " between items, and is taken for single values");
      continue;
    }
    const bool nested = 2 * items.nested > items.distinct;
    if (nested || items.fractions > 0) {
      found.kind = ListFinding::kUnreadable;
      found.doubt = StrCat("lists with ", Named(separator), " between items that ",
                           nested ? "have parts themselves" : "are numbers with a fraction",
                           "; no schema reads them; left out");
      return found;
    }
    if (items.padded) found.form = Field::TRIMMED;
    found.longest = LongestList(column, separator);
    if (!items.varies() && !items.alike) {
      found.doubt = StrCat("taken for lists with ", Named(separator), " between items; all have ",
                           items.most, " items, as names of several parts");
    }
    return found;
  }
  return found;
}

}  // namespace

ListFinding FindList(const SampleColumn& column, bool named, std::string_view delimiter) {
  if (column.numeric() || column.values.size() < 2) return {};
  if (InBrackets(column)) return FindBrackets(column);
  ListFinding found = FindSeparated(column, named, delimiter);
  if (!found.doubt.empty()) return found;
  if (const std::string_view sign = WideSign(column); !sign.empty()) {
    found.doubt = StrCat("may be lists with ", Shown(sign),
                         " between items, which no separator is; taken for ",
                         found.kind == ListFinding::kList ? "other lists" : "single values");
    if (found.kind == ListFinding::kNone) found.kind = ListFinding::kMaybe;
  } else if (found.kind == ListFinding::kList) {
    found.doubt = ItemDoubt(column, found.separator);
  }
  return found;
}

}  // namespace elastor
