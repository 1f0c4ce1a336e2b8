#include "trainer/prepare/table_columns.h"

#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "trainer/data/arrow/table_source.h"
#include "trainer/prepare/layouts.h"
#include "trainer/prepare/rows/column_names.h"
#include "trainer/prepare/rows/history_columns.h"
#include "trainer/prepare/rows/row_builder.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

// A column, and who reads it.
struct Use {
  std::string column;
  std::string reader;  // "field age"
  bool takes_lists = false;
  bool may_be_missing = false;          // from rows to predict
  ColumnForm form = ColumnForm::kText;  // in which it may be given
};

bool IsHashed(const Schema& schema, const Field& field) {
  return field.name() == schema.split().hash_field();
}

ColumnForm FormOf(const Schema& schema, const Field& field) {
  if (IsHashed(schema, field) || !schema.null().empty()) return ColumnForm::kText;
  if (field.type() == Field::NUMERIC) return ColumnForm::kNumbers;
  if (field.type() == Field::LABEL && field.positive().empty()) return ColumnForm::kNumbers;
  const bool is_id = field.type() == Field::CATEGORICAL && field.transform() == Field::NONE;
  return is_id && TakesText(field.encoding()) ? ColumnForm::kIntegers : ColumnForm::kText;
}

StatusOr<std::vector<Use>> UsesOf(const Schema& schema) {
  std::vector<Use> uses;
  for (const Field& field : schema.fields()) {
    const bool is_hashed = IsHashed(schema, field);
    if (field.type() == Field::IGNORED && !is_hashed) continue;
    const bool is_value = field.type() == Field::NUMERIC || field.type() == Field::CATEGORICAL;
    const bool is_bag = field.type() == Field::MULTI_HOT || field.type() == Field::SEQUENCE;
    uses.push_back({field.column().empty() ? field.name() : field.column(),
                    StrCat("field ", field.name(), " of type ", Field::Type_Name(field.type()),
                           is_hashed ? ", which is hashed" : ""),
                    is_bag && !is_hashed, !is_bag && !is_value, FormOf(schema, field)});
  }
  for (const Lookup& lookup : schema.lookup()) {
    uses.push_back({lookup.by(), StrCat("lookup ", lookup.file())});
  }
  for (const History& history : schema.history()) {
    const std::string reader = HistoryName(history).substr(0, HistoryName(history).find(':'));
    uses.push_back({history.by(), reader});
    uses.push_back({history.of(), reader});
    for (const HistoryColumn& beside : history.beside()) {
      if (!beside.time_gap()) uses.push_back({beside.of(), reader});
    }
    if (history.where().empty()) continue;
    ELASTOR_ASSIGN_OR_RETURN(const RowCondition where, RowCondition::Parse(history.where()));
    uses.push_back({where.column(), reader});
  }
  if (schema.has_negatives()) {
    const Negatives& negatives = schema.negatives();
    for (const std::string& column : {negatives.user(), negatives.of()}) {
      uses.push_back({column, "negatives"});
    }
    for (const std::string& column : negatives.beside()) uses.push_back({column, "negatives"});
  }
  return uses;
}

Status CheckColumn(const TableColumn& column, const Use& use, const std::string& path) {
  if (column.is_readable && (!column.is_list || use.takes_lists)) return OkStatus();
  const char* const expected = column.is_readable ? "one value a row there; bags read lists"
                                                  : "single values or a list of them";
  return UserError(StrCat(path, ": column ", Shown(column.name), ", which ", use.reader,
                          " reads, has the type ", Shown(column.type), "; expected ", expected));
}

}  // namespace

Schema SchemaOfTables(const Schema& schema) {
  Schema of_tables = schema;
  of_tables.set_header(true);
  of_tables.set_quoted(true);
  of_tables.set_delimiter(",");
  of_tables.set_skip_lines(kNoLines);
  of_tables.clear_fields();
  for (const Field& field : schema.fields()) {
    if (field.type() != Field::IGNORED || IsHashed(schema, field)) *of_tables.add_fields() = field;
  }
  return of_tables;
}

StatusOr<TableColumns> ChooseColumns(const Schema& schema, const TableFile& table,
                                     const std::string& path) {
  if (SourceOf(schema.layout()) != RowSource::kColumns) {
    return UserError(StrCat(path, ": is a Parquet or Arrow file; expected text for layout ",
                            Schema::Layout_Name(schema.layout()), ", as DELIMITED alone reads it"));
  }
  if (schema.split().by() == SplitPlan::HASH && schema.split().hash_field().empty()) {
    return UserError(path +
                     ": a row of a Parquet or Arrow file is no line that can be hashed; expected "
                     "hash_field in the schema's split");
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<Use> uses, UsesOf(schema));
  TableColumns chosen;
  std::vector<std::string> names;
  std::set<std::string> seen;
  bool all_there = true;
  for (const Use& use : uses) {
    bool found = false;
    const bool is_new = seen.insert(use.column).second;
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const TableColumn& column = table.columns[i];
      if (column.name != use.column) continue;
      ELASTOR_RETURN_IF_ERROR(CheckColumn(column, use, path));
      found = true;
      if (!is_new) continue;
      chosen.places.push_back(static_cast<int>(i));
      const bool agree = std::ranges::all_of(uses, [&use](const Use& other) {
        return other.column != use.column || other.form == use.form;
      });
      chosen.forms.push_back(agree ? use.form : ColumnForm::kText);
      names.push_back(column.name);
    }
    all_there &= found || use.may_be_missing;
  }
  if (!all_there && schema.lookup().empty() && schema.history().empty()) {
    for (const TableColumn& column : table.columns) {
      if (!seen.contains(column.name)) names.push_back(column.name);
    }
  }
  for (const std::string& name : names) {
    chosen.header += (chosen.header.empty() ? "" : ",") + QuotedText(name);
  }
  return chosen;
}

int64_t ChunkRows(const TableGroup& group, const TableColumns& columns, int64_t bytes,
                  int64_t most) {
  // Values of dictionaries are longer in memory than in the file.
  constexpr int64_t kValueBytes = 4;
  const int64_t row_bytes = std::max({kValueBytes * std::ssize(columns.places),
                                      group.bytes / std::max<int64_t>(group.rows, 1), int64_t{1}});
  return std::clamp<int64_t>(bytes / row_bytes, 1, most);
}

}  // namespace elastor
