#ifndef ELASTOR_TRAINER_CHECKPOINT_DIGEST_RECORDS_H_
#define ELASTOR_TRAINER_CHECKPOINT_DIGEST_RECORDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "collective/communicator.h"
#include "configs/proto/control.pb.h"
#include "core/base/digest.h"
#include "core/base/status.h"

namespace elastor {

// The records of the state digest (docs/inside/design.md): one an embedding row, one a dense tensor, and
// the control record. All can be made from memory and from files.

// Name seed of a table's rows; a record is (key, weights then slots).
uint64_t RowSeed(const std::string& table);
// tensor: "<parameter>" or "<parameter>/<slot>".
void AddDenseTensor(const std::string& tensor, std::span<const float> values, Digest* digest);
// Fields by name, those that are not 0: neither their order in the proto nor protobuf's encoding
// matters, and a new field leaves the digests of runs that do not use it alone.
void AddControl(const ControlRecord& control, Digest* digest);

// Collective. Sums the ranks' parts and gives it to all.
StatusOr<std::string> SumDigest(const Digest& part, Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_DIGEST_RECORDS_H_
