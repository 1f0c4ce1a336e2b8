#ifndef ELASTOR_TRAINER_RECORDS_RUN_READER_H_
#define ELASTOR_TRAINER_RECORDS_RUN_READER_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "trainer/records/record_json.h"

namespace elastor {

// Read the files of a run's folder, for all programs. Errors are one line that names the file.

// Returns the completed experiment (CompleteStored in trainer/experiment/config.h).
StatusOr<Experiment> ReadRunExperiment(const std::string& folder);

// Returns the summary; none if the folder has none, which is then no finished run. User error if it
// is damaged.
StatusOr<std::optional<Summary>> ReadSummary(const std::string& folder);

// Returns the summary. User error, too, if there is none.
StatusOr<Summary> ReadFinishedRun(const std::string& folder);

// Returns the fingerprint of the data that the run's model was trained on; empty if the model is
// not there or its manifest is damaged.
std::string DataFingerprintOf(const std::string& folder);

// Calls `use` with every record of metrics.jsonl, in order. A last line without its end is left
// out: it is still being written, or a killed run has cut it off. User error, as "FILE:LINE: ...",
// for any other line that is no record, and for an error of `use`.
Status ReadRecords(const std::string& folder,
                   const std::function<Status(const RunRecord& record)>& use);

// Returns whether a field is there and finite, as its reader needs it. User error that names it.
Status CheckFinite(std::string_view name, double value);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_RUN_READER_H_
