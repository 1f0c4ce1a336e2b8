#include "trainer/experiment/overrides.h"

#include <string>

#include "configs/proto/experiment.pb.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

TEST(OverridesTest, SetsEveryTypeOfField) {
  Experiment experiment;
  experiment.mutable_model()->add_hidden(7);
  for (const char* assignment :
       {"data.path=a/b=c", "training.max_steps=-5000000000", "model.tokens=15",
        "data.order=file_order", "optimizer.learning_rate=2.5e-3", "parallel.overlap=true",
        "parallel.reproducible=0", "model.hidden=400,300", "model.feed_forward.kind=GATED_SUM"}) {
    const Status status = ApplyOverride(assignment, &experiment);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(experiment.data().path(), "a/b=c");
  EXPECT_EQ(experiment.training().max_steps(), -5000000000);
  EXPECT_EQ(experiment.model().tokens(), 15);
  EXPECT_EQ(experiment.data().order(), DataConfig::FILE_ORDER);
  EXPECT_EQ(experiment.optimizer().learning_rate(), 2.5e-3);
  EXPECT_TRUE(experiment.parallel().overlap());
  EXPECT_TRUE(experiment.parallel().has_reproducible());
  EXPECT_FALSE(experiment.parallel().reproducible());
  ASSERT_EQ(experiment.model().hidden_size(), 2);
  EXPECT_EQ(experiment.model().hidden(0), 400);
  EXPECT_EQ(experiment.model().hidden(1), 300);
  EXPECT_EQ(experiment.model().feed_forward().kind(), FeedForwardConfig::GATED_SUM);
}

TEST(OverridesTest, AnEmptyListClears) {
  Experiment experiment;
  experiment.mutable_model()->add_hidden(7);
  EXPECT_TRUE(ApplyOverride("model.hidden=", &experiment).ok());
  EXPECT_EQ(experiment.model().hidden_size(), 0);
}

struct Mistake {
  const char* assignment;
  const char* message;
};

TEST(OverridesTest, MistakesAreToldInOneLineAndChangeNothing) {
  const Mistake mistakes[] = {
      {"training.steps=3",
       "--set=training.steps=3: TrainingConfig has no field 'steps'; it has: seed, batch_size, "
       "epochs, max_steps, eval_every_steps, log_every_steps, eval_batch_size, schedule, monitor, "
       "warm_start, precision"},
      {"speed=3",
       "--set=speed=3: Experiment has no field 'speed'; it has: name, data, model, embedding, "
       "optimizer, training, spectrum, parallel, evaluation, checkpoint"},
      {"model.tokens=many", "--set=model.tokens=many: expected a 32-bit integer, found 'many'"},
      {"model.tokens=3000000000",
       "--set=model.tokens=3000000000: expected a 32-bit integer, found '3000000000'"},
      {"training.seed=1.5", "--set=training.seed=1.5: expected a 64-bit integer, found '1.5'"},
      {"optimizer.beta1=0.9x", "--set=optimizer.beta1=0.9x: expected a number, found '0.9x'"},
      {"parallel.overlap=yes", "--set=parallel.overlap=yes: expected true or false, found 'yes'"},
      {"model.kind=DCN",
       "--set=model.kind=DCN: expected one of RANK_ELASTOR, RANK_MIXER, MLP, found 'DCN'"},
      {"model.hidden=4,,5", "--set=model.hidden=4,,5: expected a 32-bit integer, found ''"},
      {"model=MLP",
       "--set=model=MLP: model is a group of fields; set one of: kind, convention, tokens, "
       "token_width, blocks, tokenizer, mixing, feed_forward, head, dropout, hidden, batch_norm"},
      {"model.tokens.x=1", "--set=model.tokens.x=1: tokens has no fields of its own"},
      {"model.tokens", "--set=model.tokens: expected path.to.field=value"},
      {"=4", "--set==4: expected path.to.field=value"},
  };
  for (const Mistake& mistake : mistakes) {
    Experiment experiment;
    experiment.mutable_model()->set_tokens(15);
    experiment.mutable_model()->add_hidden(7);
    const std::string before = experiment.SerializeAsString();
    const Status status = ApplyOverride(mistake.assignment, &experiment);
    EXPECT_EQ(status.code(), StatusCode::kUser);
    EXPECT_EQ(status.message(), mistake.message);
    EXPECT_EQ(experiment.SerializeAsString(), before) << mistake.assignment;
  }
}

}  // namespace
}  // namespace elastor
