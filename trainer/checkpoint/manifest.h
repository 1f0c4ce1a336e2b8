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
#include "embedding/key_space.h"
#include "trainer/checkpoint/checkpoint_metadata.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/state_view.h"

namespace elastor {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kDenseFile[] = "dense.safetensors";
inline constexpr char kDeletedSuffix[] = "/deleted";

// Rows of one table in one file that are verified together: all rows of the file whose partitions
// are in a range. Not every partition of the range need be in the file.
struct RowPiece {
  Range partitions;
  Range rows;                    // places in the file's tensors
  std::vector<uint64_t> hashes;  // XXH3-64 of these rows of the keys, then of every column
};

// A table's rows, by key. Without columns: the keys of rows of the base that a delta no longer has,
// behind the table whose name with kDeletedSuffix is this one's.
struct StoredTable {
  std::string name;
  KeySpace keys;
  std::vector<Column> columns;
  bool counts = false;  // whether rows are numbers of occurrences (TableSpec::counts)
  bool holds_deletions() const { return columns.empty(); }
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

// The contents of manifest.json. Its size grows with the pieces: every table has at most 4,096 and
// one per file, or more only if partitions exceed kMaxPieceBytes (row_share.h).
struct Manifest {
  CheckpointMetadata metadata;
  std::vector<StoredTable> tables;
  DenseFile dense;
  std::vector<EmbeddingFile> embedding;
  // Returns the tables without the lists of deletions.
  std::vector<StoredTable> tables_of_rows() const;
};

// "embedding-00002-of-00016.safetensors"
std::string EmbeddingFileName(int rank, int ranks);

// '<table>/keys' I64 [rows] and '<table>/<column>' F32 [rows, width], of small rows U8 [rows,
// bytes].
TensorSpec KeysTensor(const std::string& table, int64_t rows);
TensorSpec ColumnTensor(const std::string& table, const Column& column, int64_t rows);

// Returns the part of the manifest that describes the file which this rank wrote.
std::string EmbeddingFileText(const EmbeddingFile& file, std::span<const StoredTable> tables);
// Returns the whole text, ending with its own hash. `embedding` holds the texts of
// EmbeddingFileText; manifest.embedding is not read.
std::string ManifestText(const Manifest& manifest, std::span<const std::string> embedding);

// Returns the base that a folder's manifest names; an empty text if it names none. Reads only the
// manifest's first lines and verifies nothing. Returns nullopt when they cannot be read. Used to
// decide which folders may be removed.
std::optional<std::string> PeekBase(const std::string& directory);
// Returns the folder `name` beside `directory`, or beside the link's target if `directory` is a
// link.
std::string FolderBeside(const std::string& directory, const std::string& name);

// Returns the text of a folder's manifest.json. User error when there is none or it is a symbolic
// link.
StatusOr<std::string> ReadManifestText(const std::string& directory);
// Parses a manifest. User error naming the file `directory`/manifest.json and the mistake in it.
StatusOr<Manifest> ParseManifest(const std::string& directory, std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_MANIFEST_H_
