#include "trainer/data/arrow/arrow_part.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/util/byte_size.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/size_statistics.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "trainer/data/arrow/arrow_errors.h"
#include "trainer/data/arrow/arrow_part_hash.h"
#include "trainer/data/arrow/batch_rows.h"

namespace elastor {
namespace {

constexpr double kMostBytes = 1e18;  // that a group is said to take

// Arrow's own pool gives memory back after every batch, and gets it anew as zeros.
arrow::MemoryPool* Memory() { return arrow::system_memory_pool(); }

std::shared_ptr<arrow::io::ReadableFile> OpenFile(const std::string& path) {
  return Take(arrow::io::ReadableFile::Open(path, Memory()));
}

// --- Validity. ---

// The type with bytes in place of strings, so that any text is valid, as it is elsewhere.
std::shared_ptr<arrow::DataType> WithBytes(const std::shared_ptr<arrow::DataType>& type) {
  switch (type->id()) {
    case arrow::Type::STRING:
      return arrow::binary();
    case arrow::Type::LARGE_STRING:
      return arrow::large_binary();
    case arrow::Type::STRING_VIEW:
      return arrow::binary_view();
    case arrow::Type::EXTENSION:
      return WithBytes(static_cast<const arrow::ExtensionType&>(*type).storage_type());
    case arrow::Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryType&>(*type);
      return arrow::dictionary(dictionary.index_type(), WithBytes(dictionary.value_type()));
    }
    case arrow::Type::LIST:
      return arrow::list(WithBytes(type->field(0)->type()));
    case arrow::Type::LARGE_LIST:
      return arrow::large_list(WithBytes(type->field(0)->type()));
    case arrow::Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(
          WithBytes(type->field(0)->type()),
          static_cast<const arrow::FixedSizeListType&>(*type).list_size());
    case arrow::Type::MAP:
      return Take(arrow::MapType::Make(type->field(0)->WithType(WithBytes(type->field(0)->type())),
                                       static_cast<const arrow::MapType&>(*type).keys_sorted()));
    case arrow::Type::STRUCT: {
      arrow::FieldVector fields;
      for (const auto& field : type->fields()) {
        fields.push_back(field->WithType(WithBytes(field->type())));
      }
      return arrow::struct_(fields);
    }
    default:
      return type;
  }
}

std::shared_ptr<arrow::ArrayData> WithBytes(const arrow::ArrayData& data) {
  auto bytes = data.Copy();
  bytes->type = WithBytes(data.type);
  for (auto& child : bytes->child_data) child = WithBytes(*child);
  if (bytes->dictionary != nullptr) bytes->dictionary = WithBytes(*bytes->dictionary);
  return bytes;
}

void CheckBatch(const arrow::RecordBatch& batch) {
  Check(batch.Validate());
  for (int i = 0; i < batch.num_columns(); ++i) {
    Check(arrow::MakeArray(WithBytes(*batch.column_data(i)))->ValidateFull());
  }
}

// --- Parquet. ---

class ParquetFile : public TableFile {
 public:
  explicit ParquetFile(std::string path) : path_(std::move(path)) {
    const auto reader = Open(parquet::default_arrow_reader_properties());
    metadata_ = reader->parquet_reader()->metadata();
    std::shared_ptr<arrow::Schema> schema;
    Check(reader->GetSchema(&schema));
    columns_ = FileColumns(*schema);
    columns = columns_.columns;
    for (int i = 0; i < metadata_->num_row_groups(); ++i) {
      const auto group = metadata_->RowGroup(i);
      groups.push_back({group->num_rows(), std::max(group->total_byte_size(), ListBytes(*group))});
    }
  }

  std::unique_ptr<TableRows> Read(int group, const std::vector<int>& wanted,
                                  const std::vector<ColumnForm>& forms,
                                  std::string* wrong) const override {
    std::unique_ptr<TableRows> rows;
    *wrong = WrongOf([&] { rows = std::make_unique<Rows>(*this, group, wanted, forms); });
    return rows;
  }

 private:
  class Rows : public BatchRows {
   public:
    Rows(const ParquetFile& file, int group, const std::vector<int>& wanted,
         const std::vector<ColumnForm>& forms) {
      reader_ = file.Open(parquet::default_arrow_reader_properties());
      const auto& fields = reader_->manifest().schema_fields;
      const auto row_group = reader_->parquet_reader()->RowGroup(group);
      for (size_t i = 0; i < wanted.size(); ++i) {
        const parquet::arrow::SchemaField& field = fields.at(file.columns_.fields[wanted[i]]);
        const ColumnForm form = forms.empty() ? ColumnForm::kText : forms[i];
        pages_.push_back(field.is_leaf() ? PageColumn::Make(row_group.get(), field.column_index,
                                                            field.field->type(), form)
                                         : nullptr);
      }
      std::vector<int> read, leaves;
      Choose(file.columns_, wanted, forms, &read);
      if (!has_batches()) return;
      for (const int field : read) AddLeaves(fields.at(field), &leaves);
      constexpr int64_t kBatchRows = 1 << 17, kBatchBytes = 32 << 20, kValueBytes = 8;
      const int64_t row_bytes = std::max<int64_t>(file.groups[group].bytes /
                                                      std::max<int64_t>(file.groups[group].rows, 1),
                                                  kValueBytes * std::ssize(leaves)) +
                                1;
      parquet::ArrowReaderProperties properties;
      properties.set_batch_size(std::clamp<int64_t>(kBatchBytes / row_bytes, 1, kBatchRows));
      properties.set_pre_buffer(false);
      reader_ = file.Open(properties);
      batches_ = Take(reader_->GetRecordBatchReader({group}, leaves));
    }

   protected:
    std::shared_ptr<arrow::RecordBatch> NextBatch() override {
      std::shared_ptr<arrow::RecordBatch> batch;
      Check(batches_->ReadNext(&batch));
      return batch;
    }

   private:
    static void AddLeaves(const parquet::arrow::SchemaField& field, std::vector<int>* leaves) {
      if (field.is_leaf()) leaves->push_back(field.column_index);
      for (const auto& child : field.children) AddLeaves(child, leaves);
    }
    std::unique_ptr<parquet::arrow::FileReader> reader_;
    std::unique_ptr<arrow::RecordBatchReader> batches_;
  };

  std::unique_ptr<parquet::arrow::FileReader> Open(
      parquet::ArrowReaderProperties properties) const {
    // Nanoseconds would leave out the years before 1677 and from 2263 on.
    properties.set_coerce_int96_timestamp_unit(arrow::TimeUnit::MICRO);
    parquet::ReaderProperties reading(Memory());
    // A column is read page by page, not as a whole.
    reading.enable_buffered_stream();
    constexpr int64_t kBufferBytes = 256 << 10;
    reading.set_buffer_size(kBufferBytes);
    reading.set_page_checksum_verification(true);
    parquet::arrow::FileReaderBuilder builder;
    Check(builder.Open(OpenFile(path_), reading, metadata_));
    builder.memory_pool(Memory())->properties(properties);
    return Take(builder.Build());
  }

  // What the items of lists take, as encodings may make nothing of them.
  static int64_t ListBytes(const parquet::RowGroupMetaData& group) {
    constexpr double kItemBytes = 8;
    double bytes = 0;
    for (int i = 0; i < group.num_columns(); ++i) {
      if (group.schema()->Column(i)->max_repetition_level() == 0) continue;
      const auto chunk = group.ColumnChunk(i);
      bytes += kItemBytes * static_cast<double>(std::max<int64_t>(chunk->num_values(), 0));
      const auto sizes = chunk->size_statistics();
      const int64_t text =
          sizes == nullptr ? 0 : sizes->unencoded_byte_array_data_bytes.value_or(0);
      bytes += static_cast<double>(std::max<int64_t>(text, 0));
    }
    return static_cast<int64_t>(std::min(bytes, kMostBytes));
  }

  const std::string path_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  FileColumns columns_;
};

// --- Arrow files, also known as Feather. ---

// Record batches that follow one another are a group: each group reads all dictionaries anew.
class ArrowFile : public TableFile {
 public:
  explicit ArrowFile(std::string path) : path_(std::move(path)) {
    const auto reader = Open(Options());
    columns_ = FileColumns(*reader->schema());
    columns = columns_.columns;
    const std::vector<int64_t> rows = RowsOfBatches(*reader->schema());
    int64_t all = 0;
    for (const int64_t count : rows) {
      if (count < 0 || count > kMostRows - all) {
        throw std::runtime_error("a record batch says that it has " + std::to_string(count) +
                                 " rows");
      }
      all += count;
    }
    const int64_t least = std::max(kLeastGroupRows, all / kMostGroups + 1);
    const double row_bytes = RowBytes();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i == 0 || groups.back().rows >= least) {
        first_batches_.push_back(static_cast<int>(i));
        groups.emplace_back();
      }
      groups.back().rows += rows[i];
    }
    for (TableGroup& group : groups) {
      const double bytes = row_bytes * static_cast<double>(group.rows);
      group.bytes = static_cast<int64_t>(std::min(bytes, kMostBytes));
    }
    first_batches_.push_back(static_cast<int>(rows.size()));
  }

  std::unique_ptr<TableRows> Read(int group, const std::vector<int>& wanted,
                                  const std::vector<ColumnForm>& forms,
                                  std::string* wrong) const override {
    std::unique_ptr<TableRows> rows;
    *wrong = WrongOf([&] {
      rows = std::make_unique<Rows>(*this, first_batches_[group], first_batches_[group + 1], wanted,
                                    forms);
    });
    return rows;
  }

 private:
  static constexpr int64_t kLeastGroupRows = 1 << 16, kMostGroups = 256,
                           kMostRows = int64_t{1} << 46;

  class Rows : public BatchRows {
   public:
    // Of the batches from `begin` to `end`.
    Rows(const ArrowFile& file, int begin, int end, const std::vector<int>& wanted,
         const std::vector<ColumnForm>& forms)
        : next_(begin), end_(end) {
      auto options = Options();
      Choose(file.columns_, wanted, forms, &options.included_fields);
      reader_ = file.Open(options);
    }

    std::shared_ptr<arrow::RecordBatch> NextBatch() override {
      if (next_ >= std::min(end_, reader_->num_record_batches())) return nullptr;
      auto batch = Take(reader_->ReadRecordBatch(next_++));
      CheckBatch(*batch);
      return batch;
    }

   private:
    std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
    int next_;
    const int end_;
  };

  static arrow::ipc::IpcReadOptions Options() {
    auto options = arrow::ipc::IpcReadOptions::Defaults();
    options.use_threads = false;
    options.memory_pool = Memory();
    return options;
  }

  // Reads a narrow column, as Arrow tells no batch's rows without its values.
  std::vector<int64_t> RowsOfBatches(const arrow::Schema& schema) const {
    const auto width = [&](int field) {
      const arrow::DataType& type = *schema.field(field)->type();
      return type.num_fields() > 0 || type.bit_width() < 0 ? std::numeric_limits<int>::max()
                                                           : type.bit_width();
    };
    auto options = Options();
    for (int i = 0; i < schema.num_fields(); ++i) {
      if (options.included_fields.empty()) options.included_fields = {i};
      if (width(i) < width(options.included_fields[0])) options.included_fields = {i};
    }
    const auto reader = Open(options);
    std::vector<int64_t> rows;
    for (int i = 0; i < reader->num_record_batches(); ++i) {
      rows.push_back(Take(reader->ReadRecordBatch(i))->num_rows());
    }
    return rows;
  }

  // What a row's lists take if all batches are as the first one. The file may be compressed.
  double RowBytes() const {
    std::vector<int> lists;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].is_readable && columns[i].is_list) lists.push_back(static_cast<int>(i));
    }
    if (lists.empty()) return 0;
    const auto batch = Rows(*this, 0, 1, lists, {}).NextBatch();
    if (batch == nullptr) return 0;
    constexpr int64_t kSampleRows = 256;
    const int64_t sample = std::min(batch->num_rows(), kSampleRows);
    if (sample == 0) return 0;
    std::string text;
    TextTable table;
    Rows sampled(*this, 0, 1, lists, {});
    if (const std::string wrong = sampled.Next(sample, &text, &table); !wrong.empty()) {
      throw std::runtime_error(wrong);
    }
    return std::max(static_cast<double>(text.size()) / static_cast<double>(sample),
                    static_cast<double>(arrow::util::TotalBufferSize(*batch)) /
                        static_cast<double>(batch->num_rows()));
  }

  std::shared_ptr<arrow::ipc::RecordBatchFileReader> Open(
      const arrow::ipc::IpcReadOptions& options) const {
    return Take(arrow::ipc::RecordBatchFileReader::Open(OpenFile(path_), options));
  }

  const std::string path_;
  FileColumns columns_;
  std::vector<int> first_batches_;  // by group, then behind the last
};

std::unique_ptr<TableFile> Open(const std::string& path, std::string* wrong) {
  std::unique_ptr<TableFile> file;
  *wrong = WrongOf([&] {
    const auto head = Take(OpenFile(path)->Read(4));
    const bool parquet = head->ToString() == "PAR1";
    file = parquet ? std::unique_ptr<TableFile>(std::make_unique<ParquetFile>(path))
                   : std::make_unique<ArrowFile>(path);
  });
  return file;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ArrowPart elastor_arrow_part;
const ArrowPart elastor_arrow_part = {kArrowPartHash, ARROW_VERSION_STRING, Open};

}  // namespace elastor
