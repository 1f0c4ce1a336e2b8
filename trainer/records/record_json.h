#ifndef ELASTOR_TRAINER_RECORDS_RECORD_JSON_H_
#define ELASTOR_TRAINER_RECORDS_RECORD_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "trainer/records/run_records.h"

namespace elastor {

// Return one JSON object on one line, without the newline. Numbers that are not finite become null.
// Bytes that are no UTF-8 become U+FFFD.
std::string ToJson(const TrainRecord& record);
std::string ToJson(const EvalRecord& record);
std::string ToJson(const SpectrumRecord& record);
std::string ToJson(const ScoringRecord& record);
std::string ToJson(const NtkRecord& record);  // without the eigenvalues
std::string ToJson(const CheckpointRecord& record);
std::string ToJson(const TableRecord& record);

// Returns the text of summary.json, indented.
std::string ToJson(const Summary& summary);

// A line of metrics.jsonl.
struct RunRecord {
  std::string event;
  int64_t step = 0;
  // monostate: an event that this build does not know. Histograms of ranks have the written bins.
  std::variant<std::monostate, TrainRecord, EvalRecord, TrainingEvalRecord, SpectrumRecord,
               ScoringRecord, NtkRecord, CheckpointRecord, TableRecord>
      values;
};

// Read such texts, also those of earlier and later builds. A field that the text does not have, or
// that is null, is empty: a double is not-a-number, a text "", an integer 0. A field that this
// build does not know is passed over. User error in one line, without a place, for a text that is
// cut off or no object, for a record without event or step, and for a field of another type.
StatusOr<RunRecord> ParseRecord(std::string_view line);
StatusOr<Summary> ParseSummary(std::string_view text);

// Takes the first line, without its end, off `text`. Returns false if no whole line is left.
bool TakeLine(std::string_view* text, std::string_view* line);

// Merges neighbouring bins of a RankRecord's histogram into the 32 bins that records show.
std::vector<int64_t> CoarseHistogram(const std::vector<int64_t>& histogram);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_RECORD_JSON_H_
