#include "trainer/prepare/guess/columns.h"

#include <algorithm>
#include <cmath>

#include "trainer/prepare/guess/dialect.h"
#include "trainer/prepare/guess/value_kinds.h"
#include "trainer/prepare/rows/time_text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
void SampleColumn::Add(const std::string& value) {
  if (value.empty()) {
    ++missing;
  } else {
    ++values[value];
  }
}

void SampleColumn::Summarise(const std::vector<std::string>& null_texts) {
  for (const std::string& null : null_texts) {
    const auto found = values.find(null);
    if (found == values.end()) continue;
    nulls[null] = found->second;
    missing += found->second;
    values.erase(found);
  }
  for (const auto& [value, rows] : values) {
    count += rows;
    double number;
    if (ParseNumber(value, &number)) {
      const size_t digits = value[0] == '-' ? 1 : 0;
      const bool integer = value.find_first_not_of("0123456789", digits) == value.npos;
      numbers += rows;
      wholes += number == std::floor(number) ? rows : 0;
      integers += integer ? rows : 0;
      leading_zeros |= integer && value.size() > digits + 1 && value[digits] == '0';
      least = std::min(least, number);
      largest = std::max(largest, number);
      sum += number * static_cast<double>(rows);
    } else if (IsWrittenNumber(value)) {
      written_numbers += rows;
    }
    for (int format = 0; format < Field::TimeFormat_ARRAYSIZE; ++format) {
      times[format] += IsLikelyTime(value, static_cast<Field::TimeFormat>(format)) ? rows : 0;
    }
    if (IsWrittenTime(value)) written_times += rows;
  }
}

void ForEachRow(const Schema& schema, const TextSample& sample,
                const std::function<void(const std::vector<std::string>& values)>& row) {
  for (const auto& lines : sample.lines) {
    for (size_t i = sample.first_row; i < lines.size(); ++i) row(SplitLine(schema, lines[i]));
  }
}

SampleColumns ReadColumns(const Schema& schema, const std::vector<std::string>& names,
                          const TextSample& sample) {
  SampleColumns result;
  for (const std::string& name : names) result.columns.emplace_back().name = name;
  ForEachRow(schema, sample, [&](const std::vector<std::string>& row) {
    // Files put together repeat their header, which prepare counts as a bad row.
    if (row.size() != names.size() || row == names) return;
    ++result.rows;
    for (size_t i = 0; i < names.size(); ++i) result.columns[i].Add(row[i]);
  });
  return result;
}

}  // namespace elastor
