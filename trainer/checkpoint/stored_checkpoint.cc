#include "trainer/checkpoint/stored_checkpoint.h"

#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "core/base/text.h"
#include "embedding/key_space.h"
#include "xxhash.h"

namespace elastor {
namespace {

// What does not match its hash; but what cannot be read is not damaged.
Status Damaged(const SafetensorsFile& file, const std::string& tensor) {
  ELASTOR_RETURN_IF_ERROR(file.CheckReadable());
  return UserError(file.path() + ": tensor '" + tensor +
                   "' does not match its hash; the file is damaged or was replaced");
}

// Rows of the piece in a tensor of the table's rows, verified.
template <typename T>
StatusOr<std::span<const T>> ReadRows(const SafetensorsFile& file, const TensorSpec& tensor,
                                      const RowPiece& piece, uint64_t hash) {
  ELASTOR_ASSIGN_OR_RETURN(const std::span<const T> all, file.Find<T>(tensor));
  const int64_t width = tensor.shape.size() > 1 ? tensor.shape[1] : 1;
  const std::span<const T> rows = all.subspan(piece.rows.begin * width, piece.rows.size() * width);
  if (XXH3_64bits(rows.data(), rows.size_bytes()) != hash) {
    return Damaged(file, tensor.name);
  }
  return rows;
}

}  // namespace

StoredCheckpoint::StoredCheckpoint(std::string directory, Manifest manifest)
    : directory_(std::move(directory)), manifest_(std::move(manifest)) {}

StatusOr<StoredCheckpoint> StoredCheckpoint::Open(const std::string& path,
                                                  Communicator& communicator,
                                                  SmallRows small_rows) {
  ELASTOR_ASSIGN_OR_RETURN(StoredCheckpoint stored, OpenFolder(path, communicator));
  if (const auto& publication = stored.manifest_.metadata.publication;
      publication && publication->delta) {
    return UserError(stored.manifest_path() +
                     ": a published delta, which is no whole model; expected a folder base-N, or "
                     "the folder of publications where scorers follow one");
  }
  if (const RowFormat format = RowFormatOf(stored.manifest_.metadata);
      format != RowFormat::kFloat32 && small_rows == SmallRows::kRefused) {
    return UserError(StrCat(stored.manifest_path(), ": has ", RowFormatName(format),
                            " rows, for scoring raw rows and serving alone; expected a model with "
                            "FLOAT32 rows"));
  }
  const std::optional<CheckpointBase>& base = stored.manifest_.metadata.base;
  if (!base) return stored;
  StatusOr<StoredCheckpoint> opened =
      OpenFolder(FolderBeside(stored.directory_, base->name), communicator);
  if (!opened.ok()) {
    Status status(opened.status().code(), stored.manifest_path() + ": a delta of " + base->name +
                                              ": " + opened.status().message());
    if (opened.status().agreed()) status.set_agreed();
    return status;
  }
  stored.base_ = std::make_shared<const StoredCheckpoint>(std::move(opened).value());
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, stored.CheckBase()));
  return stored;
}

StatusOr<StoredCheckpoint> StoredCheckpoint::OpenPublishedDelta(const std::string& path) {
  const std::unique_ptr<Communicator> self = MakeSelfCommunicator();
  ELASTOR_ASSIGN_OR_RETURN(StoredCheckpoint stored, OpenFolder(path, *self));
  if (const auto& publication = stored.manifest_.metadata.publication;
      !publication || !publication->delta) {
    return UserError(stored.manifest_path() + ": no published delta; expected one of this name");
  }
  return stored;
}

Status StoredCheckpoint::CheckBase() const {
  const CheckpointBase& expected = *manifest_.metadata.base;
  const CheckpointMetadata& found = base_->manifest_.metadata;
  const std::string which = manifest_path() + ": a delta of " + expected.name;
  if (found.manifest_xxh3 != expected.manifest_xxh3) {
    return UserError(which + " with the manifest_xxh3 " + expected.manifest_xxh3 + "; " +
                     base_->manifest_path() + " has " + found.manifest_xxh3 +
                     "; the base was replaced");
  }
  if (found.base || found.contents != Contents::kState ||
      base_->manifest_.tables != manifest_.tables_of_rows()) {
    return UserError(which + ", which is not a full training state with the same tables");
  }
  return OkStatus();
}

StatusOr<StoredCheckpoint> StoredCheckpoint::OpenFolder(const std::string& path,
                                                        Communicator& communicator) {
  const std::string directory = DirectoryToRead(path);
  StatusOr<std::string> text = std::string();
  if (communicator.rank() == 0) text = ReadManifestText(directory);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, text.status()));
  ELASTOR_RETURN_IF_ERROR(BroadcastText(communicator, Phase::kSetup, 0, &*text));
  StatusOr<Manifest> manifest = ParseManifest(directory, *text);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, manifest.status()));
  return StoredCheckpoint(directory, std::move(manifest).value());
}

StatusOr<SafetensorsFile> StoredCheckpoint::OpenDense() const {
  return SafetensorsFile::Open(directory_ + "/" + kDenseFile, manifest_.dense.facts);
}

StatusOr<SafetensorsFile> StoredCheckpoint::OpenEmbedding(size_t file) const {
  const EmbeddingFile& entry = manifest_.embedding[file];
  return SafetensorsFile::Open(directory_ + "/" + entry.name, entry.facts);
}

StatusOr<std::span<const float>> StoredCheckpoint::ReadDense(const SafetensorsFile& dense,
                                                             const TensorSpec& tensor) const {
  ELASTOR_ASSIGN_OR_RETURN(const std::span<const float> values, dense.Find<float>(tensor));
  const auto hash = manifest_.dense.tensors.find(tensor.name);
  if (hash == manifest_.dense.tensors.end()) {
    return UserError(manifest_path() + ": has no hash of tensor '" + tensor.name + "'");
  }
  if (XXH3_64bits(values.data(), values.size_bytes()) != hash->second) {
    return Damaged(dense, tensor.name);
  }
  return values;
}

StatusOr<StoredCheckpoint::Rows> StoredCheckpoint::ReadPiece(const SafetensorsFile& file,
                                                             size_t file_index, size_t table,
                                                             const RowPiece& piece,
                                                             size_t columns) const {
  const StoredTable& stored = manifest_.tables[table];
  columns = std::min(columns, stored.columns.size());
  const int64_t rows = manifest_.embedding[file_index].pieces[table].back().rows.end;
  const TensorSpec keys_tensor = KeysTensor(stored.name, rows);
  Rows result;
  ELASTOR_ASSIGN_OR_RETURN(result.keys,
                           ReadRows<int64_t>(file, keys_tensor, piece, piece.hashes[0]));
  for (size_t c = 0; c < columns; ++c) {
    const TensorSpec tensor = ColumnTensor(stored.name, stored.columns[c], rows);
    const uint64_t hash = piece.hashes[1 + c];
    if (tensor.type == TensorType::kF32) {
      ELASTOR_ASSIGN_OR_RETURN(result.columns.emplace_back(),
                               ReadRows<float>(file, tensor, piece, hash));
      continue;
    }
    ELASTOR_ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes,
                             ReadRows<uint8_t>(file, tensor, piece, hash));
    result.columns.emplace_back(reinterpret_cast<const float*>(bytes.data()),
                                bytes.size() / sizeof(float));
  }
  ELASTOR_RETURN_IF_ERROR(
      CheckKeys(file.path() + ": tensor '" + keys_tensor.name + "'", stored, piece, result.keys));
  return result;
}

Status StoredCheckpoint::CheckKeys(const std::string& tensor, const StoredTable& table,
                                   const RowPiece& piece, std::span<const int64_t> keys) const {
  const int64_t* last = nullptr;
  int64_t partition = piece.partitions.begin;
  for (const int64_t& key : keys) {
    if (!table.keys.Contains(key)) {
      return UserError(
          StrCat(tensor, " holds key ", key, "; expected less than ", table.keys.rows));
    }
    const int64_t own = table.keys.PartitionOf(key);
    const bool ordered =
        own > partition || (own == partition && (last == nullptr || KeyBefore(*last, key)));
    if (!ordered || own >= piece.partitions.end) {
      return UserError(StrCat(tensor, " holds key ", KeyText(key),
                              " in the wrong place; expected the order of partitions"));
    }
    last = &key;
    partition = own;
  }
  return OkStatus();
}

}  // namespace elastor
