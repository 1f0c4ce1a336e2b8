#ifndef ELASTOR_TRAINER_PREPARE_SCHEMA_FILE_H_
#define ELASTOR_TRAINER_PREPARE_SCHEMA_FILE_H_

#include <string>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "trainer/prepare/layouts.h"

namespace elastor {

// Reads a Schema in protobuf text format, checks it, and gives fields that share the encoding of
// the one they share. User error naming file:line:column, or file and field.
StatusOr<Schema> ReadSchemaFile(const std::string& path);
// The same from text; `source` names it in errors.
StatusOr<Schema> ParseSchema(const std::string& text, const std::string& source);
// The same from the text that a prepared set or a model holds (DatasetInfo::schema), whose fields
// have the encoding of those that they share already.
StatusOr<Schema> ParseStoredSchema(const std::string& text, const std::string& source);

// What the layout of a schema asks.
const LayoutRules& RulesOf(const Schema& schema);

inline bool MakesItsFields(const Schema& schema) { return RulesOf(schema).makes_fields; }

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_SCHEMA_FILE_H_
