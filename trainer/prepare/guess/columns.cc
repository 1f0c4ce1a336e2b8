#include "trainer/prepare/guess/columns.h"

#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "trainer/prepare/guess/dialect.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

// Times that data of users have: 2000 to 2040.
bool IsTime(std::string_view text, Field::TimeFormat format) {
  int64_t seconds;
  return ParseTime(text, format, &seconds) && seconds >= 946684800 && seconds < 2208988800;
}

}  // namespace

void SampleColumn::Add(const std::string& value) {
  if (value.empty() || MeansMissing(value)) {
    ++missing;
    if (!value.empty()) ++nulls[value];
    return;
  }
  ++count;
  ++values[value];
  double number;
  if (ParseNumber(value, &number)) {
    ++numbers;
    integers += value.find_first_not_of("0123456789", value[0] == '-') == value.npos;
    least = std::min(least, number);
    largest = std::max(largest, number);
    sum += number;
  }
  for (int format = 0; format < 3; ++format) {
    times[format] += IsTime(value, static_cast<Field::TimeFormat>(format));
  }
  for (size_t i = 0; i < kBagSeparators.size(); ++i) {
    const int64_t items = 1 + std::ranges::count(value, kBagSeparators[i]);
    bags[i] += items > 1;
    longest_bag[i] = std::max(longest_bag[i], items);
  }
}

void ForEachRow(const Schema& schema, const TextSample& sample,
                const std::function<void(const std::vector<std::string>& values)>& row) {
  for (const auto& lines : sample.lines) {
    for (size_t i = schema.skip_lines() + schema.header(); i < lines.size(); ++i) {
      row(SplitLine(schema, lines[i]));
    }
  }
}

SampleColumns ReadColumns(const Schema& schema, size_t count, const TextSample& sample) {
  SampleColumns result;
  result.columns.resize(count);
  const std::vector<std::string> names =
      schema.header() ? SplitLine(schema, sample.lines[0][schema.skip_lines()])
                      : std::vector<std::string>();
  for (size_t i = 0; i < count; ++i) {
    result.columns[i].name = names.empty() ? StrCat("c", i + 1) : names[i];
  }
  ForEachRow(schema, sample, [&](const std::vector<std::string>& row) {
    const bool good = row.size() == count;
    ++(good ? result.rows : result.bad_rows);
    for (size_t i = 0; good && i < count; ++i) result.columns[i].Add(row[i]);
  });
  return result;
}

std::vector<std::string> NullTexts(const std::vector<SampleColumn>& columns) {
  std::set<std::string> texts;
  for (const SampleColumn& column : columns) {
    for (const auto& [text, count] : column.nulls) texts.insert(text);
  }
  return {texts.begin(), texts.end()};
}

}  // namespace elastor
