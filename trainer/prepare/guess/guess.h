#ifndef ELASTOR_TRAINER_PREPARE_GUESS_GUESS_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_GUESS_H_

#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

// A schema for raw files of unknown layout, as protobuf text that Prepare can use as it stands,
// with what was found in their first megabytes as comments. The same files give the same text. User
// error when they cannot be read, have no rows, no delimiter or nothing that could be a label.
// label: the column that is the label; empty: one that looks like it.
StatusOr<std::string> GuessSchema(const std::vector<std::string>& paths,
                                  const std::string& label = "");

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_GUESS_H_
