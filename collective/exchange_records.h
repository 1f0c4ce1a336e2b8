#ifndef ELASTOR_COLLECTIVE_EXCHANGE_RECORDS_H_
#define ELASTOR_COLLECTIVE_EXCHANGE_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"

namespace elastor {

// Sends records, which are sorted by destination rank, and replaces them by the received records,
// in the order of their source ranks. counts: the number of records for every rank. Collective.
// Memory holds both arrays meanwhile.
template <typename Record>
Status ExchangeRecords(Phase phase, std::vector<int64_t> counts, Communicator& communicator,
                       std::vector<Record>* records) {
  static_assert(std::is_trivially_copyable_v<Record>);
  std::vector<int64_t> receive_counts(counts.size());
  ELASTOR_RETURN_IF_ERROR(
      communicator.AllToAll(phase, counts.data(), receive_counts.data(), sizeof(int64_t)));
  int64_t received = 0;
  for (size_t r = 0; r < counts.size(); ++r) {
    received += receive_counts[r];
    counts[r] *= sizeof(Record);
    receive_counts[r] *= sizeof(Record);
  }
  std::vector<Record> own(received);
  ELASTOR_RETURN_IF_ERROR(
      communicator.AllToAllV(phase, records->data(), counts, own.data(), receive_counts));
  *records = std::move(own);
  return OkStatus();
}

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_EXCHANGE_RECORDS_H_
