#include "trainer/checkpoint/state_digest.h"

#include "core/base/digest.h"
#include "trainer/checkpoint/dense_copy.h"
#include "trainer/checkpoint/digest_records.h"

namespace elastor {

StatusOr<std::string> StateDigest(const ControlRecord& control, const StateView& state,
                                  Communicator& communicator) {
  Digest digest;
  ELASTOR_ASSIGN_OR_RETURN(const DenseCopy dense,
                           DenseCopy::Gather(state, Contents::kState, communicator));
  dense.AddToDigest(&digest);
  state.embedding->AddToDigest(&digest);
  if (communicator.rank() == 0) AddControl(control, &digest);
  return SumDigest(digest, communicator);
}

}  // namespace elastor
