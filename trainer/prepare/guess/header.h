#ifndef ELASTOR_TRAINER_PREPARE_GUESS_HEADER_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_HEADER_H_

#include <string>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "trainer/prepare/guess/dialect.h"

namespace elastor {

// The names of a file's columns.
struct Header {
  Schema schema;                   // the dialect's, with header, and with skip_lines anew
  std::vector<std::string> names;  // by column; c1, c2, ... where there are no others
  bool named = false;              // a line of the file names them
  size_t first_row = 0;            // the place of the first record behind them
  // Why fields go by the places of columns, not by their names; empty: they do not.
  std::string fault;
};

// Finds the line that names the columns: the first one after skip_lines, whose texts stand over
// numbers, or are no numbers and in no row. Names may be the numbers of the columns. The first name
// may be empty: R writes the names of rows in such a column. Where the names are no names for a
// schema (one stands twice, one is missing or long, the line has one fewer as R's), the line counts
// as skipped and fields get repaired names by their places. A line of more names than there are
// columns names none. User error naming `path` when a line has one name fewer, and the first column
// repeats a value, which names of rows do not: values hold the delimiter. REQUIRES: `dialect` of
// FindDialect, and more records than it skips.
StatusOr<Header> FindHeader(const Dialect& dialect, const std::vector<std::string>& records,
                            const std::string& path);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_HEADER_H_
