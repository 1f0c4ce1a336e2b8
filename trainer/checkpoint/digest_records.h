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

// The records of the state digest (docs/inside/design.md): one per embedding row, one per dense
// tensor, and the control record. Each can be made from memory and from files.

// Returns the name seed of a table's rows. The record of a row is (key, weights then slots).
uint64_t RowSeed(const std::string& table);
// Adds the record of a dense tensor. `tensor` is "<parameter>" or "<parameter>/<slot>".
void AddDenseTensor(const std::string& tensor, std::span<const float> values, Digest* digest);
// Adds the record's non-zero fields by name. Neither their order in the proto nor protobuf's
// encoding matters, and a new field does not change the digests of runs that do not use it.
void AddControl(const ControlRecord& control, Digest* digest);

// Sums the ranks' parts and returns the digest on every rank. Collective.
StatusOr<std::string> SumDigest(const Digest& part, Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_DIGEST_RECORDS_H_
