#ifndef ELASTOR_TRAINER_DATA_ARROW_ARROW_PART_H_
#define ELASTOR_TRAINER_DATA_ARROW_ARROW_PART_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/arrow/text_table.h"

namespace elastor {

// What programs ask of Arrow's library. arrow_part.cc is a shared object of its own, which a
// process loads when it meets a table (table_source.h). Strings named `wrong` say what is wrong
// with a file, and are empty when nothing is.

struct TableColumn {
  std::string name;
  std::string type;  // as Arrow names it: "list<element: int64>"
  bool is_list = false;
  bool is_readable = false;
};

// Rows that lie together and are read in order, apart from others: a row group of Parquet, or some
// record batches of an Arrow file.
struct TableGroup {
  int64_t rows = 0;
  int64_t bytes = 0;  // in memory, at least; 0: not known
};

// Reads the rows of one group. Not thread-safe.
class TableRows {
 public:
  virtual ~TableRows() = default;
  // Replaces *text and *table by the next `rows` rows. Returns what is wrong, also when there are
  // fewer.
  virtual std::string Next(int64_t rows, std::string* text, TextTable* table) = 0;
  // Passes over rows.
  virtual std::string Skip(int64_t rows) = 0;
};

// An open file. Thread-safe.
class TableFile {
 public:
  virtual ~TableFile() = default;
  // Returns null after setting *wrong. forms: by column; empty: all as text. REQUIRES: the columns,
  // by their places in `columns`, are readable.
  virtual std::unique_ptr<TableRows> Read(int group, const std::vector<int>& columns,
                                          const std::vector<ColumnForm>& forms,
                                          std::string* wrong) const = 0;

  std::vector<TableColumn> columns;
  std::vector<TableGroup> groups;
};

struct ArrowPart {
  const char* sources_hash;  // of what the part was compiled from
  const char* version;       // of Arrow
  // Opens a Parquet or Arrow file. Returns null after setting *wrong.
  std::unique_ptr<TableFile> (*open)(const std::string& path, std::string* wrong);
};

// The symbol of the part's table.
inline constexpr char kArrowPartSymbol[] = "elastor_arrow_part";

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_ARROW_ARROW_PART_H_
