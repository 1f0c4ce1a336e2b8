#include "trainer/records/kept_metrics.h"

#include <sstream>

#include "core/base/json_entry.h"
#include "nlohmann/json.hpp"

namespace elastor {

// A killed run may have left its last line unfinished.
KeptMetrics KeepMetrics(const std::string& text, int64_t step) {
  KeptMetrics kept;
  std::istringstream lines(text);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (NestsTooDeep(line) || !record.is_object() || !record.contains("step") ||
        !record["step"].is_number_integer()) {
      if (!lines.eof()) kept.no_records.push_back(number);
      continue;
    }
    const int64_t of_record = record["step"].get<int64_t>();
    kept.reaches_checkpoint |= of_record > step || (of_record == step && record.contains("event") &&
                                                    record["event"] == "checkpoint");
    if (of_record <= step) kept.text += line + "\n";
  }
  return kept;
}

}  // namespace elastor
