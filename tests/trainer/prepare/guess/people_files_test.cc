// Random files of people with a known truth: what --guess and prepare make of a column is the
// truth, or the schema tells the doubt about that very column. By hand:
//     bazel run //tests/trainer/prepare/guess:people_files_test -- --files=2000 --seed=1

#include "tests/trainer/prepare/guess/people_files.h"

#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "core/base/text.h"
#include "tests/trainer/prepare/scratch.h"
#include "trainer/data/saved_vocabulary.h"
#include "trainer/prepare/guess/guess.h"
#include "trainer/prepare/rows/time_text.h"

DEFINE_int64(files, 60, "files to make");
DEFINE_uint64(seed, 1, "of the first file; the others follow");
DEFINE_bool(show, false, "print the file, the schema and what is wrong for the first wrong file");

DEFINE_bool(show_doubts, false, "print the doubts");

namespace elastor {
namespace {

constexpr double kMostDoubts = 0.1;  // of all columns

// The values of a vocabulary by id; id 0 is "".
std::vector<std::string> ValuesOf(const std::string& set, const std::string& field) {
  std::vector<std::string> values = {""};
  const std::string file = FileBytes(set + "/vocabulary/" + VocabularyFileName(field));
  for (size_t at = 0; at < file.size(); at = file.find('\n', at) + 1) {
    const std::string line = file.substr(at, file.find('\t', at) - at);
    std::string value;
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] != '\\') {
        value += line[i];
        continue;
      }
      const char c = line[++i];
      value += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
    }
    values.push_back(value);
  }
  return values;
}

// A file's columns as prepare has made them, all rows as training rows, numbers as they are.
struct Made {
  Schema schema;
  std::string output;
  std::unique_ptr<Dataset> dataset;
  Rows rows;
  std::vector<int64_t> row_of;  // of the file, by row of the set

  const Field* field(const std::string& name) const {
    for (const Field& field : schema.fields()) {
      if (field.name() == name) return &field;
    }
    return nullptr;
  }
  std::vector<std::string> Ids(const std::string& name, int64_t row,
                               const std::vector<std::string>& values) const {
    const auto& fields = dataset->info().categorical;
    size_t place = 0;
    while (fields[place].name != name) ++place;
    const int64_t bag = row * static_cast<int64_t>(fields.size()) + static_cast<int64_t>(place);
    std::vector<std::string> texts;
    const int64_t begin = rows.offsets.empty() ? bag : rows.offsets[bag];
    const int64_t end = rows.offsets.empty() ? bag + 1 : rows.offsets[bag + 1];
    for (int64_t i = begin; i < end; ++i) texts.push_back(values[rows.ids[i]]);
    return texts;
  }
};

// What is wrong with a field of texts; empty: nothing.
std::string WrongTexts(const Made& made, const TrueColumn& column, const Field& field) {
  if (field.type() != Field::CATEGORICAL || field.transform() != Field::NONE) {
    return "is no field of texts";
  }
  std::map<std::string, int64_t> counts;
  for (const int64_t row : made.row_of) ++counts[column.texts[row]];
  const std::vector<std::string> values = ValuesOf(made.output, field.name());
  for (size_t i = 0; i < made.row_of.size(); ++i) {
    const std::string& text = column.texts[made.row_of[i]];
    const bool rare = counts[text] < std::max<int64_t>(1, field.min_count());
    const std::string found = made.Ids(field.name(), static_cast<int64_t>(i), values)[0];
    if (found != (rare ? "" : text)) return StrCat("has '", found, "' for '", text, "'");
  }
  return "";
}

std::string WrongNumbers(const Made& made, const TrueColumn& column, const Field& field) {
  if (field.type() != Field::NUMERIC) return "is no field of numbers";
  const auto& fields = made.dataset->info().numeric;
  size_t place = 0;
  while (fields[place].name != field.name()) ++place;
  for (size_t i = 0; i < made.row_of.size(); ++i) {
    const float found = made.rows.numeric[i * fields.size() + place];
    const double right = column.numbers[made.row_of[i]];
    if (std::isnan(right) ? !std::isnan(found) : found != static_cast<float>(right)) {
      return Format("has %g for %g", found, right);
    }
  }
  return "";
}

std::string WrongList(const Made& made, const TrueColumn& column, const Field& field) {
  if (field.type() != Field::MULTI_HOT && field.type() != Field::SEQUENCE) return "is no list";
  const std::vector<std::string> values = ValuesOf(made.output, field.name());
  for (size_t i = 0; i < made.row_of.size(); ++i) {
    if (made.Ids(field.name(), static_cast<int64_t>(i), values) != column.items[made.row_of[i]]) {
      return StrCat("has other items in row ", i);
    }
  }
  return "";
}

std::string WrongTime(const Made& made, const TrueColumn& column, const Field& field) {
  const bool row_time = field.type() == Field::TIME;
  if (!row_time && field.transform() != Field::HOUR) return "is no time";
  const std::string hour = row_time ? field.name() + "_hour" : field.name();
  const std::vector<std::string> hours = ValuesOf(made.output, hour);
  const std::vector<std::string> days = ValuesOf(made.output, field.name() + "_weekday");
  for (size_t i = 0; i < made.row_of.size(); ++i) {
    const double right = column.numbers[made.row_of[i]];
    const auto row = static_cast<int64_t>(i);
    const auto seconds = static_cast<int64_t>(std::isnan(right) ? 0 : right);
    if (row_time && (std::isnan(right) || made.rows.times[i] != seconds)) return "has other times";
    const std::string found_hour = made.Ids(hour, row, hours)[0];
    const std::string found_day = made.Ids(field.name() + "_weekday", row, days)[0];
    if (found_hour != (std::isnan(right) ? "" : std::to_string(HourOf(seconds))) ||
        found_day != (std::isnan(right) ? "" : std::to_string(WeekdayOf(seconds)))) {
      return "has other hours or weekdays";
    }
  }
  return "";
}

// What is wrong with a column that the schema does not doubt; empty: nothing.
std::string WrongColumn(const Made& made, const TrueColumn& column) {
  const Field* field = made.field(column.name);
  const bool out = field == nullptr || field->type() == Field::IGNORED;
  const bool is_label = field != nullptr && field->type() == Field::LABEL;
  if (is_label != (column.kind == TrueColumn::kLabel))
    return is_label ? "is the label" : "is no label";
  switch (column.kind) {
    case TrueColumn::kLabel:
      for (size_t i = 0; i < made.row_of.size(); ++i) {
        const double right = column.numbers[made.row_of[i]];
        if (made.rows.labels[i] != static_cast<float>(right)) return "has other labels";
      }
      return "";
    case TrueColumn::kAfterLabel:
    case TrueColumn::kCopy:
    case TrueColumn::kConstant:
    case TrueColumn::kUnreadable:
      return out ? "" : "is a field";
    case TrueColumn::kUnique:
      return out || WrongTexts(made, column, *field).empty() ? "" : "is a field";
    case TrueColumn::kSmallCounts:
      if (out) return "is left out";
      return field->type() == Field::NUMERIC ? WrongNumbers(made, column, *field)
                                             : WrongTexts(made, column, *field);
    case TrueColumn::kNames:
      if (out && std::set(column.texts.begin(), column.texts.end()).size() == column.texts.size()) {
        return "";  // by chance another value in every row
      }
      return out ? "is left out" : WrongTexts(made, column, *field);
    case TrueColumn::kCategory:
      return out ? "is left out" : WrongTexts(made, column, *field);
    case TrueColumn::kNumber:
      return out ? "is left out" : WrongNumbers(made, column, *field);
    case TrueColumn::kList:
      return out ? "is left out" : WrongList(made, column, *field);
    case TrueColumn::kTime:
      return out ? "is left out" : WrongTime(made, column, *field);
  }
  return "";
}

bool IsDoubted(const std::string& schema, const std::string& column) {
  return schema.find("\n# check " + column + ": ") != schema.npos;
}

struct Totals {
  int64_t columns = 0;
  int64_t doubted = 0;
  int64_t refused = 0;                                 // files
  int64_t wrong = 0;                                   // columns and files
  std::map<int, std::pair<int64_t, int64_t>> by_kind;  // doubted, all
};

std::string KindName(int kind) {
  const char* kNames[] = {"label", "after_label",  "copy",   "constant", "unique", "category",
                          "names", "small_counts", "number", "list",     "time",   "unreadable"};
  return kNames[kind];
}

// Prepares the file as its schema says, but for what hides values: the split, the transforms.
std::string Prepared(const PeopleFile& file, const std::string& path, const std::string& schema,
                     Made* made) {
  PrepareOptions options = OptionsOf(schema, {path}, "made");
  made->schema = options.schema;
  options.schema.clear_split();
  for (Field& field : *options.schema.mutable_fields()) {
    const bool logarithms = field.transform() == Field::LOG2_STANDARDIZE;
    if (field.type() == Field::NUMERIC) field.set_transform(Field::NONE);
    if (!logarithms) continue;
    for (const TrueColumn& column : file.columns) {
      if (column.name != field.name()) continue;
      for (const double number : column.numbers) {
        if (!std::isnan(number) && number != std::floor(number))
          return "has logarithms of fractions: " + column.name;
      }
    }
  }
  options.threads = 1;
  const auto report = Prepare(options);
  if (!report.ok()) return report.status().message();
  for (int64_t i = 0; i < file.rows; ++i) {
    if (file.has_label[i]) made->row_of.push_back(i);
  }
  const auto rows = static_cast<int64_t>(made->row_of.size());
  if (report->rows[0] != rows) return StrCat("has ", report->rows[0], " rows for ", rows);
  const std::string told = StrCat("\n# ", rows, " rows, ", report->bad_rows, " bad ones;");
  if (schema.find(told) == schema.npos) return StrCat("does not tell:", told);
  made->output = options.output_dir;
  made->dataset = OpenOrDie(made->output);
  made->rows = ReadAll(*made->dataset, Split::kTrain);
  return "";
}

void TryFile(uint64_t seed, Totals* totals) {
  const PeopleFile file = MakePeopleFile(seed);
  const std::string path = WriteScratch("in", file.text);
  StatusOr<std::string> schema = GuessSchema({path});
  const std::string doubts = schema.ok() ? *schema : "";
  const auto label = std::ranges::find(file.columns, TrueColumn::kLabel, &TrueColumn::kind);
  // Whoever reads a doubt about the label names it.
  if (IsDoubted(doubts, label->name)) schema = GuessSchema({path}, label->name);
  std::string wrong;
  if (!schema.ok()) {
    ++totals->refused;
    wrong = "refused: " + schema.status().message();
  }
  Made made;
  if (wrong.empty()) wrong = Prepared(file, path, *schema, &made);
  if (!wrong.empty()) {
    ++totals->wrong;
    std::printf("seed %lld (%s): %s\n", static_cast<long long>(seed), file.dialect.c_str(),
                wrong.c_str());
  }
  for (size_t i = 0; wrong.empty() && i < file.columns.size(); ++i) {
    const TrueColumn& column = file.columns[i];
    const bool doubted = IsDoubted(doubts, column.name);
    ++totals->columns;
    totals->doubted += doubted;
    ++totals->by_kind[column.kind].second;
    totals->by_kind[column.kind].first += doubted;
    if (doubted && FLAGS_show_doubts) {
      const size_t at = doubts.find("\n# check " + column.name + ": ") + 1;
      std::printf("doubt, %s: %s (%s)\n", KindName(column.kind).c_str(),
                  doubts.substr(at, doubts.find('\n', at) - at).c_str(), column.written[0].c_str());
    }
    const std::string fault = doubted ? "" : WrongColumn(made, column);
    if (fault.empty()) continue;
    ++totals->wrong;
    std::printf("seed %lld (%s): column %s, %s: %s; first '%s'\n", static_cast<long long>(seed),
                file.dialect.c_str(), column.name.c_str(), KindName(column.kind).c_str(),
                fault.c_str(), column.written[0].c_str());
  }
  if (FLAGS_show && (totals->wrong > 0 || FLAGS_files == 1)) {
    std::printf("%s\n%s\n", file.text.substr(0, 2000).c_str(),
                schema.ok() ? schema->c_str() : "refused");
    FLAGS_show = false;
  }
}

TEST(PeopleFilesTest, AreReadRightOrTheDoubtIsTold) {
  Totals totals;
  for (int64_t i = 0; i < FLAGS_files; ++i) TryFile(FLAGS_seed + i, &totals);
  std::printf("%lld files, %lld columns, %lld doubted, %lld files refused, %lld wrong\n",
              static_cast<long long>(FLAGS_files), static_cast<long long>(totals.columns),
              static_cast<long long>(totals.doubted), static_cast<long long>(totals.refused),
              static_cast<long long>(totals.wrong));
  for (const auto& [kind, counts] : totals.by_kind) {
    std::printf("  %-12s %6lld columns, %5.1f %% doubted\n", KindName(kind).c_str(),
                static_cast<long long>(counts.second),
                100.0 * static_cast<double>(counts.first) / static_cast<double>(counts.second));
  }
  EXPECT_EQ(totals.wrong, 0);
  ASSERT_GT(totals.columns, FLAGS_files);
  EXPECT_LE(static_cast<double>(totals.doubted), kMostDoubts * static_cast<double>(totals.columns));
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return RUN_ALL_TESTS();
}
