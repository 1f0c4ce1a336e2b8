#ifndef ELASTOR_TRAINER_FIELDS_FIELD_HELP_H_
#define ELASTOR_TRAINER_FIELDS_FIELD_HELP_H_

#include <string>

#include "core/base/status.h"

namespace elastor {

// Returns the output of --help=TOPIC for a text that people write, with the comments of its .proto,
// in lines of at most 80 letters. `message` is the text's root, "Experiment", "Sweep" or "Schema".
// Topics, in upper or lower case:
//   optimizer, data.shape               a group: its fields
//   optimizer.dense, dense, model.dropout    a field by its path or the end of it; what stands at
//                                       several paths alike is printed once
//   rank_elastor, RANK_ELASTOR          a model
//   LAZY_ADAM                           a name: the fields that take it
// User error that names the nearest topic when the topic does not exist.
StatusOr<std::string> HelpOn(const std::string& message, const std::string& topic);

// Lists the models that an experiment can choose, one per line, with name and description.
std::string ListModels();

}  // namespace elastor

#endif  // ELASTOR_TRAINER_FIELDS_FIELD_HELP_H_
