#ifndef ELASTOR_TRAINER_CHECKPOINT_STATE_DIGEST_H_
#define ELASTOR_TRAINER_CHECKPOINT_STATE_DIGEST_H_

#include <string>

#include "collective/communicator.h"
#include "configs/proto/control.pb.h"
#include "core/base/status.h"
#include "trainer/checkpoint/state_view.h"

namespace elastor {

// Computes the digest (docs/inside/design.md) of the state in memory, as 32 hex digits. Collective.
StatusOr<std::string> StateDigest(const ControlRecord& control, const StateView& state,
                                  Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_STATE_DIGEST_H_
