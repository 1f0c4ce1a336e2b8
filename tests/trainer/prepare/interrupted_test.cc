// prepare killed at any moment, out of space, or called again with something else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/trainer/prepare/prepare_reference.h"
#include "tests/trainer/prepare/scratch.h"

namespace elastor {
namespace {

using testing::HasSubstr;

constexpr int64_t kRows = 50000;  // several chunks of text

PrepareOptions SeriesOptions(const std::string& output_name) {
  const std::string text = RawTexts(0, kRows);
  const size_t cut = text.find('\n', text.size() / 3) + 1;
  PrepareOptions options = OptionsOf(
      std::string(kRawSchema) + "split { train: 0.6 validation: 0.1 test: 0.3 }",
      {WriteScratch("a.gz", Gzip(text.substr(0, cut))), WriteScratch("b.tsv", text.substr(cut))},
      output_name);
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
  PrepareOptions options = SeriesOptions("whole");
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

TEST(InterruptedTest, WhatIsFinishedIsNotDoneAgain) {
  PrepareOptions options = SeriesOptions("whole");
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
  EXPECT_LT(rows_read, kRows / reading_calls * 2);
  ExpectSameSets(whole_dir, options.output_dir);
  // After a part of the blocks: no text, and not these blocks.
  std::filesystem::remove_all(options.output_dir);
  rows_read = rows_written = 0;
  ASSERT_TRUE(PrepareKilledAt(killed, static_cast<int>(calls - 2)));
  ASSERT_TRUE(Prepare(options).ok());
  EXPECT_EQ(rows_read, 0);
  EXPECT_GT(rows_written, 0);
  EXPECT_LT(rows_written, kRows / 2);
  ExpectSameSets(whole_dir, options.output_dir);
}

TEST(InterruptedTest, AnotherSchemaInputOrOptionIsRefusedUntilRestart) {
  PrepareOptions options = SeriesOptions("out");
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
  EXPECT_EQ(report->rows[0] + report->rows[1] + report->rows[2], kRows + 1);
}

TEST(InterruptedTest, ADamagedWorkingFileIsNoticed) {
  PrepareOptions options = SeriesOptions("out");
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

TEST(InterruptedTest, AnInputThatChangesMeanwhileIsAnError) {
  PrepareOptions options = SeriesOptions("out");
  bool changed = false;
  options.progress = [&](const PrepareProgress&) {
    if (!changed) std::ofstream(options.inputs[1], std::ios::app) << RawTexts(7, 8);
    changed = true;
  };
  const Status status = Prepare(options).status();
  EXPECT_EQ(status.code(), StatusCode::kUser);
  EXPECT_THAT(status.message(), HasSubstr("b.tsv: changed while it was read"));
  EXPECT_FALSE(std::filesystem::exists(options.output_dir));
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
  PrepareOptions options = SeriesOptions("whole");
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

}  // namespace
}  // namespace elastor
