#ifndef ELASTOR_EMBEDDING_TABLE_H_
#define ELASTOR_EMBEDDING_TABLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "embedding/key_space.h"
#include "embedding/row_rules.h"

namespace elastor {

enum class Pooling { kSum, kMean };

inline constexpr int64_t kUseElements = 4;
// Numbers of a keyed table that travel with a step's scalars (ShardedEmbedding::CountKeyedRows).
inline constexpr int64_t kKeyedTableCounts = 5;

// What the rows of a table are. Tables of the other roles stand behind those that fields look up.
// Each serves the admission of one of these (admission.h), and has its partitions on the same
// ranks.
enum class TableRole {
  kVectors,  // what fields look up
  kShared,   // one vector a partition, for the keys that are not admitted
  kCounts,   // an element a key that is not admitted: how often it occurred
  kSketch,   // counters of such occurrences, a line of count-min sketches a row
};

// One embedding table: an array, or rows that are found by any 64-bit key (key_space.h).
struct TableSpec {
  std::string name;
  // Of an array: its rows. Of a keyed table: its capacity, the rows on all ranks together; 0: no
  // limit.
  int64_t rows = 0;
  int64_t width = 0;  // elements of a row
  double init_stddev = 1e-4;
  bool keyed = false;
  // Whether every row of a keyed table has a number of 64 bits that tells of its use
  // (row_rules.h). Behind the slots it takes kUseElements elements of 16 bits, the lowest first.
  bool keeps_use = false;
  RowRules rules = {};  // of a keyed table
  TableRole role = TableRole::kVectors;
  int beside = -1;  // with another role: the table whose admission it serves

  bool looked_up() const { return role == TableRole::kVectors; }
  // Whether its rows are numbers of occurrences, which begin at 0 and have no slots.
  bool counts() const { return role == TableRole::kCounts || role == TableRole::kSketch; }
  KeySpace keys() const { return {keyed, keyed ? 0 : rows}; }
};

// A set of a table's initialised rows: all, those marked as touched, the others, or those marked as
// unpublished.
enum class RowSet { kAll, kTouched, kUntouched, kUnpublished };

// One categorical input field: which table its ids look up, and how a bag is pooled.
struct FieldSpec {
  std::string name;
  int table = 0;  // index into the tables
  Pooling pooling = Pooling::kSum;
};

// A batch's ids in the form that a device takes, in memory that it copies from.
class StagedIds {
 public:
  virtual ~StagedIds() = default;
};

// Ids of the rows one rank computes. Bag b = row * fields + field holds
// ids[offsets[b], offsets[b+1]), in order; an empty bag pools to 0. When every bag has exactly one
// id, `offsets` is empty. Rows are those of the rank's leaves, in leaf order.
struct SparseBatch {
  int64_t rows = 0;
  int64_t fields = 0;
  std::vector<int64_t> ids;
  std::vector<int64_t> offsets;
  // Leaf first_leaf + i has local rows [leaf_offsets[i], leaf_offsets[i + 1]); none: absent leaf.
  int64_t first_leaf = 0;
  std::vector<int64_t> leaf_offsets;  // leaves + 1 entries
  // The largest TIME of the rows, in seconds since 1970; 0 if there is none or all are earlier.
  int64_t latest = 0;
  // The staged copy of ids, offsets and leaf_offsets, if the reader had them staged; else null.
  std::unique_ptr<StagedIds> staged = nullptr;
};

// Stages the batch's ids in `memory`, which an earlier call returned for a batch that is done, or
// in new memory (null). Several threads may call it at once.
using IdStaging = std::function<std::unique_ptr<StagedIds>(const SparseBatch& batch,
                                                           std::unique_ptr<StagedIds> memory)>;

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_TABLE_H_
