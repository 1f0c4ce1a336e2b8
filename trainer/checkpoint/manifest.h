#ifndef ELASTOR_TRAINER_CHECKPOINT_MANIFEST_H_
#define ELASTOR_TRAINER_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/leaves.h"
#include "core/base/status.h"
#include "trainer/checkpoint/checkpoint_metadata.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/state_view.h"

namespace elastor {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kDenseFile[] = "dense.safetensors";

// Rows of one table in one file that are verified together: those whose partitions are in a range.
// The file's other partitions are outside the range; not all of the range need be in the file.
struct RowPiece {
  Range partitions;
  Range rows;                    // places in the file's tensors
  std::vector<uint64_t> hashes;  // XXH3-64 of these rows of the keys, then of every column
};

struct StoredTable {
  std::string name;
  int64_t keys = 0;  // keys are below it
  std::vector<Column> columns;
  bool operator==(const StoredTable&) const = default;
};

struct DenseFile {
  SafetensorsFacts facts;
  std::map<std::string, uint64_t> tensors;  // XXH3-64 of each
};

struct EmbeddingFile {
  std::string name;
  SafetensorsFacts facts;
  std::vector<std::vector<RowPiece>> pieces;  // by table; together all rows of its tensors
};

// manifest.json. Its size grows with the pieces: at most 4,096 and one a file for every table, more
// only for partitions beyond kMaxPieceBytes (row_share.h).
struct Manifest {
  CheckpointMetadata metadata;
  std::vector<StoredTable> tables;
  DenseFile dense;
  std::vector<EmbeddingFile> embedding;
};

// "embedding-00002-of-00016.safetensors"
std::string EmbeddingFileName(int rank, int ranks);

// '<table>/keys' I64 [rows] and '<table>/<column>' F32 [rows, width].
TensorSpec KeysTensor(const std::string& table, int64_t rows);
TensorSpec ColumnTensor(const std::string& table, const Column& column, int64_t rows);

// The part of the manifest that a rank knows about the file it wrote.
std::string EmbeddingFileText(const EmbeddingFile& file, std::span<const StoredTable> tables);
// The whole, ending with its own hash. embedding: texts of EmbeddingFileText; manifest.embedding is
// not read.
std::string ManifestText(const Manifest& manifest, std::span<const std::string> embedding);

// The base that a folder's manifest names, empty: none, read from its first lines alone; nothing
// when these cannot be read. Nothing is verified: for what has to decide which folders may go.
std::optional<std::string> PeekBase(const std::string& directory);
// The folder `name` beside `directory`, or beside what that is a link to.
std::string FolderBeside(const std::string& directory, const std::string& name);

// The text of a folder's manifest.json. User error when there is none or it is a symbolic link.
StatusOr<std::string> ReadManifestText(const std::string& directory);
// User error naming the file `directory`/manifest.json and what is wrong with the text.
StatusOr<Manifest> ParseManifest(const std::string& directory, std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_MANIFEST_H_
