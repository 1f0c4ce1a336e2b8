#include "trainer/prepare/guess/header.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

#include "core/base/status.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "trainer/prepare/guess/text_sample.h"
#include "trainer/prepare/guess/value_kinds.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

using Texts = std::vector<std::string>;

// What the rows below a name have in its column.
struct Below {
  int64_t numbers = 0;
  int64_t texts = 0;
  bool has_name = false;
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();

  void Add(const std::string& value, const std::string& name) {
    has_name |= value == name;
    double number;
    if (ParseNumber(value, &number)) {
      ++numbers;
      least = std::min(least, number);
      largest = std::max(largest, number);
    } else if (!value.empty() && !LooksMissing(value)) {
      ++(IsWrittenNumber(value) || IsWrittenTime(value) ? numbers : texts);
    }
  }
};

std::vector<Below> LookBelow(const Dialect& dialect, const Texts& records, const Texts& names) {
  std::vector<Below> below(names.size());
  const size_t end = std::min(records.size(), kLayoutLines);
  for (size_t i = dialect.skipped + 1; i < end; ++i) {
    const Texts row = SplitLine(dialect.schema, records[i]);
    if (row.size() != names.size() || row == names) continue;  // files put together
    for (size_t column = 0; column < row.size(); ++column) {
      below[column].Add(row[column], names[column]);
    }
  }
  return below;
}

// Whether names are 0, 1, 2, ... or 1, 2, 3, ..., the first perhaps empty.
bool AreColumnNumbers(const Texts& names) {
  constexpr size_t kLeastNumbers = 3;  // tell numbers of columns from a row
  const size_t first = names[0].empty();
  if (names.size() < first + kLeastNumbers) return false;
  for (const size_t base : {0, 1}) {
    bool all = true;
    for (size_t i = first; i < names.size(); ++i) all &= names[i] == StrCat(i - first + base);
    if (all) return true;
  }
  return false;
}

// Whether texts stand over numbers more often than numbers that could stand among them.
bool DifferFromRows(const Texts& names, const std::vector<Below>& below) {
  int64_t differ = 0, alike = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    double number = 0;
    const bool is_number = ParseNumber(names[i], &number);
    const bool over_numbers = below[i].numbers > 10 * below[i].texts;
    if (names[i].empty()) continue;
    if (!is_number && over_numbers && !LooksMissing(names[i]) && !IsWrittenNumber(names[i]) &&
        !IsWrittenTime(names[i])) {
      ++differ;
    } else if (is_number && over_numbers && number >= below[i].least &&
               number <= below[i].largest) {
      ++alike;
    }
  }
  return differ > 0 && differ >= alike;
}

bool IsHeader(const Dialect& dialect, const Texts& records, const Texts& names) {
  const std::vector<Below> below = LookBelow(dialect, records, names);
  const bool rows = below[0].numbers + below[0].texts > 0;
  if (rows && AreColumnNumbers(names)) return true;
  if (DifferFromRows(names, below)) return true;
  for (size_t i = 0; i < names.size(); ++i) {
    if (below[i].has_name && !names[i].empty()) return false;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    double number;
    if ((names[i].empty() && i > 0) || ParseNumber(names[i], &number) ||
        std::count(names.begin(), names.end(), names[i]) > 1) {
      return false;
    }
  }
  return true;
}

// A vocabulary's file is named after its field, with three bytes for some characters.
constexpr size_t kMostNameBytes = 72;

bool IsName(const std::string& text) {
  return !text.empty() && text.size() <= kMostNameBytes && IsUtf8(text) &&
         text.find('\t') == text.npos && WithoutControls(text) == text;
}

// What a schema cannot have among the names of a header; empty: nothing.
std::string FaultOf(const Texts& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() && i == 0) continue;
    if (!IsName(names[i])) {
      return StrCat("column ", i + 1, " is named ", Shown(names[i]));
    }
    if (std::count(names.begin(), names.end(), names[i]) > 1) {
      return StrCat(Shown(names[i]), " names two columns");
    }
  }
  return "";
}

// Names of fields for all columns: those that are names, each once, else c1, c2, ...
Texts Repaired(const Texts& names, size_t columns) {
  Texts repaired;
  std::set<std::string> taken(names.begin(), names.end());
  std::set<std::string> used;
  for (size_t i = 0; i < columns; ++i) {
    std::string name = i < names.size() && IsName(names[i]) ? names[i] : StrCat("c", i + 1);
    const bool own = i < names.size() && name == names[i];
    for (int64_t number = 2; used.contains(name) || (!own && taken.contains(name)); ++number) {
      name = StrCat(own ? names[i] : StrCat("c", i + 1), "_", number);
    }
    used.insert(name);
    repaired.push_back(name);
  }
  return repaired;
}

// Whether no row has a value in the last column, as where every line ends in a delimiter.
bool LastIsEmpty(const Dialect& dialect, const Texts& records) {
  for (size_t i = dialect.skipped; i < std::min(records.size(), kLayoutLines); ++i) {
    const Texts row = SplitLine(dialect.schema, records[i]);
    if (!row.empty() && !row.back().empty()) return false;
  }
  return true;
}

// Whether no value of the first column stands in two rows, as R's names of rows.
bool FirstNamesRows(const Dialect& dialect, const Texts& records) {
  std::set<std::string> names;
  for (size_t i = dialect.skipped; i < std::min(records.size(), kLayoutLines); ++i) {
    const Texts row = SplitLine(dialect.schema, records[i]);
    if (row.size() == dialect.columns && !names.insert(row[0]).second) return false;
  }
  return true;
}

// The names in the last skipped record, but for an empty last one; none where it is no header.
Texts SkippedNames(const Dialect& dialect, const Texts& records) {
  if (dialect.skipped == 0) return {};
  Texts names = SplitLine(dialect.schema, records[dialect.skipped - 1]);
  if (names.size() > 1 && names.back().empty()) names.pop_back();
  double number;
  const bool are_names = names.size() > 1 && FaultOf(names).empty() &&
                         std::ranges::none_of(names, [&](const auto& name) {
                           return name.empty() || ParseNumber(name, &number);
                         });
  return are_names ? names : Texts();
}

// Whether the skipped records stand over a header, and so are titles, whatever number of words they
// have.
bool AreTitles(const Dialect& dialect, const Texts& records) {
  if (dialect.skipped == 0) return false;
  const Texts names = SplitLine(dialect.schema, records[dialect.skipped]);
  if (DifferFromRows(names, LookBelow(dialect, records, names))) return true;
  return records[dialect.skipped - 1].starts_with('#') && IsHeader(dialect, records, names);
}

}  // namespace

StatusOr<Header> FindHeader(const Dialect& dialect, const Texts& records, const std::string& path) {
  Header header;
  header.schema = dialect.schema;
  header.first_row = dialect.skipped;
  Texts names = AreTitles(dialect, records) ? Texts() : SkippedNames(dialect, records);
  if (names.size() == dialect.columns) {
    header.named = true;
    header.fault = "it has a delimiter behind the last name";
    header.names = Repaired(names, dialect.columns);
    return header;
  }
  if (names.size() > dialect.columns) {
    header.fault = StrCat("it has ", names.size(), " names for ", dialect.columns, " columns");
    header.names = Repaired({}, dialect.columns);
    return header;
  }
  if (names.size() + 1 == dialect.columns) {
    header.named = true;
    const bool last = LastIsEmpty(dialect, records);
    if (!last && !FirstNamesRows(dialect, records)) {
      return UserError(StrCat(path, ": the header has ", names.size(), " names for ",
                              dialect.columns,
                              " columns, and the first column repeats values; "
                              "expected a name for each column, and quotes around values that "
                              "hold ",
                              Shown(dialect.schema.delimiter())));
    }
    if (!last) names.insert(names.begin(), "");
    header.fault = StrCat("it has one name fewer than there are columns; the ",
                          last ? "last" : "first", " column has none");
    header.names = Repaired(names, dialect.columns);
    return header;
  }
  const std::string& record = records[dialect.skipped];
  names = SplitLine(dialect.schema, record);
  header.named = IsHeader(dialect, records, names);
  if (!header.named) {
    header.names = Repaired({}, dialect.columns);
    return header;
  }
  ++header.first_row;
  header.fault = FaultOf(names);
  if (header.fault.empty()) {
    header.schema.set_header(true);
    header.names = names;
  } else {
    header.schema.set_skip_lines(header.schema.skip_lines() + LinesOf(record));
    header.names = Repaired(names, dialect.columns);
  }
  return header;
}

}  // namespace elastor
