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

// Steps of loading a checkpoint and of a warm start. They act on this rank alone unless marked
// collective. User errors name file and tensor.

inline constexpr int kNoTable = -1;

// Sets all parameters and rows. Collective. With kState, sets their slots too, and the state must
// then have the manifest's digest. REQUIRES: the stored names and shapes are the state's.
Status LoadContents(const StoredCheckpoint& stored, Contents contents, const StateView& state,
                    Communicator& communicator);

// Sets the rows this rank owns, in parallel, reading and verifying only pieces that may hold some.
// places[i] is the state's table for the manifest's table i, or kNoTable; a list of deletions has
// the place of its table. REQUIRES: the columns
// that are read (with kState all, else the weights) have the state's widths. Each file is also
// checked as a whole by one rank. Rows of a delta replace its base's; afterwards they are the
// touched rows, if the state notes touched rows.
Status LoadRows(const StoredCheckpoint& stored, std::span<const int> places, Contents contents,
                const StateView& state, const Communicator& communicator);

// Sets one dense parameter, and with kState its slots too.
Status LoadParameter(const StoredCheckpoint& stored, const SafetensorsFile& dense,
                     const ParameterInfo& parameter, Contents contents, const StateView& state,
                     const Communicator& communicator);

// Returns the specs of a parameter's tensors in dense.safetensors.
std::vector<TensorSpec> TensorsOf(const ParameterInfo& parameter,
                                  std::span<const std::string> slots);

// "rows 16, m 16, v 16"
std::string ColumnsText(std::span<const Column> columns);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_LOAD_PARTS_H_
