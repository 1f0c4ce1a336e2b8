#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "gflags/gflags.h"
#include "trainer/modes/flags.h"
#include "trainer/modes/invocation.h"
#include "trainer/modes/mode_rows.h"

namespace elastor {
namespace {

// The rows of the table, and the one that --input chooses.
std::vector<const Mode*> Rows() {
  std::vector<const Mode*> rows(Modes().begin(), Modes().end());
  rows.push_back(&kScoreRows);
  return rows;
}

std::set<std::string> FlagsOf(const Mode& mode) { return {mode.flags.begin(), mode.flags.end()}; }

std::string HelpOfFlag(const std::string& flag) {
  gflags::CommandLineFlagInfo info;
  EXPECT_TRUE(gflags::GetCommandLineFlagInfo(flag.c_str(), &info)) << flag;
  EXPECT_TRUE(info.filename.ends_with(kFlagsFile)) << flag;
  return info.description;
}

Status StatusOf(const std::vector<std::string>& arguments) {
  const gflags::FlagSaver saver;
  return ReadInvocation(arguments).status();
}

TEST(ModesTest, RowsAreWhole) {
  std::set<std::string> names;
  for (const Mode* mode : Modes()) {
    EXPECT_TRUE(names.insert(mode->name).second) << mode->name << ": stands twice";
  }
  EXPECT_EQ(Modes().front(), &kTrain) << "the first is the one without --mode";
  for (const Mode* mode : Rows()) {
    EXPECT_NE(mode->run, nullptr) << mode->name;
    const std::string help = mode == &kScoreRows ? "rows" : mode->help;
    EXPECT_FALSE(help.empty() || help.ends_with('.') || help.find('\n') != help.npos)
        << mode->name << ": " << help;
    // A folder alone tells no experiment that could be overridden but for the job's settings.
    EXPECT_TRUE(mode->parallel.empty() || mode->source == Mode::Source::kModel) << mode->name;
  }
}

TEST(ModesTest, RowsNameFlagsAndSettingsThatThereAreOnceEach) {
  const auto* parallel = ParallelConfig::descriptor();
  for (const Mode* mode : Rows()) {
    EXPECT_EQ(FlagsOf(*mode).size(), mode->flags.size()) << mode->name << ": a flag stands twice";
    for (const char* flag : mode->flags) EXPECT_NE(HelpOfFlag(flag), "") << flag;
    const std::set<std::string> settings(mode->parallel.begin(), mode->parallel.end());
    EXPECT_EQ(settings.size(), mode->parallel.size()) << mode->name << ": a setting stands twice";
    for (const std::string& setting : settings) {
      EXPECT_NE(parallel->FindFieldByName(setting), nullptr) << mode->name << ": " << setting;
    }
  }
}

// Help and rows tell the same.
TEST(ModesTest, HelpOfAFlagNamesItsModes) {
  std::string models;
  for (const Mode* mode : Modes()) {
    if (mode->model == Mode::Model::kNone) continue;
    models += (models.empty() ? "" : ", ") + std::string(mode->name);
  }
  const size_t last = models.rfind(", ");
  models.replace(last, 2, " or ");
  EXPECT_TRUE(HelpOfFlag("model").starts_with("with --mode=" + models + ":")) << models;
  for (const Mode* mode : Rows()) {
    for (const std::string flag : {"per_sample", "kernels", "rows", "input"}) {
      const bool named = HelpOfFlag(flag).find(mode->name) != std::string::npos;
      EXPECT_TRUE(named || !FlagsOf(*mode).contains(flag)) << mode->name << " " << flag;
    }
  }
}

// The check of flags reads the rows.
TEST(ModesTest, AModeTakesNoFlagThatItsRowDoesNotName) {
  const std::vector<std::vector<std::string>> flags = {
      {"resume"},     {"predictions"}, {"per_sample"},  {"kernels"},
      {"rows", "=5"}, {"supervise"},   {"tensorboard"}, {"max_bad_rows", "=5"}};
  for (const Mode* mode : Modes()) {
    for (const std::vector<std::string>& flag : flags) {
      const std::string argument = "--" + flag[0] + (flag.size() == 1 ? "" : flag[1]);
      const Status status =
          StatusOf({std::string("--mode=") + mode->name, argument, "--experiment=missing",
                    "--output_dir=" + testing::TempDir() + "/none", "--model=missing"});
      ASSERT_FALSE(status.ok());  // the files are missing
      EXPECT_EQ(status.message().starts_with("--" + flag[0]), !FlagsOf(*mode).contains(flag[0]))
          << mode->name << ": " << status.message();
    }
  }
}

TEST(ModesTest, LogitsStandBesidePredictions) {
  const std::vector<std::string> train = {"--experiment=missing", "--output_dir=none", "--logits"};
  EXPECT_EQ(StatusOf(train).message(),
            "--logits: a column of predictions.csv; expected --predictions beside it");
  EXPECT_EQ(StatusOf({"--mode=evaluate", "--model=m", "--output_dir=none", "--logits"}).message(),
            "--logits: only --mode=train and predict writes predictions; found --mode=evaluate");
  EXPECT_TRUE(StatusOf({"--mode=predict", "--input=rows.tsv", "--model=m", "--logits"}).ok());
}

TEST(ModesTest, RawRowsAreScoredByThePartOfPredictThatNeedsNoData) {
  const std::string message =
      StatusOf({"--mode=predict", "--input=rows.tsv", "--experiment=e", "--model=m"}).message();
  EXPECT_TRUE(message.starts_with("--experiment: --input scores")) << message;
  EXPECT_TRUE(
      StatusOf({"--mode=predict", "--input=rows.tsv", "--model=m", "--max_bad_rows=5"}).ok());
  EXPECT_EQ(StatusOf({"--mode=evaluate", "--input=rows.tsv", "--model=m"}).message(),
            "--input: only --mode=predict scores raw rows; found --mode=evaluate");
}

}  // namespace
}  // namespace elastor
