#ifndef ELASTOR_TRAINER_RECORDS_METRICS_CSV_H_
#define ELASTOR_TRAINER_RECORDS_METRICS_CSV_H_

#include <string>

namespace elastor {

// metrics.csv shows the numbers of metrics.jsonl as one table (docs/use/outputs.md). Every run
// has the same columns, so that lines can be appended as they come; a record fills the columns that
// it has.

// Returns the line with the columns' names.
std::string MetricsCsvHeader();

// Returns the lines for one record, which is a line of metrics.jsonl: one line per label, and one
// more for each slice. A text that is no record gives no lines.
std::string MetricsCsvLines(const std::string& record);

// Returns the whole table for the text of a metrics.jsonl.
std::string MetricsCsv(const std::string& metrics);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_METRICS_CSV_H_
