#include "trainer/experiment/overrides.h"

#include <cctype>
#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

using ::testing::ElementsAre;

TEST(OverridesTest, SetsEveryTypeOfField) {
  Experiment experiment;
  experiment.mutable_model()->mutable_mlp()->add_hidden(7);
  for (const char* assignment :
       {"data.path=a/b=c", "training.max_steps=-5000000000", "embedding.width=15",
        "data.order=file_order", "optimizer.learning_rate=2.5e-3", "parallel.overlap=true",
        "parallel.reproducible=0", "model.mlp.hidden=400,300", "optimizer.dense=ADAGRAD",
        "evaluation.slice_by=a,b"}) {
    const Status status = ApplyOverride(assignment, &experiment);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(experiment.data().path(), "a/b=c");
  EXPECT_EQ(experiment.training().max_steps(), -5000000000);
  EXPECT_EQ(experiment.embedding().width(), 15);
  EXPECT_EQ(experiment.data().order(), DataConfig::FILE_ORDER);
  EXPECT_EQ(experiment.optimizer().learning_rate(), 2.5e-3);
  EXPECT_EQ(experiment.optimizer().dense(), OptimizerConfig::ADAGRAD);
  EXPECT_TRUE(experiment.parallel().overlap());
  EXPECT_TRUE(experiment.parallel().has_reproducible());
  EXPECT_FALSE(experiment.parallel().reproducible());
  EXPECT_THAT(experiment.model().mlp().hidden(), ElementsAre(400, 300));
  EXPECT_THAT(experiment.evaluation().slice_by(), ElementsAre("a", "b"));
}

TEST(OverridesTest, AnEmptyListClears) {
  Experiment experiment;
  experiment.mutable_model()->mutable_mlp()->add_hidden(7);
  EXPECT_TRUE(ApplyOverride("model.mlp.hidden=", &experiment).ok());
  EXPECT_EQ(experiment.model().mlp().hidden_size(), 0);
}

// The model after overrides of RankElastor with 15 tokens of 26, a hidden head and dropout.
std::string ModelAfter(const std::vector<std::string>& overrides) {
  Experiment experiment;
  TokenModelConfig* model = experiment.mutable_model()->mutable_rank_elastor();
  model->set_tokens(15);
  model->set_token_width(26);
  model->mutable_mixing()->set_block_width(2);
  model->mutable_head()->add_hidden(7);
  model->set_dropout(0.25);
  const Status status = ApplyOverrides(overrides, &experiment);
  return status.ok() ? experiment.model().ShortDebugString() : status.message();
}

TEST(OverridesTest, AFieldOfTheModelNeedsNotNameTheModel) {
  EXPECT_EQ(ModelAfter({"model.tokens=13", "model.head.hidden=8,9", "model.dropout=0"}),
            "rank_elastor { tokens: 13 token_width: 26 mixing { block_width: 2 } "
            "head { hidden: 8 hidden: 9 } dropout: 0 }");
  EXPECT_EQ(ModelAfter({"model.tokens=13"}), ModelAfter({"model.rank_elastor.tokens=13"}));
  // 0 is a value too; an empty list asks for the default.
  EXPECT_EQ(
      ModelAfter({"model.blocks=0", "model.head.hidden="}),
      "rank_elastor { tokens: 15 token_width: 26 blocks: 0 mixing { block_width: 2 } head { } "
      "dropout: 0.25 }");
}

TEST(OverridesTest, AKindChoosesAModelThatKeepsWhatBothHave) {
  EXPECT_EQ(ModelAfter({"model.kind=rank_elastor"}), ModelAfter({}));
  EXPECT_EQ(ModelAfter({"model.kind=RANK_MIXER"}),
            "rank_mixer { tokens: 15 token_width: 26 head { hidden: 7 } dropout: 0.25 }");
  EXPECT_EQ(ModelAfter({"model.kind=MLP"}), "mlp { dropout: 0.25 }");
  EXPECT_THAT(ModelAfter({"model.kind=DIN"}),
              ::testing::EndsWith("found 'DIN'; it encodes sequences: model.sequences"));
  // The kind comes first, wherever it stands.
  EXPECT_EQ(ModelAfter({"model.hidden=3", "model.dropout=0.5", "model.kind=MLP"}),
            "mlp { hidden: 3 dropout: 0.5 }");
}

TEST(OverridesTest, WithoutAModelFieldsAreRankElastors) {
  Experiment experiment;
  EXPECT_TRUE(ApplyOverride("model.tokens=13", &experiment).ok());
  EXPECT_EQ(experiment.model().rank_elastor().tokens(), 13);
  experiment.Clear();
  EXPECT_TRUE(ApplyOverride("model.mlp.hidden=13", &experiment).ok());
  EXPECT_TRUE(experiment.model().has_mlp());
}

struct WrongAssignment {
  const char* assignment;
  std::string message;
};

// The fields of the oneof of models, "rank_elastor, rank_mixer, ...".
std::string ModelNames() {
  std::string names;
  const auto* models = ModelConfig::descriptor()->FindOneofByName("model");
  for (int i = 0; i < models->field_count(); ++i) {
    names += (i > 0 ? ", " : "") + models->field(i)->name();
  }
  return names;
}

std::string UpperCase(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(c));
  return text;
}

TEST(OverridesTest, MistakesAreToldInOneLineAndChangeNothing) {
  const WrongAssignment mistakes[] = {
      {"training.steps=3",
       "--set=training.steps=3: TrainingConfig has no field 'steps'; it has: seed, batch_size, "
       "epochs, max_steps, eval_every_steps, log_every_steps, eval_batch_size, schedule, monitor, "
       "warm_start, precision, "
       "continued_from"},
      {"speed=3",
       "--set=speed=3: Experiment has no field 'speed'; it has: name, data, model, embedding, "
       "optimizer, training, spectrum, parallel, evaluation, checkpoint, task, publish"},
      {"model.tokens=many", "--set=model.tokens=many: expected a 32-bit integer, found 'many'"},
      {"model.tokens=3000000000",
       "--set=model.tokens=3000000000: expected a 32-bit integer, found '3000000000'"},
      {"training.seed=1.5", "--set=training.seed=1.5: expected a 64-bit integer, found '1.5'"},
      {"optimizer.beta1=0.9x", "--set=optimizer.beta1=0.9x: expected a number, found '0.9x'"},
      {"parallel.overlap=yes", "--set=parallel.overlap=yes: expected true or false, found 'yes'"},
      {"model.kind=NONE",
       "--set=model.kind=NONE: expected one of " + UpperCase(ModelNames()) + ", found 'NONE'"},
      {"model.head.hidden=4,,5",
       "--set=model.head.hidden=4,,5: expected a 32-bit integer, found ''"},
      {"model=MLP",
       "--set=model=MLP: model is a group of fields; set one of: " + ModelNames() + ", sequences"},
      {"model.sequences.field=x",
       "--set=model.sequences.field=x: SequencesConfig has no field 'field'; it has: fields, "
       "targets, max_length, mean, din, hstu, bst, tokens; did you mean 'fields'?"},
      // Three that people make: a slip of the key, a field of another model, another model's path.
      {"training.bach_size=3",
       "--set=training.bach_size=3: TrainingConfig has no field 'bach_size'; it has: seed, "
       "batch_size, epochs, max_steps, eval_every_steps, log_every_steps, eval_batch_size, "
       "schedule, monitor, warm_start, precision, continued_from; did you mean 'batch_size'?"},
      {"model.hidden=400",
       "--set=model.hidden=400: TokenModelConfig has no field 'hidden'; it has: convention, "
       "tokens, token_width, blocks, tokenizer, mixing, feed_forward, head, dropout, iterations, "
       "recompute"},
      {"model.mlp.hidden=400",
       "--set=model.mlp.hidden=400: the model is rank_elastor; --set=model.kind=MLP chooses mlp"},
      {"optimizer.sparse=LAZYADAM",
       "--set=optimizer.sparse=LAZYADAM: expected one of LAZY_ADAM, DENSE_ADAM, ROW_WISE_ADAGRAD, "
       "SPARSE_ADAGRAD, SPARSE_SGD, found 'LAZYADAM'; did you mean 'LAZY_ADAM'?"},
      {"model.tokens.x=1", "--set=model.tokens.x=1: tokens has no fields of its own"},
      {"model.tokens", "--set=model.tokens: expected path.to.field=value"},
      {"=4", "--set==4: expected path.to.field=value"},
  };
  for (const WrongAssignment& mistake : mistakes) {
    Experiment experiment;
    experiment.mutable_model()->mutable_rank_elastor()->set_tokens(15);
    const std::string before = experiment.SerializeAsString();
    const Status status = ApplyOverride(mistake.assignment, &experiment);
    EXPECT_EQ(status.code(), StatusCode::kUser);
    EXPECT_EQ(status.message(), mistake.message);
    EXPECT_EQ(experiment.SerializeAsString(), before) << mistake.assignment;
  }
}

}  // namespace
}  // namespace elastor
