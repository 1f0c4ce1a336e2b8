#ifndef ELASTOR_TRAINER_PREPARE_TABLE_COLUMNS_H_
#define ELASTOR_TRAINER_PREPARE_TABLE_COLUMNS_H_

#include <string>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "trainer/data/arrow/arrow_part.h"

namespace elastor {

// Returns the schema by which rows of Parquet and Arrow files are parsed: fields find their columns
// by name, and what the schema says about text does not hold.
Schema SchemaOfTables(const Schema& schema);

// What is read of a table.
struct TableColumns {
  std::vector<int> places;        // among the file's columns
  std::vector<ColumnForm> forms;  // by place: in which its fields read it
  // Their names as a header of SchemaOfTables has them. Where a field's column is sure to be
  // missing, the names of all other columns follow.
  std::string header;
};

// Chooses the columns that `schema` reads, in its order, whatever their order in the file. User
// error when one has a type without text, when a list is no bag's, and when whole lines are hashed.
StatusOr<TableColumns> ChooseColumns(const Schema& schema, const TableFile& table,
                                     const std::string& path);

// Returns how many rows of a group give about `bytes` of text, up to `most`, by what the file tells
// alone.
int64_t ChunkRows(const TableGroup& group, const TableColumns& columns, int64_t bytes,
                  int64_t most);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_TABLE_COLUMNS_H_
