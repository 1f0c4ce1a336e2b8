#include "trainer/prepare/schema_file.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cmath>
#include <limits>
#include <set>

#include "core/base/file.h"

namespace elastor {
namespace {

constexpr double kShareTolerance = 1e-6;
constexpr int64_t kMostBuckets = int64_t{1} << 48;

// Keeps the first error of a text as "line:column: message".
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!text_.empty()) return;
    text_ = std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": " + message;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Status CheckField(const Field& field, Schema::Layout layout, bool last) {
  if (field.name().empty()) return UserError("a field without a name");
  const std::string name = "field " + field.name() + ": ";
  if (field.type() == Field::NUMERIC) return OkStatus();
  if (field.transform() != Field::NONE) {
    return UserError(name + "transform is for NUMERIC fields");
  }
  const bool bounded = field.encoding() != Field::VOCABULARY;
  if (bounded && (field.buckets() < 1 || field.buckets() > kMostBuckets)) {
    return UserError(name + "buckets is " + std::to_string(field.buckets()) +
                     ", expected 1 to 2^48 for HASH and IDENTITY");
  }
  if (field.min_count() < 0) return UserError(name + "min_count is negative");
  if (field.max_length() < 0) return UserError(name + "max_length is negative");
  if (field.separator().size() > 1) {
    return UserError(name + "separator is '" + field.separator() + "', expected one character");
  }
  if (field.type() == Field::MULTI_HOT && layout == Schema::LIBSVM && !last) {
    return UserError(name +
                     "a MULTI_HOT field of LIBSVM takes all remaining pairs, so must be last");
  }
  return OkStatus();
}

Status CheckSplit(const SplitPlan& split, Schema::Layout layout) {
  const double sum = split.train() + split.validation() + split.test();
  if (split.train() < 0 || split.validation() < 0 || split.test() < 0) {
    return UserError("split: a share is negative");
  }
  if (split.by_file()) {
    if (sum != 0) return UserError("split: by_file and shares exclude each other");
    if (layout == Schema::SYNTHETIC) return UserError("split: SYNTHETIC has no files");
    return OkStatus();
  }
  if (sum != 0 && !(std::abs(sum - 1) <= kShareTolerance)) {
    return UserError("split: the shares sum to " + std::to_string(sum) + ", expected 1");
  }
  return OkStatus();
}

Status CheckSynthetic(const Synthetic& plan) {
  if (plan.rows() < 1) return UserError("synthetic.rows must be at least 1");
  if (plan.numeric_fields() < 0 || plan.categorical_fields() < 0 || plan.multi_hot_fields() < 0 ||
      plan.numeric_fields() + plan.categorical_fields() + plan.multi_hot_fields() < 2) {
    return UserError("synthetic needs at least two fields");
  }
  if (plan.categorical_fields() + plan.multi_hot_fields() > 0 &&
      (plan.ids_per_field() < 1 || plan.ids_per_field() > kMostBuckets)) {
    return UserError("synthetic.ids_per_field must be 1 to 2^48");
  }
  if (plan.zipf_exponent() < 0) return UserError("synthetic.zipf_exponent is negative");
  if (plan.rank() < 0 || plan.rank() > 256) return UserError("synthetic.rank must be 0 to 256");
  if (plan.teacher() == Synthetic::COORDINATE_MIXING && plan.rank() > 0 && plan.rank() < 4) {
    return UserError("synthetic.rank must be at least 4 for COORDINATE_MIXING");
  }
  if (plan.signal() < 0) return UserError("synthetic.signal is negative");
  if (!(plan.base_rate() >= 0 && plan.base_rate() < 1)) {
    return UserError("synthetic.base_rate must be in [0, 1)");
  }
  if (!(plan.missing_share() >= 0 && plan.missing_share() < 1)) {
    return UserError("synthetic.missing_share must be in [0, 1)");
  }
  return OkStatus();
}

Status CheckSchema(const Schema& schema) {
  if (schema.max_bad_rows() < 0) return UserError("max_bad_rows is negative");
  if (schema.rows_per_block() < 0 || schema.rows_per_block() > (1 << 20)) {
    return UserError("rows_per_block must be 0 to 2^20");
  }
  ELASTOR_RETURN_IF_ERROR(CheckSplit(schema.split(), schema.layout()));
  if (schema.layout() == Schema::SYNTHETIC) {
    if (schema.fields_size() > 0)
      return UserError("SYNTHETIC makes its own fields; remove `fields`");
    return CheckSynthetic(schema.synthetic());
  }
  if (schema.has_synthetic()) return UserError("`synthetic` is for layout SYNTHETIC");
  if (schema.fields_size() == 0) return UserError("no fields");
  std::set<std::string> names;
  for (int i = 0; i < schema.fields_size(); ++i) {
    const Field& field = schema.fields(i);
    ELASTOR_RETURN_IF_ERROR(CheckField(field, schema.layout(), i + 1 == schema.fields_size()));
    if (!names.insert(field.name()).second) {
      return UserError("field " + field.name() + " is named twice");
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<Schema> ParseSchema(const std::string& text, const std::string& source) {
  Schema schema;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &schema)) return UserError(source + ":" + error.text());
  if (Status status = CheckSchema(schema); !status.ok()) {
    return UserError(source + ": " + status.message());
  }
  return schema;
}

StatusOr<Schema> ReadSchemaFile(const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseSchema(text, path);
}

}  // namespace elastor
