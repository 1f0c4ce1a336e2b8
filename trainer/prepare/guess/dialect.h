#ifndef ELASTOR_TRAINER_PREPARE_GUESS_DIALECT_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_DIALECT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"

namespace elastor {

// How lines are cut into values: delimiter, quoted and skip_lines of `schema`.
struct Dialect {
  Schema schema;
  size_t columns = 0;
  size_t skipped = 0;  // records in schema.skip_lines lines
};

// Returns the values of a line; none when a quote is left open.
std::vector<std::string> SplitLine(const Schema& schema, const std::string& line);

// Joins lines to records as RecordScanner does. From a quote on that stays open, each line is one.
std::vector<std::string> RecordsOf(const Schema& schema, const std::vector<std::string>& lines);

// Returns the number of lines of a record.
int64_t LinesOf(const std::string& record);

// Returns the delimiter that cuts the most lines into equally many columns. Of equal ones it is the
// one between more numbers and times, then the one that makes more columns. User error naming
// `path` when none does so for nearly all lines.
StatusOr<Dialect> FindDialect(const std::vector<std::string>& lines, const std::string& path);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_DIALECT_H_
