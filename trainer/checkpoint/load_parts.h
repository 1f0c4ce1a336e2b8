#ifndef ELASTOR_TRAINER_CHECKPOINT_LOAD_PARTS_H_
#define ELASTOR_TRAINER_CHECKPOINT_LOAD_PARTS_H_

#include <span>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/checkpoint/state_view.h"
#include "trainer/checkpoint/stored_checkpoint.h"

namespace elastor {

// Steps of loading a checkpoint and of a warm start, on this rank alone unless they are collective.
// User errors name file and tensor.

inline constexpr int kNoTable = -1;

// Collective. Sets all parameters and rows, with kState their slots too, whose state then must have
// the digest that the manifest says. REQUIRES: what is stored has the state's names and shapes.
Status LoadContents(const StoredCheckpoint& stored, Contents contents, const StateView& state,
                    Communicator& communicator);

// Sets the rows this rank owns, in parallel, reading and verifying only pieces that may hold some.
// places[i]: the state's table for the manifest's table i, or kNoTable. The columns that are read
// fit: contents kState all of them, else the weights. Files are also looked at, one rank each. Rows
// of a delta take the place of its base's; afterwards they are the touched ones, where the state
// notes which are.
Status LoadRows(const StoredCheckpoint& stored, std::span<const int> places, Contents contents,
                const StateView& state, const Communicator& communicator);

// Sets a dense parameter, with kState its slots too.
Status LoadParameter(const StoredCheckpoint& stored, const SafetensorsFile& dense,
                     const ParameterInfo& parameter, Contents contents, const StateView& state,
                     const Communicator& communicator);

// The tensors of a parameter in dense.safetensors.
std::vector<TensorSpec> TensorsOf(const ParameterInfo& parameter,
                                  std::span<const std::string> slots);

// "rows 16, m 16, v 16"
std::string ColumnsText(std::span<const Column> columns);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_LOAD_PARTS_H_
