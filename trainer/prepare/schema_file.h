#ifndef ELASTOR_TRAINER_PREPARE_SCHEMA_FILE_H_
#define ELASTOR_TRAINER_PREPARE_SCHEMA_FILE_H_

#include <string>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"

namespace elastor {

// Reads a Schema in protobuf text format, checks it, and gives fields that share the encoding of
// the one they share. User error naming file:line:column, or file and field.
StatusOr<Schema> ReadSchemaFile(const std::string& path);
// The same from text; `source` names it in errors.
StatusOr<Schema> ParseSchema(const std::string& text, const std::string& source);
// The same from the text that a prepared set or a model holds (DatasetInfo::schema), whose fields
// have the encoding of those that they share already.
StatusOr<Schema> ParseStoredSchema(const std::string& text, const std::string& source);

// Where the rows of a layout come from.
enum class RowSource { kNone, kLines, kWholeFiles };

// What a layout asks of a schema and of the options. A new layout is a row in the table of these in
// schema_file.cc, and one in the table of writers in prepare.cc.
struct LayoutRules {
  Schema::Layout layout;
  RowSource source;
  // The layout alone says which fields there are. Such data come without vocabularies, and are made
  // in one go.
  bool makes_fields;
  // Test rows have files of their own. Training rows are needed beside them, and may be shared out
  // by `split`.
  bool has_test_files;
  // Checks the part of the schema that only some layouts have, and completes it.
  Status (*check)(Schema* schema);
};

const LayoutRules& RulesOf(const Schema& schema);

inline bool MakesItsFields(const Schema& schema) { return RulesOf(schema).makes_fields; }

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_SCHEMA_FILE_H_
