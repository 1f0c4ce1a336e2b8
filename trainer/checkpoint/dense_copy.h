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

// The dense parameters with their slots, whole, on rank 0; on other ranks nothing.
class DenseCopy {
 public:
  // Collective: slots are sharded, every rank sends its slices to rank 0. kWeights: no slots. The
  // state's layout outlives the copy.
  static StatusOr<DenseCopy> Gather(const StateView& state, Contents contents,
                                    Communicator& communicator);

  void AddToDigest(Digest* digest) const;
  // dense.safetensors. REQUIRES: rank 0.
  StatusOr<DenseFile> Write(const std::string& path) const;

 private:
  DenseCopy() = default;
  // fn(spec, values) for every tensor in order: a parameter, then its slots.
  void ForEachTensor(
      const std::function<void(const TensorSpec&, std::span<const float>)>& fn) const;

  const ParameterLayout* layout_ = nullptr;
  std::vector<std::string> slot_names_;
  std::vector<std::vector<float>> arrays_;  // weights, then slots, in the layout's places
};

// Sets a slot of one parameter: this rank's share of the whole tensor `values`.
void SetDenseSlot(const StateView& state, const ParameterInfo& parameter, int64_t slot,
                  std::span<const float> values, const Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_DENSE_COPY_H_
