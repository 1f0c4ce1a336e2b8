#ifndef ELASTOR_TRAINER_PREPARE_ROWS_SIDE_TABLE_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_SIDE_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/proto/schema.pb.h"

namespace elastor {

// The rows of a `lookup` of the schema, by key. A row takes its texts, a byte or more for the size
// of each, and 12 bytes of index. Add first, then Index, then Find, which is thread-safe.
class SideTable {
 public:
  // `columns`: those of the file that fields read.
  SideTable(const Lookup& lookup, std::vector<std::string> columns)
      : file_(lookup.file()), by_(lookup.by()), columns_(std::move(columns)) {}

  const std::string& file() const { return file_; }
  const std::string& by() const { return by_; }
  const std::vector<std::string>& columns() const { return columns_; }
  int64_t rows() const { return rows_; }
  int64_t bytes() const;  // of memory, with the index

  // `cells`: a text for each column.
  void Add(std::string_view key, const std::string_view* cells);
  // Returns the first key that an earlier row has, too; then nothing can be found.
  std::optional<std::string> Index();
  // Sets `cells` to the texts of the key's row, or to empty ones when there is none; returns
  // whether there is. The texts live as long as the table.
  bool Find(std::string_view key, std::string_view* cells) const;

 private:
  // Returns the slot of a key, or the empty one where it belongs.
  size_t SlotOf(std::string_view key, uint64_t hash) const;
  std::string_view RowAt(uint64_t slot) const;  // to the end of its piece

  std::string file_;
  std::string by_;
  std::vector<std::string> columns_;
  int64_t rows_ = 0;
  std::vector<std::string> pieces_;  // rows: the size of a text, then the text; the key first
  int64_t piece_bytes_ = 0;
  std::vector<uint64_t> slots_;  // open addressing
};

using SideTables = std::vector<SideTable>;  // by lookup

// The number of a side table's first column where columns of the rows are 0, 1, ...; the next ones
// are kFirstCell - 1, ...
inline constexpr int64_t kFirstCell = -2;

// Returns the schema of a lookup's file, in which columns that no field of `schema` reads are
// IGNORED.
Schema TableSchema(const Schema& schema, const Lookup& lookup);

// Returns "lookup movies.csv: ", with which errors about it begin.
std::string LookupPlace(const std::string& file);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_SIDE_TABLE_H_
