#ifndef ELASTOR_TRAINER_RUN_METRICS_CSV_H_
#define ELASTOR_TRAINER_RUN_METRICS_CSV_H_

#include <string>

namespace elastor {

// metrics.csv: the numbers of metrics.jsonl as one table (docs/use/outputs.md). Its columns are the
// same for every run, so that lines can be appended as they come; a record fills those that it has.

// The names of the columns, a line.
std::string MetricsCsvHeader();

// The lines of one record, which is a line of metrics.jsonl: one, of several labels one each, and
// one more for each slice. A text that is no record has none.
std::string MetricsCsvLines(const std::string& record);

// The table of a metrics.jsonl's text.
std::string MetricsCsv(const std::string& metrics);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_METRICS_CSV_H_
