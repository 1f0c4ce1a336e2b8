#ifndef ELASTOR_TRAINER_PREPARE_RUN_IDENTITY_H_
#define ELASTOR_TRAINER_PREPARE_RUN_IDENTITY_H_

#include <string>

#include "core/base/status.h"
#include "trainer/prepare/prepare_options.h"

namespace elastor {

// Everything that the output of a run depends on, as JSON: the schema, and of every input its path,
// its split, size, time of change and the hash of its first 64 KiB; of a lookup's file, the hash
// that the schema says. User error when an input cannot be read.
StatusOr<std::string> RunIdentity(const PrepareOptions& options);

// Empty when two identities are equal, else what differs, in a few words.
std::string IdentityDifference(const std::string& begun, const std::string& now);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_RUN_IDENTITY_H_
