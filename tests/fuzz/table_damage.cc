// Damages Parquet and Arrow files of all readable types, and reads what is left of each to its end.
// By hand:
//
//   bazel run //tests/fuzz:table_damage -- --damages=100000 --seed=1
//
// A damaged file is read, or refused in one line. What ends the program stays in $TEST_TMPDIR or
// /tmp.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "core/base/log.h"
#include "gflags/gflags.h"
#include "tests/faults/byte_damage.h"
#include "trainer/data/arrow/table_source.h"
#include "trainer/data/sized_text.h"

DEFINE_int64(damages, 10000, "damaged files to read");
DEFINE_uint64(seed, 1, "of the damages");

namespace elastor {
namespace {

constexpr char kTables[] = "tests/trainer/prepare/tables";
constexpr int64_t kMostRows = 100'000;  // to read of a group; the files have fewer

// What the part gives lies within its text.
void CheckTable(const TextTable& table, std::string_view text, int64_t rows) {
  CHECK_EQ(table.rows, rows);
  for (const TextColumn& column : table.columns) {
    if (!column.numbers.empty() || !column.integers.empty()) {
      CHECK_EQ(std::ssize(column.numbers) + std::ssize(column.integers), rows);
      continue;
    }
    const TextDictionary* const values = column.dictionary.get();
    const std::vector<uint32_t>& begins = values != nullptr ? values->begins : column.begins;
    CHECK(std::ranges::is_sorted(begins));
    CHECK_LE(begins.back(), values != nullptr ? values->text.size() : text.size());
    CHECK_EQ(std::ssize(values != nullptr ? column.codes : column.begins),
             rows + (values == nullptr));
    for (const uint32_t code : column.codes) CHECK_LT(int64_t{code}, values->size());
    for (int64_t row = 0; column.is_list && row < rows; ++row) {
      std::string_view items = column.Text(row, text);
      while (!items.empty()) TakeText(&items);
    }
  }
}

// Reads all readable columns. Returns what is wrong.
std::string ReadTable(const TableFile& file, std::mt19937_64& random) {
  std::vector<int> columns;
  std::vector<ColumnForm> forms;
  for (size_t i = 0; i < file.columns.size(); ++i) {
    if (!file.columns[i].is_readable) continue;
    columns.push_back(static_cast<int>(i));
    forms.push_back(static_cast<ColumnForm>(random() % 3));
  }
  std::string wrong, text;
  TextTable table;
  for (size_t group = 0; group < file.groups.size(); ++group) {
    const auto rows = file.Read(static_cast<int>(group), columns, forms, &wrong);
    for (int64_t left = std::min(file.groups[group].rows, kMostRows); wrong.empty() && left > 0;) {
      const int64_t taken = std::min<int64_t>(left, 1 + random() % 50);
      left -= taken;
      const bool skipped = random() % 8 == 0;
      wrong = skipped ? rows->Skip(taken) : rows->Next(taken, &text, &table);
      if (!skipped && wrong.empty()) CheckTable(table, text, taken);
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

int Main() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kTables)) {
    if (entry.path().extension() != ".csv") files.push_back(*ReadFile(entry.path()));
  }
  std::ranges::sort(files);
  const char* const folder = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/damaged_table";
  std::mt19937_64 random(FLAGS_seed);
  int64_t read = 0;
  double longest_s = 0;
  for (int64_t i = 0; i < FLAGS_damages; ++i) {
    std::string bytes = files[random() % files.size()];
    for (uint64_t damages = 1 + random() % 3; damages > 0;) {
      damages -= !bytes.empty() && DamageBytes(random, &bytes).empty() ? 0 : 1;
    }
    std::ofstream(path, std::ios::binary) << bytes;
    const auto begin = std::chrono::steady_clock::now();
    const StatusOr<std::unique_ptr<TableFile>> file = OpenTable(path);
    Status status = file.status();
    if (status.ok()) {
      const std::string wrong = ReadTable(**file, random);
      if (!wrong.empty()) status = TableError(path, wrong);
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    longest_s = std::max(longest_s, taken.count());
    CHECK(status.message().find('\n') == std::string::npos) << status.message();
    CHECK(status.message().find("install_arrow.sh") == std::string::npos) << status.message();
    read += status.ok();
  }
  std::filesystem::remove(path);
  std::printf("damages=%lld read=%lld refused=%lld longest_s=%.1f\n",
              static_cast<long long>(FLAGS_damages), static_cast<long long>(read),
              static_cast<long long>(FLAGS_damages - read), longest_s);
  return 0;
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  elastor::StartLog(argv[0]);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return elastor::Main();
}
