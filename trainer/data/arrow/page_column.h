#ifndef ELASTOR_TRAINER_DATA_ARROW_PAGE_COLUMN_H_
#define ELASTOR_TRAINER_DATA_ARROW_PAGE_COLUMN_H_

#include <arrow/type_fwd.h>
#include <parquet/file_reader.h>

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/data/arrow/text_table.h"

namespace elastor {

// Reads one column of a row group of Parquet from its pages. Arrow would make arrays of all values,
// and dictionaries anew for every batch.
class PageColumn {
 public:
  virtual ~PageColumn() = default;
  // Appends the next rows to a column that has none. Throws when there are fewer.
  virtual void Append(int64_t rows, std::string* text, TextColumn* column) = 0;
  virtual void Skip(int64_t rows) = 0;

  // Returns null for a column that is nested, or that cannot be given in this form.
  static std::unique_ptr<PageColumn> Make(parquet::RowGroupReader* group, int leaf,
                                          const std::shared_ptr<arrow::DataType>& type,
                                          ColumnForm form);
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_ARROW_PAGE_COLUMN_H_
