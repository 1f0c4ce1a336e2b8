#ifndef ELASTOR_TRAINER_DATA_ARROW_TABLE_SOURCE_H_
#define ELASTOR_TRAINER_DATA_ARROW_TABLE_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "trainer/data/arrow/arrow_part.h"

namespace elastor {

// Returns whether a file's first bytes are those of Parquet or Arrow. User error when it cannot be
// read.
StatusOr<bool> IsTable(const std::string& path);

// Opens a Parquet or Arrow file. Loads the part for Arrow, which lies beside the program. User
// error when it is not there, or when the file is damaged.
StatusOr<std::unique_ptr<TableFile>> OpenTable(const std::string& path);

// What Read, Next or Skip has found wrong with a file.
Status TableError(const std::string& path, const std::string& wrong);

// Returns text in quotes, as CSV writes it.
std::string QuotedText(std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_ARROW_TABLE_SOURCE_H_
