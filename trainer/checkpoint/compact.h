#ifndef ELASTOR_TRAINER_CHECKPOINT_COMPACT_H_
#define ELASTOR_TRAINER_CHECKPOINT_COMPACT_H_

#include <string>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/checkpoint/checkpoint_metadata.h"

namespace elastor {

// Collective. Writes the training state of a folder, a delta or not, as one full checkpoint that
// needs no other folder, and has the same digest, into the new folder `to`; a file a rank. Needs
// nothing of the model, and the memory of its state. User error naming the file, as LoadCheckpoint,
// and when the folder holds weights alone or is of version 1, which does not tell the encoding, or
// when `to`, `to`.old or `to`.partial is there: none of them is removed. Returns the metadata.
StatusOr<CheckpointMetadata> CompactCheckpoint(const std::string& path, std::string to, int threads,
                                               Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_COMPACT_H_
