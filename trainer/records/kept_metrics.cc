#include "trainer/records/kept_metrics.h"

#include <string_view>

#include "trainer/records/record_json.h"

namespace elastor {

// A killed run may have left its last line unfinished.
KeptMetrics KeepMetrics(const std::string& text, int64_t step) {
  KeptMetrics kept;
  int64_t number = 0;
  std::string_view rest = text, line;
  while (TakeLine(&rest, &line)) {
    ++number;
    const StatusOr<RunRecord> record = ParseRecord(line);
    if (!record.ok()) {
      kept.no_records.push_back(number);
      continue;
    }
    const bool measured_at_end = kept.reaches_checkpoint && record->step < step;
    kept.reaches_checkpoint |=
        record->step > step || (record->step == step && record->event == "checkpoint");
    if (record->step <= step && !measured_at_end) kept.text.append(line) += '\n';
  }
  return kept;
}

}  // namespace elastor
