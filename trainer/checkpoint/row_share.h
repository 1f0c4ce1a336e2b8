#ifndef ELASTOR_TRAINER_CHECKPOINT_ROW_SHARE_H_
#define ELASTOR_TRAINER_CHECKPOINT_ROW_SHARE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/digest.h"
#include "core/base/leaves.h"
#include "core/base/status.h"
#include "embedding/embedding_state.h"
#include "embedding/zero_pages.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/state_view.h"

namespace elastor {

// Partitions are put together into pieces of at least this size (keys and columns together): a
// reader on other ranks reads little that is not its own, and manifests stay small.
inline constexpr int64_t kMinPieceBytes = int64_t{256} << 10;
// A partition beyond this size is cut into several pieces.
inline constexpr int64_t kMaxPieceBytes = int64_t{64} << 20;

// Memory for copies. It only grows and is kept from one checkpoint to the next, because the first
// touch of new memory can cost many times the copying.
struct StagingMemory {
  ZeroPages pages;
  int64_t bytes = 0;
};

// The embedding rows that one rank writes into a checkpoint, in order of (partition, key): all rows
// whose primary replica it has, or only the touched ones among them and, of keyed tables, the gone
// keys. The constructor counts them.
// They are then either copied as a whole, after which the tables may change, or read piece by piece
// while the tables must not change.
class RowShare {
 public:
  // Uses the embedding's thread pool, as Copy does. `marked` is a set of state.embedding's to take
  // only these rows, or null to take all. format: of the weights; small rows have no slots, and
  // must be copied.
  RowShare(const StateView& state, Contents contents, const MarkedRows<float>* marked,
           RowFormat format = RowFormat::kFloat32);

  int64_t bytes() const { return bytes_; }  // size of all keys and columns
  // Copies all rows into `staging`, which outlives the share and has no other user.
  void Copy(StagingMemory* staging);
  // Copies the rows of all ranks to rank 0, whose share is then that of a lone rank; other ranks'
  // are empty. Both memories are used like `staging`; with several ranks, own's is free again at
  // the end. Beside them it takes some kMaxPieceBytes. Collective.
  Status Gather(StagingMemory* own, StagingMemory* whole, Communicator& communicator);

  // The share's tables, as they appear in the manifest.
  const std::vector<StoredTable>& tables() const { return tables_; }

  // Writes the file, one column after another. Returns its pieces and their hashes.
  StatusOr<EmbeddingFile> Write(const std::string& directory, const std::string& name);
  // Adds the copied rows to the digest. A keeper, if not null, keeps their records. REQUIRES: Copy.
  void AddToDigest(TouchedRows<float>* keeper, Digest* digest) const;

 private:
  // The share's rows of one table.
  struct Rows {
    std::vector<int64_t> first;  // row of every partition; and the number of rows
    std::vector<RowPiece> pieces;
    // Whole columns, set once the rows are copied.
    int64_t* keys = nullptr;
    std::vector<float*> columns;
  };
  struct Block {
    int table;
    Range partitions;
  };
  // What a stored table holds: rows of a table of the state, or its gone keys.
  struct Source {
    int table;
    bool gone;
    int64_t width;
  };

  int64_t RowBytes(int table) const;
  void CutPieces(int table);
  std::vector<Block> CutBlocks() const;
  // Calls fn(row, key, values) for the rows of the partitions, in the share's numbering.
  template <typename Fn>
  void ForEachRowOf(int table, const Range& partitions, const Fn& fn) const;
  void CopyBlock(const Block& block);
  // Points the columns into `staging`.
  void TakeMemory(StagingMemory* staging);
  // Return a piece's keys, or its values in column `column`.
  std::span<const int64_t> Keys(int table, const RowPiece& piece);
  std::span<const float> Values(int table, size_t column, const RowPiece& piece);

  const EmbeddingState<float>* embedding_;
  const MarkedRows<float>* marked_;
  RowFormat format_;
  std::vector<StoredTable> tables_;
  std::vector<Source> sources_;  // by stored table, as rows_
  std::vector<Rows> rows_;
  int64_t bytes_ = 0;
  bool copied_ = false;
  // Buffers for one piece, used if the rows are not copied.
  std::vector<int64_t> piece_keys_;
  std::vector<float> piece_values_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_ROW_SHARE_H_
