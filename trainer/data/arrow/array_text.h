#ifndef ELASTOR_TRAINER_DATA_ARROW_ARRAY_TEXT_H_
#define ELASTOR_TRAINER_DATA_ARROW_ARRAY_TEXT_H_

#include <arrow/api.h>

#include <cstdint>
#include <string>

namespace elastor {

// The text of a value (docs/use/data.md has the table).

// Appends the text of value i, which is not null.
using AppendValue = void (*)(const arrow::Array& array, int64_t i, std::string* text);

// Returns what appends a value of a type; null: the type has no text.
AppendValue WriterOf(const arrow::DataType& type);

// Returns the type of a list's items; null: it is no list.
const arrow::DataType* ItemTypeOf(const arrow::DataType& type);

// Returns the type that an extension type is stored as, or the type itself.
const arrow::DataType& StorageOf(const arrow::DataType& type);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_ARROW_ARRAY_TEXT_H_
