#include "trainer/data/arrow/page_column.h"

#include <arrow/api.h>
#include <parquet/column_reader.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/data/arrow/array_text.h"
#include "trainer/data/arrow/arrow_errors.h"
#include "trainer/data/arrow/number_forms.h"

namespace elastor {
namespace {

constexpr char kFewerRows[] = "fewer rows than its footer says";

// A column whose pages hold values of one type of Parquet, and levels that tell which rows are
// null.
template <typename Type>
class TypedPages : public PageColumn {
 public:
  explicit TypedPages(std::shared_ptr<parquet::ColumnReader> reader)
      : reader_(std::static_pointer_cast<parquet::TypedColumnReader<Type>>(std::move(reader))),
        there_(reader_->descr()->max_definition_level()) {}

  void Skip(int64_t rows) override {
    if (reader_->Skip(rows) != rows) throw std::runtime_error(kFewerRows);
  }

 protected:
  parquet::TypedColumnReader<Type>* reader() const { return reader_.get(); }
  // Whether the row, among those that were read, has a value.
  bool IsThere(int64_t row) const { return levels_[row] == there_; }

  // Reads rows page by page: read(rows, levels, &values) reads some, and returns how many. It may
  // leave out the levels of a column without nulls. Then take(row, rows, values) takes them.
  template <typename Read, typename Take>
  void ReadRows(int64_t rows, const Read& read, const Take& take) {
    levels_.resize(rows, there_);
    for (int64_t row = 0; row < rows;) {
      int16_t* const levels = levels_.data() + row;
      int64_t values = 0;
      const int64_t count = read(rows - row, levels, &values);
      if (count <= 0) throw std::runtime_error(kFewerRows);
      if (std::count(levels, levels + count, there_) != values) {
        throw std::runtime_error("a page has fewer values than it says");
      }
      take(row, count, values);
      row += count;
    }
  }

 private:
  const std::shared_ptr<parquet::TypedColumnReader<Type>> reader_;
  const int16_t there_;  // the level of a value that is not null
  std::vector<int16_t> levels_;
};

// Texts of which each row has its own.
class TextPages : public TypedPages<parquet::ByteArrayType> {
 public:
  using TypedPages::TypedPages;

  void Append(int64_t rows, std::string* text, TextColumn* column) override {
    values_.resize(rows);
    ReadRows(
        rows,
        [&](int64_t most, int16_t* levels, int64_t* values) {
          return reader()->ReadBatch(most, levels, nullptr, values_.data(), values);
        },
        [&](int64_t row, int64_t count, int64_t) {
          const parquet::ByteArray* value = values_.data();
          for (const int64_t end = row + count; row < end; ++row) {
            if (IsThere(row)) {
              text->append(reinterpret_cast<const char*>(value->ptr), value->len);
              ++value;
            }
            column->begins.push_back(CheckedPlace(text->size()));
          }
        });
  }

 private:
  std::vector<parquet::ByteArray> values_;  // of a page at hand
};

// Texts of which all stand in a dictionary.
class CodePages : public TypedPages<parquet::ByteArrayType> {
 public:
  using TypedPages::TypedPages;

  void Append(int64_t rows, std::string*, TextColumn* column) override {
    const parquet::ByteArray* texts = nullptr;
    int32_t size = 0;
    codes_.resize(rows + 1);
    column->begins.clear();
    column->codes.resize(rows);
    ReadRows(
        rows,
        [&](int64_t most, int16_t* levels, int64_t* values) {
          return reader()->ReadBatchWithDictionary(most, levels, nullptr, codes_.data(), values,
                                                   &texts, &size);
        },
        [&](int64_t row, int64_t count, int64_t values) {
          if (dictionary_ == nullptr) TakeDictionary(texts, size);
          uint32_t behind = 0;
          for (int64_t i = 0; i < values; ++i) {
            behind = std::max(behind, static_cast<uint32_t>(codes_[i]) + 1);
          }
          if (behind > static_cast<uint32_t>(size)) throw std::runtime_error("a code of no value");
          const int32_t* code = codes_.data();
          for (const int64_t end = row + count; row < end; ++row) {
            const bool there = IsThere(row);
            column->codes[row] = there ? static_cast<uint32_t>(*code) + 1 : 0;
            code += there;
          }
        });
    column->dictionary = dictionary_;
  }

 private:
  void TakeDictionary(const parquet::ByteArray* texts, int32_t size) {
    auto dictionary = std::make_shared<TextDictionary>();
    dictionary->begins = {0, 0};
    for (int32_t i = 0; i < size; ++i) {
      dictionary->text.append(reinterpret_cast<const char*>(texts[i].ptr), texts[i].len);
      dictionary->begins.push_back(CheckedPlace(dictionary->text.size()));
    }
    dictionary_ = std::move(dictionary);
  }

  std::shared_ptr<const TextDictionary> dictionary_;
  std::vector<int32_t> codes_;  // of a page at hand
};

// Numbers, in a form that is not text.
template <typename Type>
class NumberPages : public TypedPages<Type> {
 public:
  NumberPages(std::shared_ptr<parquet::ColumnReader> reader, std::shared_ptr<arrow::DataType> type,
              ColumnForm form)
      : TypedPages<Type>(std::move(reader)), type_(std::move(type)), form_(form) {}

  void Append(int64_t rows, std::string* text, TextColumn* column) override {
    values_.resize(rows + 1);
    int64_t read = 0;
    this->ReadRows(
        rows,
        [&](int64_t most, int16_t* levels, int64_t* values) {
          return this->reader()->ReadBatch(most, levels, nullptr, values_.data() + read, values);
        },
        [&](int64_t, int64_t, int64_t values) { read += values; });
    bool within = true;
    if (form_ == ColumnForm::kNumbers) {
      ForEachRow(rows, &column->numbers,
                 [&](auto value, bool there) { return NumberOf(value, there, &within); });
    } else if constexpr (std::is_integral_v<typename Type::c_type>) {
      ForEachRow(rows, &column->integers,
                 [&](auto value, bool there) { return IntegerOf(value, there, &within); });
    }
    if (within) return column->begins.clear();
    column->numbers.clear();
    column->integers.clear();
    AppendText(rows, read, text, &column->begins);
  }

 private:
  template <typename T, typename Make>
  void ForEachRow(int64_t rows, std::vector<T>* made, const Make& make) const {
    made->resize(rows);
    const auto* value = values_.data();
    for (int64_t row = 0; row < rows; ++row) {
      const bool there = this->IsThere(row);
      (*made)[row] = make(*value, there);
      value += there;
    }
  }

  void AppendText(int64_t rows, int64_t read, std::string* text, std::vector<uint32_t>* begins) {
    const auto bytes = static_cast<int64_t>(read * sizeof(values_[0]));
    const auto buffer =
        std::make_shared<arrow::Buffer>(reinterpret_cast<const uint8_t*>(values_.data()), bytes);
    const auto array = arrow::MakeArray(arrow::ArrayData::Make(type_, read, {nullptr, buffer}, 0));
    const AppendValue append = WriterOf(*type_);
    for (int64_t row = 0, at = 0; row < rows; ++row) {
      if (this->IsThere(row)) append(*array, at++, text);
      begins->push_back(CheckedPlace(text->size()));
    }
  }

  const std::shared_ptr<arrow::DataType> type_;
  const ColumnForm form_;
  std::vector<typename Type::c_type> values_;  // of the rows at hand that are not null
};

bool IsText(const arrow::DataType& type) {
  if (type.id() == arrow::Type::DICTIONARY) {
    return IsText(*static_cast<const arrow::DictionaryType&>(type).value_type());
  }
  return arrow::is_base_binary_like(type.id()) || arrow::is_binary_view_like(type.id());
}

}  // namespace

std::unique_ptr<PageColumn> PageColumn::Make(parquet::RowGroupReader* group, int leaf,
                                             const std::shared_ptr<arrow::DataType>& type,
                                             ColumnForm form) {
  const parquet::ColumnDescriptor& column = *group->metadata()->schema()->Column(leaf);
  if (column.max_repetition_level() > 0 || column.max_definition_level() > 1) return nullptr;
  const auto is = [&](parquet::Type::type physical, arrow::Type::type id) {
    return form != ColumnForm::kText && column.physical_type() == physical && type->id() == id;
  };
  if (column.physical_type() == parquet::Type::BYTE_ARRAY && IsText(*type)) {
    auto reader = group->ColumnWithExposeEncoding(leaf, parquet::ExposedEncoding::DICTIONARY);
    if (reader->GetExposedEncoding() == parquet::ExposedEncoding::DICTIONARY) {
      return std::make_unique<CodePages>(std::move(reader));
    }
    return std::make_unique<TextPages>(std::move(reader));
  }
  if (is(parquet::Type::INT32, arrow::Type::INT32)) {
    return std::make_unique<NumberPages<parquet::Int32Type>>(group->Column(leaf), type, form);
  }
  if (is(parquet::Type::INT64, arrow::Type::INT64)) {
    return std::make_unique<NumberPages<parquet::Int64Type>>(group->Column(leaf), type, form);
  }
  if (is(parquet::Type::DOUBLE, arrow::Type::DOUBLE) && form == ColumnForm::kNumbers) {
    return std::make_unique<NumberPages<parquet::DoubleType>>(group->Column(leaf), type, form);
  }
  return nullptr;
}

}  // namespace elastor
