#ifndef ELASTOR_EMBEDDING_EMBEDDING_OPTIONS_H_
#define ELASTOR_EMBEDDING_EMBEDDING_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "collective/rank_hosts.h"
#include "embedding/sparse_optimizer.h"
#include "embedding/table.h"
#include "embedding/wire_format.h"

namespace elastor {

class RowTier;

// Options of sharded embedding tables, the same for every device.
struct EmbeddingOptions {
  std::vector<TableSpec> tables;
  std::vector<FieldSpec> fields;
  SparseOptimizerOptions optimizer;
  uint64_t seed = 0;
  int64_t leaves = 1;  // V
  // Whether the tables note which rows change (EmbeddingState::touched).
  bool track_touched = false;
  // Whether they note which rows steps update (EmbeddingState::unpublished).
  bool track_unpublished = false;
  WireFormats wire = {};  // kFloat32 on a device, and for numbers of double precision
  // Vectors go by host, where that spares any (IdRoute); none: straight. On the host alone.
  std::optional<RankHosts> hosts = {};
  // Whether rows that no batch names may wait (waiting_rows.h). On the host alone.
  bool rows_wait = true;
  // Where rows lie that need not be in memory; null: none. Outlives the tables. On the host alone.
  RowTier* tier = nullptr;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_EMBEDDING_OPTIONS_H_
