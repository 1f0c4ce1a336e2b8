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
  // Collective: rank 0 reads the manifests for all. The base of a delta must be the very folder
  // that it was written to complete.
  static StatusOr<StoredCheckpoint> Open(const std::string& path, Communicator& communicator);

  // The full checkpoint whose rows are this one's where it has none; null: this one is full.
  const StoredCheckpoint* base() const { return base_.get(); }

  const std::string& directory() const { return directory_; }
  const Manifest& manifest() const { return manifest_; }
  std::string manifest_path() const { return directory_ + "/" + kManifestFile; }

  // The files, their sizes and headers verified.
  StatusOr<SafetensorsFile> OpenDense() const;
  StatusOr<SafetensorsFile> OpenEmbedding(size_t file) const;

  // A dense tensor, verified.
  StatusOr<std::span<const float>> ReadDense(const SafetensorsFile& dense,
                                             const TensorSpec& tensor) const;

  // Rows of a piece; row i has keys[i] and in column c columns[c][i * width].
  struct Rows {
    std::span<const int64_t> keys;
    std::vector<std::span<const float>> columns;
  };
  // The piece's keys and its first `columns` columns, verified; keys are those of the piece's
  // partitions, in order, and in the table.
  StatusOr<Rows> ReadPiece(const SafetensorsFile& file, size_t file_index, size_t table,
                           const RowPiece& piece, size_t columns) const;

 private:
  StoredCheckpoint(std::string directory, Manifest manifest);
  static StatusOr<StoredCheckpoint> OpenFolder(const std::string& path, Communicator& communicator);
  // Whether base_ is what the manifest names.
  Status CheckBase() const;
  Status CheckKeys(const std::string& tensor, const StoredTable& table, const RowPiece& piece,
                   std::span<const int64_t> keys) const;

  std::string directory_;
  Manifest manifest_;
  std::shared_ptr<const StoredCheckpoint> base_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_STORED_CHECKPOINT_H_
