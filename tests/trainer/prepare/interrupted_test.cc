// prepare killed at any moment, out of space, or called again with something else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/text.h"
#include "tests/trainer/prepare/prepare_reference.h"
#include "tests/trainer/prepare/scratch.h"

namespace elastor {
namespace {

using testing::HasSubstr;

constexpr int64_t kFileRows = 50000;  // several chunks of text

const std::string kSeriesSchema =
    std::string(kRawSchema) + "split { train: 0.6 validation: 0.1 test: 0.3 }";

PrepareOptions TwoFileOptions(const std::string& output_name) {
  static const std::string text = RawTexts(0, kFileRows);
  static const size_t cut = text.find('\n', text.size() / 3) + 1;
  static const std::string first = Gzip(text.substr(0, cut)), second = text.substr(cut);
  PrepareOptions options = OptionsOf(
      kSeriesSchema, {WriteScratch("a.gz", first), WriteScratch("b.tsv", second)}, output_name);
  options.segment_bytes = 1;  // every chunk a segment
  return options;
}

void ExpectSameSets(const std::string& a, const std::string& b) {
  for (const char* file : {"train.rows", "validation.rows", "test.rows", "meta.json", "stats.json",
                           "vocabulary/word.tsv"}) {
    EXPECT_FALSE(FileBytes(a + "/" + file).empty()) << file;
    EXPECT_EQ(FileBytes(a + "/" + file), FileBytes(b + "/" + file)) << file;
  }
}

// Runs Prepare in a process of its own, which kills itself at progress report number `calls` (from
// 1). Returns whether it got so far.
bool PrepareKilledAt(PrepareOptions options, int calls) {
  const pid_t child = fork();
  if (child == 0) {
    int left = calls;
    options.progress = [&](const PrepareProgress&) {
      if (--left == 0) raise(SIGKILL);
    };
    _exit(Prepare(options).ok() ? 0 : 1);
  }
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFSIGNALED(state) || WEXITSTATUS(state) == 0);
  return WIFSIGNALED(state);
}

TEST(InterruptedTest, KilledAnywhereThenRunAgainGivesTheSameBytes) {
  PrepareOptions options = TwoFileOptions("whole");
  const auto whole = Prepare(options);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const std::string whole_dir = options.output_dir;
  int kills = 0;
  for (int calls = 1;; calls += calls < 10 ? 1 : 3, ++kills) {
    options.output_dir = ScratchPath("killed");
    std::filesystem::remove_all(options.output_dir + ".partial");
    options.threads = 1 + calls % 3;
    if (!PrepareKilledAt(options, calls)) break;
    EXPECT_FALSE(std::filesystem::exists(options.output_dir));
    options.threads = 1 + calls % 2;
    const auto report = Prepare(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->rows[0], whole->rows[0]);
    EXPECT_EQ(report->text_bytes, whole->text_bytes);
    ExpectSameSets(whole_dir, options.output_dir);
  }
  EXPECT_GT(kills, 8);
}

// Row groups that are done are not read again, nor the rows of one that are done.
TEST(InterruptedTest, KilledWhileTablesAreRead) {
  const std::string folder = "tests/trainer/prepare/tables/";
  PrepareOptions options = OptionsOf(
      "header: true split { train: 0.6 test: 0.4 } fields { name: 'label' type: LABEL }"
      "fields { name: 'user' type: CATEGORICAL } fields { name: 'n' type: NUMERIC }"
      "fields { name: 'tags' type: MULTI_HOT }"
      "history { name: 'before' of: 'cat' by: 'user' max_length: 65536 }"
      "fields { name: 'before' type: SEQUENCE max_length: 1 }"
      "fields { name: 't' type: TIME time_format: YYYY_MM_DD_HH_MM_SS }",
      {folder + "log.parquet", folder + "part-0.parquet"}, "whole");
  options.segment_bytes = 1;
  int calls = 0;
  options.progress = [&](const PrepareProgress&) { ++calls; };
  const auto whole = Prepare(options);
  if (whole.status().message().find("tools/install_arrow.sh") != std::string::npos) {
    GTEST_SKIP() << whole.status().message();
  }
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const std::string whole_dir = options.output_dir;
  options.progress = nullptr;
  EXPECT_GT(calls, 8);
  for (int call = 1; call <= calls; call += 2) {
    options.output_dir = ScratchPath("killed");
    std::filesystem::remove_all(options.output_dir + ".partial");
    options.threads = 1 + call % 3;
    PrepareKilledAt(options, call);
    options.threads = 1 + call % 2;
    const auto report = Prepare(options);
    ASSERT_TRUE(report.ok() || std::filesystem::exists(options.output_dir))
        << report.status().message();
    for (const char* file : {"/train.rows", "/test.rows", "/meta.json"}) {
      EXPECT_EQ(FileBytes(options.output_dir + file), FileBytes(whole_dir + file)) << call << file;
    }
  }
}

// As a kill leaves it that comes right after the set was published.
TEST(InterruptedTest, TheNextCommandClearsWhatToldHowToGoOn) {
  const PrepareOptions options = TwoFileOptions("published");
  ASSERT_TRUE(Prepare(options).ok());
  const std::string begun = options.output_dir + "/begun.json";
  ASSERT_TRUE(WriteFileAtomically(begun, "{}").ok());
  EXPECT_EQ(Prepare(options).status().message(),
            options.output_dir + ": output_dir exists and is not empty");
  EXPECT_FALSE(std::filesystem::exists(begun));
}

// Going on with another memory, and so with other ranges of times.
TEST(InterruptedTest, KilledWhileRowsAreSortedByTime) {
  std::string text;
  for (int i = 0; i < 20000; ++i) {
    text += std::to_string(i % 2) + "\t" + std::to_string(1413849600 + i * 7919 % 20011 / 5) +
            "\tu" + std::to_string(i) + "\n";
  }
  PrepareOptions options = OptionsOf(
      "rows_per_block: 300 sort_by_time: true split { by: TIME train: 0.9 test: 0.1 }"
      "fields { name: 'y' type: LABEL } fields { name: 't' type: TIME }"
      "fields { name: 'u' type: CATEGORICAL }",
      {WriteScratch("in", text)}, "whole");
  options.memory_bytes = 1 << 20;
  int calls = 0;
  options.progress = [&](const PrepareProgress&) { ++calls; };
  ASSERT_TRUE(Prepare(options).ok());
  const std::string whole = options.output_dir;
  options.progress = nullptr;
  EXPECT_GT(calls, 8);
  for (const int left : {1, 3, 6}) {
    options.output_dir = ScratchPath("killed");
    std::filesystem::remove_all(options.output_dir + ".partial");
    options.memory_bytes = 1 << 20;
    ASSERT_TRUE(PrepareKilledAt(options, calls - left));
    options.memory_bytes = left << 20;
    const auto report = Prepare(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    for (const char* file : {"/train.rows", "/test.rows", "/meta.json"}) {
      EXPECT_EQ(FileBytes(options.output_dir + file), FileBytes(whole + file)) << left << file;
    }
  }
}

TEST(InterruptedTest, WhatIsFinishedIsNotDoneAgain) {
  PrepareOptions options = TwoFileOptions("whole");
  int64_t reading_calls = 0, calls = 0;
  options.progress = [&](const PrepareProgress& now) {
    ++calls;
    reading_calls += now.phase == "reading";
  };
  ASSERT_TRUE(Prepare(options).ok());
  EXPECT_GT(reading_calls, 3);
  const std::string whole_dir = options.output_dir;
  options.output_dir = ScratchPath("killed");
  const PrepareOptions killed = options;
  int64_t rows_read = 0, rows_written = 0;
  options.progress = [&](const PrepareProgress& now) {
    (now.phase == "reading" ? rows_read : rows_written) = now.rows;
  };
  // In the last chunk of text: that alone is read again.
  ASSERT_TRUE(PrepareKilledAt(killed, static_cast<int>(reading_calls)));
  ASSERT_TRUE(Prepare(options).ok());
  EXPECT_GT(rows_read, 0);
  EXPECT_LT(rows_read, kFileRows / reading_calls * 2);
  ExpectSameSets(whole_dir, options.output_dir);
  // After a part of the blocks: no text, and not these blocks.
  std::filesystem::remove_all(options.output_dir);
  rows_read = rows_written = 0;
  ASSERT_TRUE(PrepareKilledAt(killed, static_cast<int>(calls - 2)));
  ASSERT_TRUE(Prepare(options).ok());
  EXPECT_EQ(rows_read, 0);
  EXPECT_GT(rows_written, 0);
  EXPECT_LT(rows_written, kFileRows / 2);
  ExpectSameSets(whole_dir, options.output_dir);
}

// A killed run has counted keys that it does not look up again.
TEST(InterruptedTest, ASideTableIsAnInput) {
  const std::string table = WriteScratch("table", "k1\ta\nk2\tb\n");
  std::string text;
  for (int i = 0; i < 200000; ++i)
    text += (i % 4 == 0 ? "0\tk" : "1\tk") + std::to_string(i % 5) + "\n";
  PrepareOptions options =
      OptionsOf("lookup { file: '" + table +
                    "' by: 'key' key: 'k' columns: ['k', 'v'] }"
                    "fields { name: 'y' type: LABEL } fields { name: 'key' type: CATEGORICAL }"
                    "fields { name: 'word' column: 'v' type: CATEGORICAL }",
                {WriteScratch("in", text)}, "whole");
  options.segment_bytes = 1;
  const auto whole = Prepare(options);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  ASSERT_EQ(whole->missing_keys.size(), 1u);
  EXPECT_EQ(whole->missing_keys[0], std::pair("key_in_" + table, int64_t{120000}));
  const std::string whole_dir = options.output_dir;
  options.output_dir = ScratchPath("killed");
  ASSERT_TRUE(PrepareKilledAt(options, 3));
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->missing_keys, whole->missing_keys);
  ASSERT_FALSE(FileBytes(whole_dir + "/train.rows").empty());
  EXPECT_EQ(FileBytes(whole_dir + "/train.rows"), FileBytes(options.output_dir + "/train.rows"));

  std::filesystem::remove_all(options.output_dir);
  ASSERT_TRUE(PrepareKilledAt(options, 3));
  WriteScratch("table", "k1\ta\nk2\tc\n");
  const Status status = Prepare(options).status();
  EXPECT_THAT(status.message(), HasSubstr("an input that has changed since, " + table));
}

// Histories and negatives are made again as long as text is left.
TEST(InterruptedTest, KilledWhileHistoriesAndNegativesAreMade) {
  std::string text;
  for (int i = 0; i < 30000; ++i) {
    text += StrCat(i % 2, "\tu", i * 7919 % 500, "\t", 1413849600 + i / 3, "\ti", i % 97, "\n");
  }
  PrepareOptions options = OptionsOf(
      "fields { name: 'y' type: LABEL } fields { name: 'user' type: GROUP }"
      "fields { name: 't' type: TIME } fields { name: 'item' type: CATEGORICAL }"
      "fields { name: 'items' column: 'h' type: SEQUENCE shares: 'item' }"
      "history { name: 'h' of: 'item' by: 'user' where: 'y = 1' max_length: 20 }"
      "negatives { of: 'item' user: 'user' per_positive: 1 }"
      "split { by: TIME train: 0.5 test: 0.5 }",
      {WriteScratch("in", text)}, "whole");
  options.segment_bytes = 1;
  ASSERT_TRUE(Prepare(options).ok());
  const std::string whole_dir = options.output_dir;
  options.output_dir = ScratchPath("killed");
  int kills = 0;
  for (int calls = 1;; calls += calls < 6 ? 1 : 5, ++kills) {
    std::filesystem::remove_all(options.output_dir);
    options.threads = 1 + calls % 2;
    if (!PrepareKilledAt(options, calls)) break;
    const auto report = Prepare(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    ASSERT_FALSE(FileBytes(whole_dir + "/train.rows").empty());
    for (const char* rows : {"/train.rows", "/test.rows"}) {
      EXPECT_EQ(FileBytes(whole_dir + rows), FileBytes(options.output_dir + rows));
    }
  }
  EXPECT_GT(kills, 5);
}

TEST(InterruptedTest, AnotherSchemaInputOrOptionIsRefusedUntilRestart) {
  PrepareOptions options = TwoFileOptions("out");
  std::filesystem::remove_all(options.output_dir + ".partial");
  ASSERT_TRUE(PrepareKilledAt(options, 3));
  const auto message_of = [](const PrepareOptions& changed) {
    const Status status = Prepare(changed).status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    EXPECT_THAT(status.message(), HasSubstr("--restart"));
    EXPECT_THAT(status.message(), testing::Not(HasSubstr("\n")));
    return status.message();
  };
  PrepareOptions changed = options;
  changed.schema.set_max_bad_rows(5);
  EXPECT_THAT(message_of(changed), HasSubstr("another schema"));
  changed = options;
  changed.inputs.pop_back();
  EXPECT_THAT(message_of(changed), HasSubstr("2 inputs, now 1"));
  changed = options;
  std::swap(changed.inputs[0], changed.inputs[1]);
  EXPECT_THAT(message_of(changed), HasSubstr("other inputs"));
  changed = options;
  changed.vocabulary_from = ScratchPath("none");
  std::filesystem::create_directories(changed.vocabulary_from);
  std::ofstream(changed.vocabulary_from + "/meta.json") << "{}";
  EXPECT_THAT(message_of(changed), HasSubstr("another --vocabulary_from"));
  std::ofstream(options.inputs[1], std::ios::app) << RawTexts(7, 8);
  EXPECT_THAT(message_of(options), HasSubstr("an input that has changed since, "));

  options.restart = true;
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->rows[0] + report->rows[1] + report->rows[2], kFileRows + 1);
}

TEST(InterruptedTest, ADamagedWorkingFileIsNoticed) {
  PrepareOptions options = TwoFileOptions("out");
  int calls = 0;
  options.progress = [&](const PrepareProgress& now) { calls += now.phase == "reading"; };
  ASSERT_TRUE(Prepare(options).ok());
  for (const std::string name : {"rows", "values"}) {
    options.restart = false;
    options.output_dir = ScratchPath("damaged_" + name);
    std::filesystem::remove_all(options.output_dir + ".partial");
    ASSERT_TRUE(PrepareKilledAt(options, calls));
    const std::string file = std::filesystem::path(options.output_dir + ".partial") / "work" / name;
    std::string bytes = FileBytes(file);
    bytes[bytes.size() / 3] ^= 1;
    std::ofstream(file, std::ios::binary) << bytes;
    const Status status = Prepare(options).status();
    EXPECT_EQ(status.code(), StatusCode::kMachine) << name;
    EXPECT_THAT(status.message(), HasSubstr("the working file of " + name + " is damaged"));
    options.restart = true;
    EXPECT_TRUE(Prepare(options).ok());
  }
}

// A killed run whose ids and encoding are complete, in `output_dir`.partial.
PrepareOptions KilledWhileWriting(const std::string& name) {
  PrepareOptions options = TwoFileOptions(name);
  std::filesystem::remove_all(options.output_dir + ".partial");
  int calls = 0;
  options.progress = [&](const PrepareProgress&) { ++calls; };
  EXPECT_TRUE(Prepare(options).ok());
  std::filesystem::remove_all(options.output_dir);
  options.progress = nullptr;
  EXPECT_TRUE(PrepareKilledAt(options, calls - 2));
  EXPECT_TRUE(std::filesystem::exists(options.output_dir + ".partial/work/encoding.json"));
  return options;
}

TEST(InterruptedTest, DamageOfWhatIsMadeOfAllTextIsNoticed) {
  const std::string damages[] = {"flip ids",
                                 "cut ids",
                                 "remove ids",
                                 "digit encoding.json",
                                 "flip ../stats.json",
                                 "flip ../vocabulary/word.tsv",
                                 "remove ../vocabulary/word.tsv"};
  PrepareOptions options = KilledWhileWriting("damaged");
  const std::string partial = options.output_dir + ".partial", kept = ScratchPath("kept");
  std::filesystem::rename(partial, kept);
  for (const std::string& damage : damages) {
    std::filesystem::remove_all(partial);
    std::filesystem::copy(kept, partial, std::filesystem::copy_options::recursive);
    const std::string file = partial + "/work/" + damage.substr(damage.find(' ') + 1);
    std::string bytes = FileBytes(file);
    if (damage[0] == 'f') bytes[bytes.size() / 3] ^= 1;
    if (damage[0] == 'd') bytes[bytes.find("\"scales\"") + 40] ^= 1;
    if (damage[0] == 'c') bytes.resize(bytes.size() / 2);
    std::filesystem::remove(file);
    if (damage[0] != 'r') std::ofstream(file, std::ios::binary) << bytes;
    const Status status = Prepare(options).status();
    EXPECT_EQ(status.code(), StatusCode::kMachine) << damage;
    EXPECT_THAT(status.message(), HasSubstr("begin anew with --restart")) << damage;
  }
  options.restart = true;
  EXPECT_TRUE(Prepare(options).ok());
}

TEST(InterruptedTest, WhateverStandsInBegunJsonIsAnswered) {
  PrepareOptions options = KilledWhileWriting("out");
  const std::string begun = options.output_dir + ".partial/begun.json";
  const std::string text = FileBytes(begun);
  EXPECT_THAT(text, testing::ContainsRegex("\"head\": \"[0-9a-f]{16}\""));
  std::vector<std::string> others = {
      "",
      "[]",
      "3",
      "garbage",
      "{\"version\":\"x\"}",
      "{\"version\":2,\"schema\":3}",
      "{\"version\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}"};
  // The whole identity with one value of another kind each.
  for (const char* key : {"version", "schema", "inputs", "vocabulary_from", "path", "head"}) {
    const size_t at = text.find(std::string("\"") + key + "\":") + strlen(key) + 3;
    for (const char* value : {" {}, \"x\":", " [[3], \"\"], \"x\":", " true, \"x\":"}) {
      others.push_back(text.substr(0, at) + value + text.substr(at));
    }
  }
  for (const std::string& other : others) {
    std::ofstream(begun) << other;
    const Status status = Prepare(options).status();
    EXPECT_EQ(status.code(), StatusCode::kUser) << other;
    EXPECT_THAT(status.message(), HasSubstr("an unfinished run with ")) << other;
  }
}

// Runs Prepare in a process of its own that calls `disturb` at the first progress report of
// `phase`. Returns the wait status, and what it said on stderr.
int PrepareDisturbed(PrepareOptions options, const std::string& phase,
                     const std::function<void()>& disturb, std::string* said) {
  const std::string log = ScratchPath("stderr");
  const pid_t child = fork();
  if (child == 0) {
    EXPECT_NE(freopen(log.c_str(), "w", stderr), nullptr);
    bool done = false;
    options.progress = [&](const PrepareProgress& now) {
      if (!std::exchange(done, done || now.phase == phase) && done) disturb();
    };
    const Status status = Prepare(options).status();
    fprintf(stderr, "%s\n", status.message().c_str());
    fflush(stderr);
    _exit(static_cast<int>(status.code()));
  }
  int state = 0;
  waitpid(child, &state, 0);
  *said = FileBytes(log);
  return state;
}

TEST(InterruptedTest, AWorkingFileCutOffUnderItsReaderEndsWithALine) {
  for (const auto& [phase, file] :
       {std::pair("ranking values", "values"), std::pair("ranking values", "counts"),
        std::pair("writing", "ids")}) {
    PrepareOptions options = TwoFileOptions("out");
    std::filesystem::remove_all(options.output_dir + ".partial");
    const std::string path = options.output_dir + ".partial/work/" + file;
    std::string said;
    const int state = PrepareDisturbed(
        options, phase, [&, &path = path] { std::filesystem::resize_file(path, 0); }, &said);
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 3) << file << ": " << state;
    EXPECT_THAT(said, HasSubstr("work/" + std::string(file) + ": cannot read: it was cut off"));
    EXPECT_FALSE(std::filesystem::exists(options.output_dir));
  }
}

TEST(InterruptedTest, AFolderMovedOrTakenMeanwhileIsTheMachines) {
  for (const std::string phase : {"measuring", "writing"}) {
    PrepareOptions options = TwoFileOptions("moved");
    std::filesystem::remove_all(options.output_dir + ".partial");
    const std::string partial = options.output_dir + ".partial", other = ScratchPath("other");
    std::string said;
    const int state = PrepareDisturbed(
        options, phase, [&] { std::filesystem::rename(partial, other); }, &said);
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 3) << phase << ": " << state;
    EXPECT_THAT(said, HasSubstr("moved.partial: moved or removed while it was written"));
  }
  // What is complete when its name turns out to be taken is kept.
  PrepareOptions options = TwoFileOptions("taken");
  std::filesystem::remove_all(options.output_dir + ".partial");
  std::string said;
  const int state = PrepareDisturbed(
      options, "writing",
      [&] { std::filesystem::create_directories(options.output_dir + "/another"); }, &said);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 2) << state;
  std::filesystem::remove_all(options.output_dir);
  int calls = 0;
  options.progress = [&](const PrepareProgress&) { ++calls; };
  EXPECT_TRUE(Prepare(options).ok());
  EXPECT_EQ(calls, 0);
}

TEST(InterruptedTest, AnInputThatChangesMeanwhileIsAnError) {
  const std::function<void(const std::string&)> kChanges[] = {
      [](const std::string& path) { std::ofstream(path, std::ios::app) << RawTexts(7, 8); },
      [](const std::string& path) { std::filesystem::resize_file(path, 1000); },
      [](const std::string& path) { std::filesystem::remove(path); }};
  for (const auto& change : kChanges) {
    PrepareOptions options = TwoFileOptions("out");
    bool changed = false;
    options.progress = [&](const PrepareProgress&) {
      if (!std::exchange(changed, true)) change(options.inputs[1]);
    };
    const Status status = Prepare(options).status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    EXPECT_THAT(status.message(), HasSubstr("b.tsv: changed while it was read"));
    EXPECT_FALSE(std::filesystem::exists(options.output_dir));
  }
}

// Prepare in a process whose files may not grow beyond `bytes`; the exit code.
int PrepareWithFilesUpTo(const PrepareOptions& options, int64_t bytes) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(static_cast<int>(Prepare(options).status().code()));
  }
  int state = 0;
  waitpid(child, &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

TEST(InterruptedTest, NoSpaceIsAMachineErrorAndTheNextRunGoesOn) {
  PrepareOptions options = TwoFileOptions("whole");
  ASSERT_TRUE(Prepare(options).ok());
  const std::string whole_dir = options.output_dir;
  int refused = 0;
  for (int64_t bytes = 300; bytes < (8 << 20); bytes *= 2) {
    options.output_dir = ScratchPath("full");
    std::filesystem::remove_all(options.output_dir + ".partial");
    const int code = PrepareWithFilesUpTo(options, bytes);
    if (code == 0) continue;
    EXPECT_EQ(code, 3) << bytes;
    EXPECT_FALSE(std::filesystem::exists(options.output_dir));
    ++refused;
    const auto report = Prepare(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    ExpectSameSets(whole_dir, options.output_dir);
  }
  EXPECT_GT(refused, 8);
}

// What the program itself adds: standard streams. `command` follows a complete command line.
int RunProgram(const std::string& command, std::string* said) {
  const std::string schema = WriteScratch("schema", std::string(kRawSchema));
  const std::string input = WriteScratch("in.tsv", RawTexts(0, 50));
  const std::string log = ScratchPath("stderr");
  const std::string line = std::string(std::getenv("PREPARE")) + " --schema=" + schema +
                           " --input=" + input + " --output_dir=" + ScratchPath("set") + " 2>" +
                           log + " " + command;
  const int state = std::system(("bash -c 'set -o pipefail; " + line + "'").c_str());
  *said = FileBytes(log);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

TEST(ProgramTest, AReportThatCannotBeWrittenIsAnError) {
  std::string said;
  EXPECT_EQ(RunProgram(">/dev/full", &said), 3);
  EXPECT_THAT(said, HasSubstr("prepare: stdout: cannot write: No space left on device\n"));
  EXPECT_EQ(RunProgram("--help >/dev/full", &said), 3);
  EXPECT_THAT(said, HasSubstr("prepare: stdout: cannot write: No space left on device\n"));
}

TEST(ProgramTest, AReaderWhoLeavesAndClosedStreamsDoNoHarm) {
  std::string said;
  EXPECT_EQ(RunProgram("| true", &said), 0);
  EXPECT_EQ(RunProgram(">&- <&-", &said), 0);
  EXPECT_EQ(RunProgram("2>&- >&-", &said), 0);
}

TEST(ProgramTest, HelpAnswers) {
  std::string said;
  EXPECT_EQ(RunProgram("-h | grep -q vocabulary_from", &said), 0);
  EXPECT_EQ(RunProgram("--help | grep -q vocabulary_from", &said), 0);
}

// Runs prepare by a shell with `feed` for its stdin; its output, exit code last.
std::string PrepareFed(const std::string& feed, const PrepareOptions& options,
                       const std::string& flags) {
  const std::string command =
      feed + std::getenv("PREPARE") + " --schema=" + WriteScratch("schema", kSeriesSchema) +
      " --output_dir=" + options.output_dir + " " + flags + " 2>&1; echo $?";
  FILE* shell = popen(command.c_str(), "r");
  std::string output;
  for (int c; (c = std::fgetc(shell)) != EOF;) output += static_cast<char>(c);
  pclose(shell);
  return output;
}

TEST(InterruptedTest, StdinIsAnInputLikeOthers) {
  PrepareOptions options = TwoFileOptions("files");
  ASSERT_TRUE(Prepare(options).ok());
  const std::string files = options.output_dir, a = options.inputs[0], b = options.inputs[1];
  const std::string both = WriteScratch("both", Zstd(RawTexts(0, kFileRows)));
  for (const std::string& feed :
       {"(zcat " + a + "; cat " + b + ") | ", "cat " + both + " | ", "< " + both + " "}) {
    options.output_dir = ScratchPath("fed");
    const std::string output = PrepareFed(feed, options, "--input=-");
    EXPECT_TRUE(output.ends_with("\n0\n")) << feed << output;
    ExpectSameSets(files, options.output_dir);
    EXPECT_FALSE(std::filesystem::exists(options.output_dir + ".partial.stdin"));
  }
  // A killed run leaves a working folder; what a pipe brings anew is another input.
  options.output_dir = ScratchPath("killed");
  ASSERT_TRUE(PrepareKilledAt(options, 3));
  EXPECT_TRUE(PrepareFed("cat " + both + " | ", options, "--input=-").ends_with("\n0\n"));
  ExpectSameSets(files, options.output_dir);
  options.output_dir = ScratchPath("mistakes");
  EXPECT_THAT(PrepareFed("printf '0\\t1\\n' | ", options, "--input=-"),
              HasSubstr("prepare: /dev/stdin:1: found 2 columns, expected 6; 1 bad rows so far"));
  EXPECT_THAT(PrepareFed("printf '' | ", options, "--input=-,-"),
              HasSubstr("/dev/stdin: stands twice in --input"));
  EXPECT_THAT(PrepareFed("printf '' | ", options, "--input=-"),
              HasSubstr("/dev/stdin: no rows found\n2\n"));
}

}  // namespace
}  // namespace elastor
