#ifndef ELASTOR_TRAINER_PREPARE_SIDE_TABLES_H_
#define ELASTOR_TRAINER_PREPARE_SIDE_TABLES_H_

#include <cstdint>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "trainer/prepare/rows/side_table.h"

namespace elastor {

// Sets the hash of every lookup of the schema that has none. User error when a file cannot be read.
Status NoteHashes(Schema* schema);

// Reads the files of all lookups of the schema. User error naming file and line: a file that has
// another hash than the schema says, a row that cannot be read or has no key, a key that stands
// twice, or tables of more than `most_bytes` bytes together.
StatusOr<SideTables> ReadSideTables(const Schema& schema, int64_t most_bytes);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_SIDE_TABLES_H_
