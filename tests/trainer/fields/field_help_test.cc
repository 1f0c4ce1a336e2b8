#include "trainer/fields/field_help.h"

#include <sstream>
#include <string>

#include "configs/proto/experiment.pb.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

std::string Help(const std::string& topic, const std::string& message = "Experiment") {
  const StatusOr<std::string> help = HelpOn(message, topic);
  return help.ok() ? help.value() : help.status().message();
}

TEST(FieldHelp, SaysOfAFieldWhatItMayHold) {
  const std::string text =
      "optimizer.learning_rate  number, default 1e-3, a positive number\n"
      "    Learning rate of dense weights and embeddings; training.schedule scales it.\n";
  EXPECT_EQ(Help("optimizer.learning_rate"), text);
  EXPECT_EQ(Help("Learning_Rate"), text);
  EXPECT_TRUE(Help("training.log_every_steps").find(", operational\n") != std::string::npos);
  EXPECT_TRUE(Help("model.rank_elastor.tokens").find("integer, must be given, ") !=
              std::string::npos);
}

TEST(FieldHelp, ListsAGroupsFieldsAndAFieldsNames) {
  const std::string group = Help("optimizer");
  EXPECT_TRUE(group.starts_with("optimizer  group\n"));
  EXPECT_TRUE(group.find("\noptimizer.sparse  name, default LAZY_ADAM\n") != group.npos) << group;
  EXPECT_TRUE(group.find("      DENSE_ADAM: every row at every step, ") != group.npos) << group;
  EXPECT_EQ(Help("lazy_adam"), Help("optimizer.sparse"));
  EXPECT_EQ(Help("RANK_MIXER"), Help("model.rank_mixer"));
}

TEST(FieldHelp, SaysOnceWhatIsTheSameInSeveralModels) {
  const std::string text = Help("model.dropout");
  EXPECT_EQ(text, Help("dropout"));
  EXPECT_TRUE(text.starts_with("model.rank_elastor.dropout\nmodel.rank_mixer.dropout  number, "))
      << text;
}

TEST(FieldHelp, ReadsTheOtherTexts) {
  EXPECT_TRUE(Help("resources", "Sweep").find("resources.threads  integer") != std::string::npos);
  EXPECT_TRUE(Help("base.optimizer", "Sweep").starts_with("base.optimizer  group\n"));
  EXPECT_TRUE(Help("LOG2_BUCKET", "Schema").starts_with("fields.transform  name"));
}

TEST(FieldHelp, FitsATerminal) {
  for (const char* topic : {"data", "model.rank_elastor", "optimizer", "training", "parallel"}) {
    std::istringstream lines(Help(topic));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
  std::istringstream lines(ListModels());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(FieldHelp, NamesTheNearestTopic) {
  EXPECT_EQ(Help("lerning_rate"),
            "--help=lerning_rate: no field, group or name; the groups: data, model, embedding, "
            "optimizer, training, spectrum, parallel, evaluation, checkpoint, task, publish; did "
            "you mean "
            "'learning_rate'?");
}

TEST(ListModels, SaysWhatEveryModelIs) {
  std::istringstream lines(ListModels());
  int models = 0, groups = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    groups += line[0] != ' ';
    if (!line.starts_with("  ") || line[2] == ' ') continue;
    EXPECT_GT(line.size(), 20u) << line;
    ++models;
  }
  EXPECT_EQ(models, ModelConfig::descriptor()->FindOneofByName("model")->field_count() +
                        SequencesConfig::descriptor()->FindOneofByName("encoder")->field_count());
  EXPECT_EQ(groups, 6);
}

}  // namespace
}  // namespace elastor
