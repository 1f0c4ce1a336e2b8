#include "trainer/prepare/guess/header.h"

#include <algorithm>

#include "trainer/prepare/guess/dialect.h"
#include "trainer/prepare/guess/text_sample.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {

bool FirstLineIsHeader(const Schema& schema, const std::vector<std::string>& lines) {
  const size_t first = schema.skip_lines();
  const std::vector<std::string> names = SplitLine(schema, lines[first]);
  for (size_t i = 0; i < names.size(); ++i) {
    double number;
    if ((names[i].empty() && i > 0) || ParseNumber(names[i], &number) ||
        std::count(names.begin(), names.end(), names[i]) > 1) {
      return false;
    }
  }
  for (size_t line = first + 1; line < std::min(lines.size(), kLayoutLines); ++line) {
    const std::vector<std::string> row = SplitLine(schema, lines[line]);
    for (size_t i = 0; i < std::min(row.size(), names.size()); ++i) {
      if (row[i] == names[i]) return false;
    }
  }
  return true;
}

}  // namespace elastor
