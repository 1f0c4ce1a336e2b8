#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "core/base/digest.h"
#include "core/base/text.h"
#include "embedding/key_space.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/digest_records.h"
#include "trainer/checkpoint/stored_checkpoint.h"
#include "trainer/checkpoint/vocabularies.h"

namespace elastor {
namespace {

// The digest names tensors as the file does.
Status VerifyDense(const StoredCheckpoint& stored, Digest* digest) {
  ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile dense, stored.OpenDense());
  for (const TensorSpec& tensor : dense.tensors()) {
    if (tensor.type != TensorType::kF32) {
      return UserError(dense.path() + ": tensor '" + tensor.name + "' is " +
                       TensorText(tensor.type, tensor.shape) + "; expected F32");
    }
    ELASTOR_ASSIGN_OR_RETURN(const std::span<const float> values, stored.ReadDense(dense, tensor));
    AddDenseTensor(tensor.name, values, digest);
  }
  const size_t expected = stored.manifest().dense.tensors.size();
  if (dense.tensors().size() == expected) return OkStatus();
  return UserError(
      StrCat(dense.path(), ": has ", dense.tensors().size(), " tensors; expected ", expected));
}

// All tensors of the file have the rows that the manifest says, and it has no others.
Status VerifyTensors(const StoredCheckpoint& stored, size_t file_index,
                     const SafetensorsFile& file) {
  const std::vector<StoredTable>& tables = stored.manifest().tables;
  size_t expected = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    const std::vector<RowPiece>& pieces = stored.manifest().embedding[file_index].pieces[t];
    const int64_t rows = pieces.empty() ? 0 : pieces.back().rows.end;
    ELASTOR_RETURN_IF_ERROR(file.Find<int64_t>(KeysTensor(tables[t].name, rows)).status());
    for (const Column& column : tables[t].columns) {
      const TensorSpec tensor = ColumnTensor(tables[t].name, column, rows);
      ELASTOR_RETURN_IF_ERROR(tensor.type == TensorType::kU8 ? file.Find<uint8_t>(tensor).status()
                                                             : file.Find<float>(tensor).status());
    }
    expected += 1 + tables[t].columns.size();
  }
  if (file.tensors().size() == expected) return OkStatus();
  return UserError(
      StrCat(file.path(), ": has ", file.tensors().size(), " tensors; expected ", expected));
}

// By table.
using PartitionSets = std::vector<std::vector<bool>>;
using KeysByTable = std::vector<std::vector<int64_t>>;  // ascending

// Those that the pieces `share`, as VerifyRows counts them, may hold rows of.
PartitionSets PartitionsOf(const Manifest& manifest, const Range& share) {
  PartitionSets sets(manifest.tables.size(), std::vector<bool>(kPartitions));
  int64_t number = 0;
  for (const EmbeddingFile& file : manifest.embedding) {
    for (size_t t = 0; t < sets.size(); ++t) {
      for (const RowPiece& piece : file.pieces[t]) {
        const int64_t mine = number++;
        if (mine < share.begin || mine >= share.end) continue;
        std::fill(sets[t].begin() + piece.partitions.begin, sets[t].begin() + piece.partitions.end,
                  true);
      }
    }
  }
  return sets;
}

// The keys of these partitions' rows, and of rows that are deleted. `partitions` are by the base's
// tables.
StatusOr<KeysByTable> ReadKeys(const StoredCheckpoint& stored, const PartitionSets& partitions) {
  const Manifest& manifest = stored.manifest();
  KeysByTable all(partitions.size());
  for (size_t f = 0; f < manifest.embedding.size(); ++f) {
    ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile file, stored.OpenEmbedding(f));
    size_t of = 0;  // the table whose rows or deletions these are
    for (size_t t = 0; t < manifest.tables.size(); ++t) {
      if (t > 0 && !manifest.tables[t].holds_deletions()) ++of;
      const auto wanted = partitions[of].begin();
      for (const RowPiece& piece : manifest.embedding[f].pieces[t]) {
        const auto end = wanted + piece.partitions.end;
        if (std::find(wanted + piece.partitions.begin, end, true) == end) continue;
        ELASTOR_ASSIGN_OR_RETURN(const StoredCheckpoint::Rows rows,
                                 stored.ReadPiece(file, f, t, piece, /*columns=*/0));
        std::copy_if(rows.keys.begin(), rows.keys.end(), std::back_inserter(all[of]),
                     [&](int64_t key) { return wanted[manifest.tables[t].keys.PartitionOf(key)]; });
      }
    }
    ELASTOR_RETURN_IF_ERROR(file.CheckReadable());
  }
  for (std::vector<int64_t>& keys : all) std::sort(keys.begin(), keys.end(), KeyBefore);
  return all;
}

// Rows whose key is among `replaced` (ascending) are left out.
void AddRows(const StoredTable& table, const StoredCheckpoint::Rows& rows,
             std::span<const int64_t> replaced, Digest* digest) {
  const uint64_t seed = RowSeed(table.name);
  std::vector<float> record;
  for (size_t i = 0; i < rows.keys.size(); ++i) {
    if (std::binary_search(replaced.begin(), replaced.end(), rows.keys[i], KeyBefore)) continue;
    record.clear();
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const int64_t width = table.columns[c].width;
      const float* const values = rows.columns[c].data() + i * width;
      record.insert(record.end(), values, values + width);
    }
    digest->AddHashed(seed, static_cast<uint64_t>(rows.keys[i]), record.data(),
                      record.size() * sizeof(float));
  }
}

// Pieces of all files in order, counted; this rank reads those of `share`.
Status VerifyRows(const StoredCheckpoint& stored, const Range& share, const KeysByTable& replaced,
                  Digest* digest) {
  const Manifest& manifest = stored.manifest();
  int64_t number = 0;
  for (size_t f = 0; f < manifest.embedding.size(); ++f) {
    std::optional<SafetensorsFile> file;
    for (size_t t = 0; t < manifest.tables.size(); ++t) {
      const StoredTable& table = manifest.tables[t];
      for (const RowPiece& piece : manifest.embedding[f].pieces[t]) {
        const int64_t mine = number++;
        if (mine < share.begin || mine >= share.end) continue;
        if (!file) {
          ELASTOR_ASSIGN_OR_RETURN(file, stored.OpenEmbedding(f));
        }
        ELASTOR_ASSIGN_OR_RETURN(const StoredCheckpoint::Rows rows,
                                 stored.ReadPiece(*file, f, t, piece, table.columns.size()));
        if (!table.holds_deletions()) AddRows(table, rows, replaced[t], digest);
      }
    }
    if (file) ELASTOR_RETURN_IF_ERROR(file->CheckReadable());
  }
  return OkStatus();
}

int64_t PiecesOf(const Manifest& manifest) {
  int64_t pieces = 0;
  for (const EmbeddingFile& file : manifest.embedding) {
    for (const std::vector<RowPiece>& table : file.pieces) {
      pieces += static_cast<int64_t>(table.size());
    }
  }
  return pieces;
}

// This rank's part of the pieces.
Range ShareOf(const Manifest& manifest, int rank, int ranks) {
  return PartOf(rank, ranks, PiecesOf(manifest));
}

// This rank's part of the files. `dense` and `rows`: of what they hold, but for replaced rows.
Status VerifyShare(const StoredCheckpoint& stored, int rank, int ranks, const KeysByTable& replaced,
                   Digest* dense, Digest* rows) {
  const Manifest& manifest = stored.manifest();
  if (rank == 0) {
    ELASTOR_RETURN_IF_ERROR(VerifyDense(stored, dense));
    const CheckpointMetadata& metadata = manifest.metadata;
    if (metadata.has_vocabularies) {
      ELASTOR_RETURN_IF_ERROR(VerifyVocabularies(*metadata.encoding, stored.directory()));
    }
  }
  const int64_t files = static_cast<int64_t>(manifest.embedding.size());
  const Range own = PartOf(rank, ranks, files);
  for (int64_t f = own.begin; f < own.end; ++f) {
    ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile file, stored.OpenEmbedding(f));
    ELASTOR_RETURN_IF_ERROR(VerifyTensors(stored, f, file));
  }
  return VerifyRows(stored, ShareOf(manifest, rank, ranks), replaced, rows);
}

// This rank's part of a folder and of its base. The dense tensors of a base are verified, too, but
// the state has the delta's.
Status VerifyAll(const StoredCheckpoint& stored, int rank, int ranks, Digest* digest) {
  const KeysByTable none(stored.manifest().tables.size());
  ELASTOR_RETURN_IF_ERROR(VerifyShare(stored, rank, ranks, none, digest, digest));
  if (stored.base() == nullptr) return OkStatus();
  const Manifest& base = stored.base()->manifest();
  ELASTOR_ASSIGN_OR_RETURN(const KeysByTable replaced,
                           ReadKeys(stored, PartitionsOf(base, ShareOf(base, rank, ranks))));
  Digest dense;
  return VerifyShare(*stored.base(), rank, ranks, replaced, &dense, digest);
}

}  // namespace

StatusOr<CheckpointMetadata> VerifyCheckpoint(const std::string& path, Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(
      const StoredCheckpoint stored,
      StoredCheckpoint::Open(path, communicator, StoredCheckpoint::SmallRows::kTaken));
  const CheckpointMetadata& metadata = stored.manifest().metadata;
  Digest part;
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(
      communicator, VerifyAll(stored, communicator.rank(), communicator.size(), &part)));
  if (metadata.contents == Contents::kWeights) return metadata;
  if (communicator.rank() == 0) AddControl(metadata.control, &part);
  ELASTOR_ASSIGN_OR_RETURN(const std::string digest, SumDigest(part, communicator));
  if (digest == metadata.state_digest) return metadata;
  return AgreeOnStatus(
      communicator, UserError(stored.manifest_path() + ": state_digest " + metadata.state_digest +
                              "; the files hold a state with " + digest));
}

}  // namespace elastor
