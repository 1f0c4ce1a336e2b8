#ifndef ELASTOR_TRAINER_CHECKPOINT_COMPACT_H_
#define ELASTOR_TRAINER_CHECKPOINT_COMPACT_H_

#include <string>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/checkpoint/checkpoint_metadata.h"

namespace elastor {

// Writes a folder's training state, full or delta, into the new folder `to` as one full checkpoint
// with the same digest, one file per rank. The result needs no other folder. Collective. Does not
// need the model, but the memory of its state. Returns the metadata. User error naming the file, as
// LoadCheckpoint, also when the folder holds weights alone or is of version 1, which does not
// record the encoding. `to` is claimed (core/process/claimed_folder.h). User error when it, or
// `to`.old or `to`.partial, holds anything but what a compaction that was killed has left, which is
// removed.
StatusOr<CheckpointMetadata> CompactCheckpoint(const std::string& path, std::string to, int threads,
                                               Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_COMPACT_H_
