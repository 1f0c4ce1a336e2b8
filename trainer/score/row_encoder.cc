#include "trainer/score/row_encoder.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/base/canonical_flush.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "trainer/checkpoint/vocabularies.h"
#include "trainer/data/saved_vocabulary.h"
#include "trainer/prepare/rows/column_names.h"
#include "trainer/prepare/rows/history_columns.h"
#include "trainer/prepare/schema_file.h"
#include "trainer/prepare/table_columns.h"

namespace elastor {
namespace {

bool IsFeature(const Field& field) {
  switch (field.type()) {
    case Field::NUMERIC:
    case Field::CATEGORICAL:
    case Field::MULTI_HOT:
    case Field::SEQUENCE:
      return true;
    default:
      return false;
  }
}

// Whether training alone needs the field.
bool IsOfTraining(const Field& field) {
  return field.type() == Field::LABEL || field.type() == Field::WEIGHT ||
         field.type() == Field::GROUP || field.type() == Field::TIME;
}

void Ignore(Field* field) {
  Field ignored;
  ignored.set_name(field->name());
  ignored.set_type(Field::IGNORED);
  ignored.set_column(field->column());
  *field = std::move(ignored);
}

// The fields whose columns are in the header, but for those that training alone needs; the labels
// when all are there.
Schema SchemaOfHeader(Schema schema, std::string_view header) {
  const StatusOr<std::vector<std::string>> names = ColumnNames(schema, header, "");
  if (!names.ok()) return schema;  // the parser tells
  const std::set<std::string> columns(names->begin(), names->end());
  const auto is_there = [&](const Field& field) {
    return columns.contains(field.column().empty() ? field.name() : field.column());
  };
  const bool labels = std::ranges::all_of(schema.fields(), [&](const Field& field) {
    return field.type() != Field::LABEL || is_there(field);
  });
  google::protobuf::RepeatedPtrField<Field> kept;
  for (const Field& field : schema.fields()) {
    if (IsFeature(field) || (field.type() == Field::LABEL && labels)) *kept.Add() = field;
  }
  schema.mutable_fields()->Swap(&kept);
  return schema;
}

// Without the columns of the fields that `left_out` chooses; a column that another field reads,
// too, stays.
template <typename LeftOut>
Schema WithoutColumns(const Schema& schema, const LeftOut& left_out) {
  std::set<std::string> shared;
  for (const Field& field : schema.fields()) shared.insert(field.column());
  for (const Lookup& lookup : schema.lookup()) shared.insert(lookup.by());
  Schema rest = schema;
  rest.clear_fields();
  for (const Field& field : schema.fields()) {
    const bool own_column = field.column().empty() && !shared.contains(field.name());
    if (left_out(field) && own_column) continue;
    *rest.add_fields() = field;
    if (left_out(field) || (IsOfTraining(field) && field.type() != Field::LABEL)) {
      Ignore(rest.mutable_fields(rest.fields_size() - 1));
    }
  }
  return rest;
}

// Whether a set that was made by the plan can have these fields.
bool Fits(const PreparePlan& plan, const DataEncoding& encoding) {
  const auto fits = [&](const PreparePlan::IdColumn& column,
                        const DatasetInfo::Categorical& field) {
    const bool owns = column.table == static_cast<int>(&column - plan.ids.data());
    return column.field->name() == field.name && field.shares == (owns ? -1 : column.table) &&
           column.keyed == field.keyed && (!owns || column.text != field.vocabulary.empty());
  };
  return std::ranges::equal(plan.numeric, encoding.numeric, {}, &Field::name,
                            &DatasetInfo::Numeric::name) &&
         std::ranges::equal(plan.ids, encoding.categorical, fits);
}

// Makes the histories columns of the rows. Without a header a field that reads one has a column of
// its own, in the order of the fields.
Schema WithGivenHistories(Schema schema) {
  for (const HistoryPlace& place : HistoryPlaces(schema)) {
    for (Field& field : *schema.mutable_fields()) {
      const bool by_name = schema.header() && field.column().empty();
      if ((by_name ? field.name() : field.column()) != place.column) continue;
      // Values of `beside` may be missing, but their places are those of the others.
      if (place.place > 0 && !place.time_gap) field.set_keep_missing(true);
      if (!schema.header()) field.clear_column();
    }
  }
  schema.clear_history();
  return schema;
}

int64_t ColumnsOf(const Schema& schema) {
  return std::ranges::count_if(schema.fields(),
                               [](const Field& field) { return field.column().empty(); });
}

}  // namespace

StatusOr<std::unique_ptr<RowEncoder>> RowEncoder::Open(const DataEncoding& encoding,
                                                       const std::string& folder) {
  if (encoding.schema.empty()) {
    return UserError(folder +
                     ": does not tell how raw rows are encoded: its training data was planted, or "
                     "was prepared by an earlier version; expected a model whose data `prepare` "
                     "made of files");
  }
  ELASTOR_ASSIGN_OR_RETURN(Schema schema,
                           ParseStoredSchema(encoding.schema, folder + ": its schema"));
  if (!Fits(PreparePlan(schema), encoding)) {
    return UserError(folder +
                     ": its schema is not that of its fields; expected what `prepare` has written");
  }
  ELASTOR_ASSIGN_OR_RETURN(const bool has_vocabularies, IsThere(folder + "/" + kVocabularyFolder));
  if (HasVocabularies(encoding) && !has_vocabularies) {
    return UserError(
        folder +
        ": holds no vocabularies, as checkpoints do not; expected the model that a run "
        "ends with, RUN/model");
  }
  std::unique_ptr<RowEncoder> encoder(
      new RowEncoder(WithGivenHistories(std::move(schema)), encoding));
  encoder->vocabularies_.resize(encoding.categorical.size());
  for (size_t i = 0; i < encoding.categorical.size(); ++i) {
    const DatasetInfo::Categorical& field = encoding.categorical[i];
    if (field.shares >= 0 || field.vocabulary.empty()) continue;
    ELASTOR_ASSIGN_OR_RETURN(
        encoder->vocabularies_[i],
        LoadVocabularyFile(folder + "/" + kVocabularyFolder + "/" + VocabularyFileName(field.name),
                           {field.ids, field.vocabulary}));
  }
  return encoder;
}

RowEncoder::RowEncoder(Schema schema, DataEncoding encoding)
    : schema_(std::move(schema)), encoding_(std::move(encoding)), plan_(schema_) {
  for (const Field& field : schema_.fields()) {
    if (IsFeature(field)) features_.emplace_back(field, static_cast<int64_t>(features_.size()));
  }
}

Schema RowEncoder::SchemaOfTable(std::string_view header) const {
  Schema schema = SchemaOfTables(schema_);
  schema.clear_split();
  return SchemaOfHeader(std::move(schema), header);
}

Schema RowEncoder::SchemaOf(std::string_view first_line) const {
  Schema schema = schema_;
  schema.clear_split();
  if (RulesOf(schema).source == RowSource::kPairs) return schema;
  if (schema.header()) return SchemaOfHeader(std::move(schema), first_line);
  Schema named = schema;  // so that ColumnNames counts quoted values
  const StatusOr<std::vector<std::string>> values = ColumnNames(named, first_line, "");
  const Schema all = WithoutColumns(schema, [](const Field&) { return false; });
  const auto fits = [&](const Schema& candidate) {
    return values.ok() && ColumnsOf(candidate) == static_cast<int64_t>(values->size());
  };
  if (fits(all)) return all;
  const Schema unlabelled =
      WithoutColumns(schema, [](const Field& field) { return field.type() == Field::LABEL; });
  if (fits(unlabelled)) return unlabelled;
  const Schema features = WithoutColumns(schema, IsOfTraining);
  return fits(features) ? features : all;
}

int64_t RowEncoder::IdOf(size_t column, uint64_t parsed, const ParsedChunk& chunk) const {
  if (!plan_.ids[column].text) return static_cast<int64_t>(parsed);
  const std::string_view text = chunk.TextOf(parsed);
  return text.empty() ? 0 : vocabularies_[plan_.ids[column].table].Find(text) + 1;
}

void RowEncoder::Encode(const ParsedChunk& chunk, Rows* rows) const {
  const size_t labels = chunk.rows * plan_.labels.size();
  rows->rows += chunk.rows;
  rows->labels.insert(rows->labels.end(), chunk.labels.begin(), chunk.labels.end());
  if (chunk.labels.empty()) {
    rows->labels.resize(rows->labels.size() + labels, std::numeric_limits<float>::quiet_NaN());
  }
  const size_t numeric = encoding_.numeric.size();
  for (size_t i = 0; i < chunk.numeric.size(); ++i) {
    const DatasetInfo::Numeric& field = encoding_.numeric[i % numeric];
    rows->numeric.push_back(CanonicalCast<float>((chunk.numeric[i] - field.mean) / field.stddev));
  }
  if (plan_.bags > 0 && rows->offsets.empty()) rows->offsets.push_back(0);
  for (int64_t row = 0; row < chunk.rows; ++row) {
    for (size_t column = 0; column < plan_.ids.size(); ++column) {
      const PreparePlan::IdColumn& ids = plan_.ids[column];
      if (ids.bag) {
        const int64_t bag = row * plan_.bags + ids.place;
        const uint32_t begin = bag == 0 ? 0 : chunk.bag_ends[bag - 1];
        for (uint32_t i = begin; i < chunk.bag_ends[bag]; ++i) {
          rows->ids.push_back(IdOf(column, chunk.bags[i], chunk));
        }
      } else {
        rows->ids.push_back(IdOf(column, chunk.ids[row * plan_.singles + ids.place], chunk));
      }
      if (plan_.bags > 0) rows->offsets.push_back(static_cast<int64_t>(rows->ids.size()));
    }
  }
}

Status RowEncoder::EncodeValues(std::span<const std::string_view> values, Rows* rows) const {
  if (values.size() != features_.size()) {
    return UserError(StrCat("found ", values.size(), " values, expected ", features_.size(),
                            ", one of each field that the model reads"));
  }
  thread_local ParsedChunk chunk;
  chunk = ParsedChunk();
  for (const std::string_view value : values) chunk.text += value;
  chunk.text += '\n';
  RowBuilder row(features_, /*optional_labels=*/true, &chunk);
  std::string_view rest = chunk.text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!row.Add(features_[i], rest.substr(0, values[i].size()))) {
      return UserError(chunk.bad.front().what);
    }
    rest.remove_prefix(values[i].size());
  }
  row.End(1);
  Encode(chunk, rows);
  return OkStatus();
}

}  // namespace elastor
