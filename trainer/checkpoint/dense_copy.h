#ifndef ELASTOR_TRAINER_CHECKPOINT_DENSE_COPY_H_
#define ELASTOR_TRAINER_CHECKPOINT_DENSE_COPY_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/digest.h"
#include "core/base/status.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/state_view.h"

namespace elastor {

// A whole copy of the dense parameters and their slots on rank 0. It is empty on other ranks.
class DenseCopy {
 public:
  // Makes the copy. Collective: slots are sharded, so every rank sends its slices to rank 0. With
  // kWeights there are no slots. The state's layout outlives the copy.
  static StatusOr<DenseCopy> Gather(const StateView& state, Contents contents,
                                    Communicator& communicator);

  void AddToDigest(Digest* digest) const;
  // Writes dense.safetensors. REQUIRES: rank 0.
  StatusOr<DenseFile> Write(const std::string& path) const;

 private:
  DenseCopy() = default;
  // Calls fn(spec, values) for every tensor in order: a parameter, then its slots.
  void ForEachTensor(
      const std::function<void(const TensorSpec&, std::span<const float>)>& fn) const;

  const ParameterLayout* layout_ = nullptr;
  std::vector<std::string> slot_names_;
  std::vector<std::vector<float>> arrays_;  // weights, then slots, in the layout's places
};

// Sets this rank's share of one parameter's slot from the whole tensor `values`.
void SetDenseSlot(const StateView& state, const ParameterInfo& parameter, int64_t slot,
                  std::span<const float> values, const Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_DENSE_COPY_H_
