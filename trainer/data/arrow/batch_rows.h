#ifndef ELASTOR_TRAINER_DATA_ARROW_BATCH_ROWS_H_
#define ELASTOR_TRAINER_DATA_ARROW_BATCH_ROWS_H_

#include <arrow/api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/arrow/arrow_part.h"
#include "trainer/data/arrow/page_column.h"

namespace elastor {

// What a column gives: its values, or of a map the keys or the values of every row's entries.
enum class Part { kWhole, kKeys, kValues };

// The columns that a file gives.
struct FileColumns {
  std::vector<TableColumn> columns;
  // Where they stand: the file's column, and the part of it.
  std::vector<int> fields;
  std::vector<Part> parts;

  explicit FileColumns(const arrow::Schema& schema);
  FileColumns() = default;

 private:
  void AddField(const arrow::Field& field, int place);
  void Add(const arrow::Field& field, int place, const char* suffix, const arrow::DataType& type,
           Part part, bool is_list);
};

// A run of rows of one batch.
struct Piece {
  std::shared_ptr<arrow::RecordBatch> batch;
  int64_t begin = 0;
  int64_t end = 0;
};

// Gives one column of rows, piece by piece.
class ColumnReader {
 public:
  void Begin(Part part, ColumnForm form, std::string* text, TextColumn* column);
  void Append(const std::vector<Piece>& pieces, int place);

 private:
  uint32_t Place() const;
  void EndValue() { column_->begins.push_back(Place()); }
  // On false the column has nothing of this form.
  bool AppendInForm(const std::vector<Piece>& pieces, int place);
  void AppendText(const arrow::Array& array, int64_t begin, int64_t end);
  void AppendValues(const arrow::Array& array, int64_t begin, int64_t end);
  template <typename Integers>
  void AppendDigits(const Integers& array, int64_t begin, int64_t end);
  template <typename Lists>
  void AppendLists(const Lists& lists, const arrow::Array& values, int64_t begin, int64_t end);
  void AppendCodes(const arrow::DictionaryArray& array, int64_t begin, int64_t end);
  template <typename Codes>
  void AppendCodesOf(const arrow::Array& array, int64_t begin, int64_t end);
  void TakeDictionary(const std::shared_ptr<arrow::Array>& values);

  Part part_ = Part::kWhole;
  ColumnForm form_ = ColumnForm::kText;
  std::string* text_ = nullptr;
  TextColumn* column_ = nullptr;
  std::string item_;
  // The dictionary of the array at hand, and where its values stand in that of the column.
  std::shared_ptr<arrow::Array> values_;
  std::shared_ptr<const TextDictionary> dictionary_;
  uint32_t first_value_ = 1;
};

// Cuts batches into as many rows as are asked for. Columns may be read from pages instead.
class BatchRows : public TableRows {
 public:
  std::string Next(int64_t rows, std::string* text, TextTable* table) override;
  std::string Skip(int64_t rows) override;

 protected:
  // Returns the next batch; null at the end.
  virtual std::shared_ptr<arrow::RecordBatch> NextBatch() = 0;

  // By column to give, from pages; null: it stands in the batches. Set before Choose.
  std::vector<std::unique_ptr<PageColumn>> pages_;

  // Sets what is given, and `read` to the file's columns that batches need, in the file's order.
  void Choose(const FileColumns& file, const std::vector<int>& wanted,
              const std::vector<ColumnForm>& forms, std::vector<int>* read);
  bool has_batches() const { return has_batches_; }

 private:
  static constexpr int kInPages = -1;

  void TakePieces(int64_t rows, std::vector<Piece>* pieces);

  // By column to give.
  std::vector<int> places_;  // in a batch
  std::vector<Part> parts_;
  std::vector<bool> lists_;
  std::vector<ColumnForm> forms_;
  std::vector<ColumnReader> readers_;
  bool has_batches_ = true;

  std::shared_ptr<arrow::RecordBatch> batch_;
  int64_t at_ = 0;  // rows of it that were given
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_ARROW_BATCH_ROWS_H_
