#ifndef ELASTOR_TRAINER_CHECKPOINT_STORED_CHECKPOINT_H_
#define ELASTOR_TRAINER_CHECKPOINT_STORED_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"

namespace elastor {

// A folder that is being read, with its base if it is a delta. User errors name file and tensor.
class StoredCheckpoint {
 public:
  // Whether the caller takes small rows (core/kernels/small_rows.h).
  enum class SmallRows { kRefused, kTaken };
  // Opens a folder. Collective: rank 0 reads the manifests for all. User error when a delta's base
  // is not the very folder that the delta was written for, and when small rows are not taken.
  static StatusOr<StoredCheckpoint> Open(const std::string& path, Communicator& communicator,
                                         SmallRows small_rows = SmallRows::kRefused);
  // Opens a published delta, which Open refuses, on this rank alone.
  static StatusOr<StoredCheckpoint> OpenPublishedDelta(const std::string& path);

  // The full checkpoint that supplies the rows which this delta lacks; null if this one is full.
  const StoredCheckpoint* base() const { return base_.get(); }

  const std::string& directory() const { return directory_; }
  const Manifest& manifest() const { return manifest_; }
  std::string manifest_path() const { return directory_ + "/" + kManifestFile; }

  // Open a file and verify its size and header.
  StatusOr<SafetensorsFile> OpenDense() const;
  StatusOr<SafetensorsFile> OpenEmbedding(size_t file) const;

  // Reads and verifies a dense tensor.
  StatusOr<std::span<const float>> ReadDense(const SafetensorsFile& dense,
                                             const TensorSpec& tensor) const;

  // Rows of a piece. Row i has the key keys[i]; its values in column c begin at columns[c][i *
  // width]. Small rows have words in the place of values.
  struct Rows {
    std::span<const int64_t> keys;
    std::vector<std::span<const float>> columns;
  };
  // Reads and verifies a piece's keys and at most its first `columns` columns. Also checks that the
  // keys are in order, belong to the piece's partitions and are in the table's range.
  StatusOr<Rows> ReadPiece(const SafetensorsFile& file, size_t file_index, size_t table,
                           const RowPiece& piece, size_t columns) const;

 private:
  StoredCheckpoint(std::string directory, Manifest manifest);
  static StatusOr<StoredCheckpoint> OpenFolder(const std::string& path, Communicator& communicator);
  // Checks that base_ is the folder that the manifest names.
  Status CheckBase() const;
  Status CheckKeys(const std::string& tensor, const StoredTable& table, const RowPiece& piece,
                   std::span<const int64_t> keys) const;

  std::string directory_;
  Manifest manifest_;
  std::shared_ptr<const StoredCheckpoint> base_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_STORED_CHECKPOINT_H_
