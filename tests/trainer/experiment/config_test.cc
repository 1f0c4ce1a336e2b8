#include "trainer/experiment/config.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/text.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/overrides.h"
#include "trainer/experiment/sequences.h"
#include "xxhash.h"

namespace elastor {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The paper's Criteo model.
Experiment Given(const std::vector<std::string>& overrides) {
  Experiment experiment;
  experiment.mutable_model()->mutable_rank_elastor()->set_tokens(15);
  experiment.mutable_model()->mutable_rank_elastor()->set_token_width(26);
  experiment.mutable_embedding()->set_width(20);
  experiment.mutable_training()->set_batch_size(4096);
  const Status status = ApplyOverrides(overrides, &experiment);
  EXPECT_TRUE(status.ok()) << status.message();
  return experiment;
}

Experiment Resolved(const std::vector<std::string>& overrides = {}) {
  Experiment experiment = Given(overrides);
  ResolveDefaults(&experiment);
  return experiment;
}

std::string WriteExperiment(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  return path;
}

TEST(ConfigTest, DefaultsOfThePaper) {
  const Experiment experiment = Resolved();
  const TokenModelConfig& model = experiment.model().rank_elastor();
  EXPECT_TRUE(ValidateExperiment(experiment).ok());
  EXPECT_EQ(experiment.name(), "RANK_ELASTOR");
  EXPECT_EQ(model.blocks(), 2);
  EXPECT_EQ(model.tokenizer().kind(), TokenizerConfig::GROUPED);
  EXPECT_EQ(model.tokenizer().hidden(), 0);
  EXPECT_EQ(model.tokenizer().norm(), TokenizerConfig::NORM_NONE);
  EXPECT_EQ(model.mixing().block_width(), 1);
  EXPECT_EQ(model.feed_forward().kind(), FeedForwardConfig::GATED);
  EXPECT_EQ(model.feed_forward().activation(), FeedForwardConfig::GELU);
  EXPECT_EQ(model.feed_forward().expansion(), 3);
  EXPECT_EQ(model.head().kind(), HeadConfig::FLATTEN_LINEAR);
  EXPECT_EQ(experiment.optimizer().learning_rate(), 1e-3);
  EXPECT_EQ(experiment.embedding().init_stddev(), 1e-4);
  EXPECT_EQ(experiment.training().eval_batch_size(), 4096);
  EXPECT_EQ(experiment.parallel().virtual_shards(), 16);
  EXPECT_EQ(experiment.parallel().threads(), 1);
  EXPECT_TRUE(experiment.parallel().reproducible());
}

TEST(ConfigTest, DefaultsOfThePublicCode) {
  const Experiment experiment = Resolved({"model.convention=PUBLIC_CODE"});
  const TokenModelConfig& model = experiment.model().rank_elastor();
  EXPECT_EQ(model.tokenizer().kind(), TokenizerConfig::SHARED);
  EXPECT_EQ(model.tokenizer().hidden(), 500);
  EXPECT_EQ(model.tokenizer().norm(), TokenizerConfig::NORM_RMS);
  EXPECT_EQ(model.feed_forward().kind(), FeedForwardConfig::GATED_SUM);
  EXPECT_EQ(model.head().kind(), HeadConfig::FLATTEN_MLP);
  ASSERT_EQ(model.head().hidden_size(), 1);
  EXPECT_EQ(model.head().hidden(0), 2 * 15 * 26);
}

TEST(ConfigTest, RankMixerDefaults) {
  const Experiment experiment = Resolved({"model.kind=RANK_MIXER", "model.tokens=26"});
  EXPECT_TRUE(ValidateExperiment(experiment).ok());
  EXPECT_FALSE(experiment.model().rank_mixer().has_mixing());
  EXPECT_EQ(experiment.model().rank_mixer().feed_forward().kind(), FeedForwardConfig::TWO_LAYER);
  EXPECT_EQ(experiment.model().rank_mixer().feed_forward().expansion(), 1);
}

TEST(ConfigTest, AnExplicitTokenizerStaysLinear) {
  const Experiment experiment =
      Resolved({"model.convention=PUBLIC_CODE", "model.tokenizer.kind=FULL"});
  const TokenModelConfig& model = experiment.model().rank_elastor();
  EXPECT_EQ(model.tokenizer().kind(), TokenizerConfig::FULL);
  EXPECT_EQ(model.tokenizer().hidden(), 0);
}

TEST(ConfigTest, MlpDefaults) {
  const Experiment experiment = Resolved({"model.kind=MLP"});
  EXPECT_TRUE(ValidateExperiment(experiment).ok());
  EXPECT_EQ(experiment.name(), "MLP");
  EXPECT_THAT(experiment.model().mlp().hidden(), testing::ElementsAre(400, 400, 400));
  EXPECT_FALSE(experiment.model().mlp().batch_norm());
}

// What an experiment learns of data with the labels click, like and buy.
TEST(ConfigTest, Task) {
  DatasetInfo data;
  data.labels = {{"click"}, {"like"}, {"buy"}};
  EXPECT_EQ(MakeTask(Resolved({}), data).status().message(),
            "data: no field; expected one at least");
  data.numeric = {{"age"}};
  const auto task_of = [&](const std::vector<std::string>& overrides) {
    return MakeTask(Resolved(overrides), data);
  };
  const Task all = task_of({}).value();
  EXPECT_EQ(all.labels(), 3);
  ASSERT_EQ(all.outputs(), 3);
  EXPECT_EQ(all.learned[2].name, "buy");
  EXPECT_EQ(all.learned[2].column, 2);
  EXPECT_EQ(all.learned[2].weight, 1);
  const Experiment chosen =
      Resolved({"task.labels=buy,click", "task.weights=0.5,2", "training.monitor.label=click"});
  const Task two = MakeTask(chosen, data).value();
  EXPECT_EQ(two.labels(), 3);
  ASSERT_EQ(two.outputs(), 2);
  EXPECT_EQ(two.learned[0].column, 2);
  EXPECT_EQ(two.learned[0].weight, 0.5);
  EXPECT_EQ(two.learned[1].column, 0);
  EXPECT_EQ(MonitoredLabel(chosen, two), 1);
  EXPECT_EQ(MonitoredLabel(Resolved(), all), 0);

  const auto mistake = [&](const std::vector<std::string>& overrides) {
    return task_of(overrides).status().message();
  };
  EXPECT_EQ(mistake({"task.labels=click,share"}),
            "task.labels: share; expected of click, like, buy");
  EXPECT_EQ(mistake({"task.labels=buy,buy"}),
            "task.labels: buy stands there twice; expected every name once");
  EXPECT_EQ(mistake({"task.weights=1,2"}),
            "task.weights: 2 numbers; expected one for each of 3 labels");
  EXPECT_EQ(mistake({"task.labels=buy", "training.monitor.label=click"}),
            "training.monitor.label: click; expected a label that is learned");
  data.labels.clear();
  EXPECT_EQ(task_of({}).value().outputs(), 1);
  EXPECT_EQ(task_of({"task.weights=3"}).value().learned[0].weight, 3);
  EXPECT_EQ(mistake({"task.labels=click"}),
            "task.labels: click; expected none, as the data has one label, without a name");
  EXPECT_EQ(
      mistake({"training.monitor.label=click"}),
      "training.monitor.label: click; expected none, as the data has one label, without a name");
}

TEST(ConfigTest, ResolvingTwiceIsResolvingOnce) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{"model.kind=RANK_ELASTOR"},
        {"model.kind=RANK_MIXER"},
        {"model.kind=MLP"},
        {"model.convention=PUBLIC_CODE"},
        {"model.kind=RANK_MIXER", "model.convention=PUBLIC_CODE"}}) {
    const Experiment once = Resolved(overrides);
    Experiment twice = once;
    ResolveDefaults(&twice);
    EXPECT_TRUE(MessageDifferencer::Equals(once, twice)) << once.DebugString();
  }
}

struct Mistake {
  std::vector<std::string> overrides;
  const char* message;
};

TEST(ConfigTest, EveryCheckNamesFieldFoundAndExpected) {
  const Mistake mistakes[] = {
      {{"parallel.virtual_shards=12"}, "parallel.virtual_shards: 12 is not a power of two"},
      {{"optimizer.sparse=DENSE_ADAM", "checkpoint.delta_every_steps=5"},
       "checkpoint.delta_every_steps: 5; expected 0, as optimizer.sparse: DENSE_ADAM changes every "
       "row at every step"},
      {{"optimizer.sparse=DENSE_ADAM", "checkpoint.delta_every_minutes=0.5"},
       "checkpoint.delta_every_minutes: 0.5; expected 0, as optimizer.sparse: DENSE_ADAM changes "
       "every row at every step"},
      {{"optimizer.sparse=DENSE_ADAM", "optimizer.epsilon=1e-38"},
       "optimizer.epsilon: 1e-38; expected 1.18e-38 or more, as optimizer.sparse: DENSE_ADAM "
       "divides "
       "by it where a row has no gradient"},
      {{"parallel.virtual_shards=-16"}, "parallel.virtual_shards: -16; expected a positive number"},
      {{"training.batch_size=8", "training.eval_batch_size=8"},
       "training.batch_size: 8 is less than parallel.virtual_shards 16; expected at least one row "
       "for each"},
      {{"training.batch_size=0"}, "training.batch_size: 0; expected a positive number"},
      {{"training.epochs=-1"}, "training.epochs: -1; expected a positive number"},
      {{"training.max_steps=-1"}, "training.max_steps: -1; expected 0 or more"},
      {{"model.kind=RANK_MIXER"},
       "model.rank_mixer.token_width: 26 is not a multiple of model.rank_mixer.tokens 15; "
       "RANK_MIXER swaps 15 x 15 blocks of D / T columns; expected 15 or 30 (--mode=describe lists "
       "shapes that fit)"},
      {{"model.kind=RANK_MIXER", "model.tokens=26", "model.mixing.block_width=2"},
       "model.rank_mixer.mixing: RankMixer swaps blocks of tokens and has no such map; expected "
       "none, or rank_elastor"},
      {{"model.tokens=0"}, "model.rank_elastor.tokens: 0; expected a positive number"},
      {{"model.token_width=-26"},
       "model.rank_elastor.token_width: -26; expected a positive number"},
      {{"model.tokens=2147483647", "model.token_width=2147483647", "model.head.kind=FLATTEN_MLP"},
       "model.rank_elastor.tokens * token_width: 4611686014132420609; expected at most 131072"},
      {{"model.mixing.block_width=7"},
       "model.rank_elastor.mixing.block_width: 7; expected a divisor of tokens * token_width = "
       "390"},
      {{"model.mixing.kind=IDENTITY", "model.mixing.block_width=2"},
       "model.rank_elastor.mixing.block_width: 2; expected 1, as mixing.kind is not LEARNED and "
       "has no map"},
      {{"model.mixing.kind=BLOCK_TRANSPOSE"},
       "model.rank_elastor.token_width: 26 is not a multiple of model.rank_elastor.tokens 15; "
       "mixing.kind: BLOCK_TRANSPOSE swaps 15 x 15 blocks of D / T columns; expected 15 or 30 "
       "(--mode=describe lists shapes that fit)"},
      {{"model.blocks=-1"}, "model.rank_elastor.blocks: -1; expected a number in (0, 1001)"},
      {{"model.kind=DCN_V2", "model.dcn_v2.cross_layers=1001"},
       "model.dcn_v2.cross_layers: 1001; expected a number in (0, 1001)"},
      {{"model.kind=LR"},
       "embedding.width: 20; expected 1, as the embeddings of model.lr are its weights"},
      {{"model.kind=FINAL_MLP", "model.final_mlp.heads=50", "model.final_mlp.hidden2=80"},
       "model.final_mlp.heads: 50; expected a divisor of the last hidden1 = 400 and the last "
       "hidden2 "
       "= 80"},
      {{"model.kind=TOKEN_MIXER_LARGE", "model.tokens=12"},
       "model.token_mixer_large.token_width: 26; expected a multiple of tokens = 12"},
      {{"model.kind=UNI_MIXER"},
       "model.uni_mixer.block_width: 16; expected a divisor of tokens * token_width = 390 and less "
       "than it"},
      {{"model.kind=UNI_MIXER", "model.block_width=26", "model.rank=2"},
       "model.uni_mixer.basis: 0; expected a positive number, as rank is 2"},
      {{"model.kind=ONE_TRANS", "model.heads=3"},
       "model.one_trans.heads: 3; expected a divisor of token_width = 26"},
      {{"model.kind=FINAL_NET", "model.final_net.hidden2=8,7"},
       "model.final_net.hidden2: 7; expected even numbers, as half of a layer's features are "
       "products"},
      {{"model.kind=DCN_V3", "embedding.width=9"},
       "embedding.width: 9; expected an even number, as model.dcn_v3 halves every embedding"},
      {{"model.kind=AUTO_INT", "model.auto_int.heads=3"},
       "model.auto_int.heads: 3; expected a divisor of attention_width = 64"},
      {{"model.kind=AUTO_INT", "model.auto_int.attention_dropout=1"},
       "model.auto_int.attention_dropout: 1; expected a number in [0, 1)"},
      {{"model.kind=AUTO_INT", "model.dropout=0.1"},
       "model.auto_int.hidden: empty; expected hidden layers for batch_norm and dropout to act "
       "on"},
      {{"model.tokenizer.hidden=-1"},
       "model.rank_elastor.tokenizer.hidden: -1; expected 0 or more"},
      {{"model.head.kind=FLATTEN_MLP", "model.head.hidden=4,-4"},
       "model.rank_elastor.head.hidden: -4; expected a positive number"},
      {{"model.dropout=1"}, "model.rank_elastor.dropout: 1; expected a number in [0, 1)"},
      {{"model.dropout=nan"}, "model.rank_elastor.dropout: nan; expected a number in [0, 1)"},
      {{"model.kind=MLP", "model.hidden=400,0"}, "model.mlp.hidden: 0; expected a positive number"},
      {{"embedding.width=0"}, "embedding.width: 0; expected a positive number"},
      {{"optimizer.learning_rate=-0.1"},
       "optimizer.learning_rate: -0.1; expected a positive number"},
      {{"optimizer.learning_rate=inf"}, "optimizer.learning_rate: inf; expected a positive number"},
      {{"optimizer.beta2=1"}, "optimizer.beta2: 1; expected a number in [0, 1)"},
      {{"optimizer.clip_norm=-1"}, "optimizer.clip_norm: -1; expected 0 or more"},
      {{"parallel.threads=-2"}, "parallel.threads: -2; expected a positive number"},
      {{"parallel.device_embedding_bytes=-1"},
       "parallel.device_embedding_bytes: -1; expected 0 or more"},
      {{"training.schedule.plateau_factor=1"},
       "training.schedule.plateau_factor: 1; expected a number in [0, 1)"},
      {{"training.schedule.warmup_steps=-1"},
       "training.schedule.warmup_steps: -1; expected 0 or more"},
      {{"training.monitor.early_stop_patience=-1"},
       "training.monitor.early_stop_patience: -1; expected 0 or more"},
      {{"checkpoint.keep=-1"}, "checkpoint.keep: -1; expected a positive number"},
      {{"publish.rows=INT8"}, "publish.path: \"\"; expected a folder, as publish.rows is set"},
      {{"spectrum.samples=-1"}, "spectrum.samples: -1; expected a positive number"},
  };
  // Of texts, also those of a list.
  EXPECT_EQ(ValidateExperiment(Resolved({"name=caf\xe9"})).message(),
            "name: byte 4 of 'caf\\xe9' is not UTF-8; expected UTF-8 text");
  EXPECT_EQ(ValidateExperiment(Resolved({"evaluation.slice_by=a,\xc0\xaf"})).message(),
            "evaluation.slice_by: byte 1 of '\\xc0\\xaf' is not UTF-8; expected UTF-8 text");
  for (const Mistake& mistake : mistakes) {
    const Status status = ValidateExperiment(Resolved(mistake.overrides));
    EXPECT_EQ(status.code(), StatusCode::kUser) << mistake.message;
    EXPECT_EQ(status.message(), mistake.message);
  }
}

DatasetInfo DataWithSequences() {
  DatasetInfo data;
  data.categorical = {{.name = "item", .ids = 9},
                      {.name = "shop", .ids = 9},
                      {.name = "tags", .ids = 9, .multi_hot = true, .keeps = "first 8"},
                      {.name = "seen", .ids = 9, .multi_hot = true, .shares = 0, .keeps = "last 5"},
                      {.name = "old", .ids = 9, .multi_hot = true}};
  return data;
}

TEST(ConfigTest, FindsSequencesInTheData) {
  const Experiment experiment =
      Resolved({"model.sequences.fields=seen", "model.sequences.din.softmax=true"});
  const auto found = FindSequences(experiment, DataWithSequences());
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].field, 3);
  EXPECT_EQ((*found)[0].target, 0);
  EXPECT_EQ((*found)[0].positions, 5);
  EXPECT_FALSE((*found)[0].pooled);
  // Another model reads the same sequences.
  const Experiment other = Resolved({"model.sequences.fields=seen", "model.sequences.max_length=3",
                                     "model.sequences.din.hidden=7", "model.kind=MLP"});
  EXPECT_TRUE(other.model().has_mlp());
  EXPECT_EQ(other.model().sequences().max_length(), 3);
  EXPECT_FALSE(Resolved().model().has_sequences());
}

TEST(ConfigTest, AMistakenSequenceIsToldInOneLine) {
  const std::string sequences = "; the data's sequences: seen, old";
  const std::string target =
      "; expected a categorical field of one id that shares the table of 'seen': item";
  const auto fields = [](const std::string& names) { return "model.sequences.fields=" + names; };
  const auto targets = [](const std::string& names) { return "model.sequences.targets=" + names; };
  for (const auto& [overrides, message] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{fields("sean")},
            "model.sequences.fields: 'sean' is no categorical field of the data" + sequences},
           {{fields("item")}, "model.sequences.fields: 'item' is no SEQUENCE" + sequences},
           {{fields("tags")}, "model.sequences.fields: 'tags' is no SEQUENCE" + sequences},
           {{fields("seen,seen")}, "model.sequences.fields: 'seen' twice; expected it once"},
           {{fields("seen"), targets("shop")},
            "model.sequences.targets: 'shop' is of another table, or of several ids" + target},
           {{fields("seen"), targets("x")},
            "model.sequences.targets: 'x' is no categorical field of the data" + target},
           {{fields("seen"), "model.sequences.max_length=6"},
            "model.sequences.max_length: 6, but the data keep the last 5 ids of 'seen'; expected "
            "at most as many, or data with a larger max_length"},
           {{fields("seen"), "evaluation.slice_by=seen"},
            "evaluation.slice_by: 'seen' is read as a sequence; expected another field, or no "
            "model.sequences"},
           {{fields("old")},
            "model.sequences: 'old' has no target; expected a categorical field of one id that "
            "shares the table of 'old': none"}}) {
    std::vector<std::string> all = overrides;
    all.push_back("model.sequences.din.softmax=true");
    EXPECT_EQ(FindSequences(Resolved(all), DataWithSequences()).status().message(), message);
  }
  const auto invalid = [](const std::vector<std::string>& overrides) {
    return ValidateExperiment(Resolved(overrides)).message();
  };
  EXPECT_EQ(invalid({fields("seen")}),
            "model.sequences: no encoder; expected mean, din, hstu, bst or tokens");
  Experiment of_mlp = Resolved({fields("seen"), "model.kind=MLP"});
  of_mlp.mutable_model()->mutable_sequences()->mutable_tokens();
  EXPECT_EQ(ValidateExperiment(of_mlp).message(),
            "model.sequences: tokens; expected mean, din, hstu or bst, as only ONE_TRANS and "
            "HSTU_RANKER read tokens");
  EXPECT_EQ(invalid({"model.sequences.max_length=3"}),
            "model.sequences.fields: empty; expected names of SEQUENCE fields");
  EXPECT_EQ(invalid({fields("seen"), targets("a,b")}),
            "model.sequences.targets: 2 names; expected none, or one for each of the 1 "
            "model.sequences.fields");
}

TEST(ConfigTest, AnHstuRankerReadsListsSideBySide) {
  DatasetInfo data = DataWithSequences();
  data.numeric = {{.name = "price"}};
  data.categorical.push_back({.name = "done", .ids = 4, .multi_hot = true, .keeps = "last 5"});
  data.categorical.push_back({.name = "ago", .ids = 9, .multi_hot = true, .keeps = "last 4"});
  const auto of = [](const std::string& fields, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"model.kind=HSTU_RANKER", "model.sequences.fields=" + fields};
    all.insert(all.end(), more.begin(), more.end());
    return Resolved(all);
  };
  const std::string actions = "model.actions=done", times = "model.times=ago";
  const std::string four = "model.sequences.max_length=4";
  const Experiment experiment =
      of("ago,seen,done",
         {actions, times, four, "model.sequences.targets=item", "model.request_fields=price,shop"});
  EXPECT_EQ(ValidateExperiment(experiment).message(), "");
  const auto found = FindSequences(experiment, data);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ((*found)[1].target, 0);
  EXPECT_TRUE((*found)[0].parallel && (*found)[2].parallel);
  const auto request = FindRequestFields(experiment, data, *found);
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(*request, (std::vector<int64_t>{0, 2}));
  // Others' histories may differ.
  EXPECT_FALSE((*FindSequences(
      Resolved({"model.sequences.fields=seen", "model.sequences.din.softmax=true"}), data))[0]
                   .parallel);

  const auto invalid = [&](const std::string& fields, const std::vector<std::string>& more) {
    return ValidateExperiment(of(fields, more)).message();
  };
  EXPECT_EQ(ValidateExperiment(Resolved({"model.kind=HSTU_RANKER"})).message(),
            "model.sequences.fields: empty; expected names of SEQUENCE fields, as "
            "model.hstu_ranker reads a history");
  EXPECT_EQ(invalid("seen,done", {actions, "model.sequences.din.softmax=true"}),
            "model.sequences: an encoder; expected none, or tokens { }, as model.hstu_ranker reads "
            "the history itself");
  EXPECT_EQ(invalid("seen", {actions}),
            "model.hstu_ranker.actions: 'done'; expected names of model.sequences.fields");
  EXPECT_EQ(invalid("seen,done", {actions, "model.times=done"}),
            "model.hstu_ranker.times: 'done' again; expected each name once");
  EXPECT_EQ(invalid("done", {actions}),
            "model.sequences.fields: actions and times alone; expected one list of items at "
            "least, in neither model.hstu_ranker.actions nor times");
  EXPECT_EQ(invalid("seen,done", {actions, "model.sequences.targets=item,shop"}),
            "model.sequences.targets: 2 names; expected none, or one for each of the 1 "
            "model.sequences.fields of items");
  EXPECT_EQ(invalid("seen", {"model.heads=1000", "model.attention_width=200"}),
            "model.hstu_ranker.heads * attention_width: 200000; expected at most 131072");
  EXPECT_EQ(FindSequences(of("seen,ago", {times}), data).status().message(),
            "model.sequences.max_length: must be given, as the data keep 5 ids of 'seen' and 4 of "
            "'ago', which model.hstu_ranker reads side by side");
  for (const auto& [name, message] : std::vector<std::pair<std::string, std::string>>{
           {"x", "is no field of the data; its fields: item, shop, tags, seen, old, done, ago"},
           {"item", "is a target already; expected another field"},
           {"done", "is a history already; expected another field"},
           {"shop,shop", ""}}) {
    const Experiment mistaken = of("seen,done", {actions, "model.request_fields=" + name});
    const auto sequences = FindSequences(mistaken, data).value();
    EXPECT_EQ(FindRequestFields(mistaken, data, sequences).status().message(),
              "model.hstu_ranker.request_fields: '" +
                  (message.empty() ? "shop' twice; expected it once" : name + "' " + message));
  }
}

TEST(ConfigTest, EveryRankNeedsALeaf) {
  EXPECT_TRUE(ValidateRanks(Resolved(), 1).ok());
  EXPECT_TRUE(ValidateRanks(Resolved(), 16).ok());
  EXPECT_EQ(ValidateRanks(Resolved(), 17).message(),
            "parallel.virtual_shards: 16 cannot be spread over 17 ranks; expected 1 to 16 ranks, "
            "or more virtual shards");
  EXPECT_FALSE(ValidateRanks(Resolved(), 0).ok());
  EXPECT_EQ(ValidateRanks(Resolved({"parallel.virtual_shards=1"}), 2).message(),
            "parallel.virtual_shards: 1 cannot be spread over 2 ranks; expected 1 rank, or more "
            "virtual shards");
}

TEST(ConfigTest, HashCoversNumericFieldsOnly) {
  const std::string hash = NumericHash(Resolved());
  EXPECT_EQ(hash.size(), 16u);
  for (const char* same :
       {"name=x", "data.path=y", "training.max_steps=9", "spectrum.every_steps=7",
        "parallel.threads=3", "parallel.plan=ROW_WISE", "data.shape.numeric_fields=2",
        "optimizer.beta1=0.9", "training.monitor.weighted=false"}) {
    EXPECT_EQ(NumericHash(Resolved({same})), hash) << same;
  }
  for (const char* different :
       {"training.seed=1", "model.tokens=14", "optimizer.beta1=0.8", "optimizer.beta1=0",
        "parallel.virtual_shards=32", "data.order=FILE_ORDER", "training.monitor.weighted=true"}) {
    EXPECT_NE(NumericHash(Resolved({different})), hash) << different;
  }
}

TEST(ConfigTest, NamesTheFirstNumericDifference) {
  const auto difference = [](const char* assignment) {
    return NumericDifference(Resolved({assignment}), Resolved());
  };
  EXPECT_EQ(difference("parallel.threads=3"), "");
  EXPECT_EQ(difference("checkpoint.keep=9"), "");
  EXPECT_EQ(difference("optimizer.learning_rate=0.002"),
            "optimizer.learning_rate: 0.002; expected 0.001");
  EXPECT_EQ(difference("training.schedule.decay=COSINE"),
            "training.schedule.decay: COSINE; expected CONSTANT");
  EXPECT_EQ(difference("training.warm_start.tensors=mlp"),
            "training.warm_start.tensors: \"mlp\"; expected unset");
  EXPECT_EQ(difference("model.rank_elastor.tokens=14"),
            "model.rank_elastor.tokens: 14; expected 15");
  EXPECT_EQ(difference("model.kind=MLP"), "model: mlp; expected rank_elastor");
}

TEST(ConfigTest, LoadsAFileAndAppliesOverridesInOrder) {
  const std::string path = WriteExperiment(
      "load.textproto",
      "model { tokens: 15 token_width: 26 } embedding { width: 20 } training { batch_size: 64 }");
  const std::vector<std::string> overrides = {"training.seed=4", "training.seed=5"};
  const auto experiment = LoadExperiment(path, overrides);
  ASSERT_TRUE(experiment.ok()) << experiment.status().message();
  EXPECT_EQ(experiment.value().training().seed(), 5);
  // Some editors begin a file so.
  EXPECT_TRUE(ParseExperiment("\xef\xbb\xbftraining { seed: 4 }", "f").ok());
  EXPECT_EQ(experiment.value().training().epochs(), 1);
}

TEST(ConfigTest, EveryExperimentOfTheRepositoryIsValid) {
  int experiments = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("configs")) {
    if (entry.path().extension() != ".textproto") continue;
    const auto experiment = LoadExperiment(entry.path(), {});
    EXPECT_TRUE(experiment.ok()) << experiment.status().message();
    ++experiments;
  }
  EXPECT_GE(experiments, 8);
}

std::string HexHash(const std::string& bytes) {
  return Format("%016llx",
                static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
}

// Runs that users have go on under these hashes: numeric_hash, and a hash of the fields that name a
// sweep's run and of the written text. Taken before numbers told a written 0 from one left out.
TEST(ConfigTest, HashesOfTheRepositoryStay) {
  constexpr struct {
    const char *file, *numeric, *texts;
  } kExperiments[] = {
      {"avazu/auto_int", "a44f4c970dd1cc04", "40b2180bd650842e"},
      {"avazu/dcn_v2", "bbd5abd6f52fc71c", "b24cf05118a25dfd"},
      {"avazu/mlp", "b19513bee5b22c92", "5f667078d3bb057f"},
      {"avazu/rank_elastor", "7c9e664201d89853", "2bcfe0b90f0b4bb6"},
      {"avazu/rank_mixer", "e448822f4bbe9266", "f8277138427c65cb"},
      {"avazu/x_deep_fm", "dc8221036b090b20", "e2f074fa75ca090e"},
      {"criteo/auto_int", "d9750219984fe8cb", "2d0099bcb96d045a"},
      {"criteo/dcn_v2", "682a339175e1aded", "0bc9b902557ca319"},
      {"criteo/mlp", "d49695621b724663", "0657f2f9e47c2ed2"},
      {"criteo/rank_elastor", "ea151718beaf2199", "0c70b99adf07ecc5"},
      {"criteo/rank_mixer", "8d01e830ddc1ec93", "a781be9f69f94211"},
      {"criteo/wukong", "a862878d75672530", "458084f4d53f8086"},
      {"criteo/x1_mlp", "7a5ecf369f775e9c", "3d118a43e4ce0e8d"},
      {"criteo/x_deep_fm", "8b2f99f49559d155", "80f74c59a57e0d87"},
      {"frappe/auto_int", "97370d23af193dfd", "20d7f3cecd21c59c"},
      {"frappe/dcn_v2", "12121f6eb16efe1a", "b63b9032bdcc4283"},
      {"frappe/mlp", "fd4f8edb86b0bd5d", "2ed249ffe9e8de6a"},
      {"frappe/x_deep_fm", "b942c2b5d1dc4826", "a452bab08702afe2"},
      {"heads/flatten_linear", "1f32ac5e3a2ba0bc", "6507e5126d60d3ea"},
      {"heads/flatten_mlp", "ab5beb1e87ce8253", "a5cfdf31659c0e25"},
      {"heads/mean_pool", "08b83d14473abc55", "ee9a5817705aa183"},
      {"heads/multi_probe", "6d2e1e51a083c130", "09659de7831957ac"},
      {"heads/vector_collapse", "87a14449756f6a84", "eee2ef457c0b6d6b"},
      {"images/mlp_mixer", "84d76eebecc7e06c", "aa565add8f910dc6"},
      {"images/vit", "c91bde4273f2ecce", "16f2c9aa24fd26e3"},
      {"kuaivideo/din", "24ca422e1eab6266", "0cdc01004db16aa0"},
      {"matrix_thinker/large", "ecf9bd2660967f2f", "a9273f22bf68f3db"},
      {"matrix_thinker/small", "e4f84c3a5615acd3", "63fec5ebe85d62f9"},
      {"matrix_thinker/transformer", "b8aa9f21cc9cddaa", "32059e69f97b7764"},
      {"planted/coordinate_mixing", "8563176ad5546077", "14ef48833bed48f9"},
      {"planted/sequences", "82380d01a0384c23", "f98bcfddf3c2b6ed"},
      {"planted/sequences_hstu", "e4dcd717ac2cc6ee", "3bba80969458b518"},
      {"planted/sequences_mean", "1e52506dcf910179", "5248eecfa49670f1"},
      {"planted/two_labels", "26fc053fc3305af5", "b2c8a6309f5afe3f"},
      {"planted/two_labels_mmoe", "22f85ea821452e33", "d3b3ea866bcd5ec3"},
      {"quickstart", "3fc74baef923870e", "3b4dfff41b4706be"},
      {"scale", "83018f260a75ef8e", "f969dd0a24e83311"},
      {"taobao/din", "46ce80f9b5cd38f7", "36b28063822902e3"},
      {"taobao/hstu", "1b574779b5909059", "79f56a22b5a8d182"},
      {"taobao/rank_elastor", "56ea34b15982b4f3", "2fe770bbffa14820"},
      {"taobao/rank_mixer", "b56da4bb4bfb3f0c", "9800a798cd0081ef"},
  };
  for (const auto& [file, numeric, texts] : kExperiments) {
    const auto experiment = LoadExperiment(std::string("configs/") + file + ".textproto", {});
    ASSERT_TRUE(experiment.ok()) << experiment.status().message();
    EXPECT_EQ(NumericHash(*experiment), numeric) << file;
    EXPECT_EQ(
        HexHash(DistinctFields(*experiment).SerializeAsString() + ExperimentText(*experiment)),
        texts)
        << file;
  }
}

// Calls visit(path) for every plain field that is no text, in all models and encoders.
void ForEachNumber(const google::protobuf::Descriptor& group, const std::string& prefix,
                   const std::function<void(const std::string& path)>& visit) {
  for (int i = 0; i < group.field_count(); ++i) {
    const auto& field = *group.field(i);
    if (field.options().deprecated()) continue;
    if (field.is_repeated() && field.message_type() != nullptr) continue;  // no flag sets them
    if (field.message_type() != nullptr) {
      ForEachNumber(*field.message_type(), prefix + field.name() + ".", visit);
    } else if (field.enum_type() == nullptr && field.cpp_type() != field.CPPTYPE_STRING) {
      visit(prefix + field.name());
    }
  }
}

// The number that a path names, as a text; in a list the only one.
std::string NumberAt(const google::protobuf::Message& message, const std::string& path) {
  const size_t dot = path.find('.');
  const auto* field = message.GetDescriptor()->FindFieldByName(path.substr(0, dot));
  if (dot != path.npos) {
    return NumberAt(message.GetReflection()->GetMessage(message, field), path.substr(dot + 1));
  }
  std::string text;
  const bool list = field->is_repeated();
  if (list && message.GetReflection()->FieldSize(message, field) != 1) return "no list of one";
  google::protobuf::TextFormat::PrintFieldValueToString(message, field, list ? 0 : -1, &text);
  return text == "false" ? "0" : text;
}

// What a user writes is taken or refused, never replaced.
TEST(ConfigTest, AWrittenZeroIsTakenOrRefused) {
  int taken = 0, refused = 0;
  ForEachNumber(*Experiment::descriptor(), "", [&](const std::string& path) {
    const std::string group = path.substr(0, path.find('.', sizeof("model.")));
    std::vector<std::string> overrides = {"embedding.width=8"};
    if (group == "model.sequences") {
      overrides.insert(overrides.end(), {group + ".fields=history", group + ".din.softmax=true"});
    } else if (group.starts_with("model.")) {
      overrides.push_back("model.kind=" + group.substr(sizeof("model.") - 1));
    }
    if (group == "model.rank_mixer" || group == "model.token_mixer_large") {
      overrides.push_back("model.tokens=13");
    }
    if (group == "model.one_trans") overrides.push_back("model.token_width=8");
    if (group == "model.hstu_ranker") overrides.push_back("model.sequences.fields=history");
    if (group == "model.uni_mixer") overrides.push_back("model.tokens=16");
    // A head has only its kind's.
    if (path.ends_with("head.probes")) overrides.push_back("model.head.kind=MULTI_PROBE");
    if (path.ends_with("head.hidden")) overrides.push_back("model.head.kind=FLATTEN_MLP");
    const Status valid = ValidateExperiment(Resolved(overrides));
    ASSERT_TRUE(valid.ok()) << path << ": " << valid.message();
    overrides.push_back(path + "=0");
    // As --set gives it to a file, and the file to the program.
    Experiment resolved = ParseExperiment(ExperimentText(Given(overrides)), "text").value();
    ResolveDefaults(&resolved);
    const Status status = ValidateExperiment(resolved);
    if (status.ok()) {
      EXPECT_EQ(NumberAt(resolved, path), "0") << path;
      ++taken;
    } else {
      EXPECT_THAT(status.message(), StartsWith(path + ": 0; expected ")) << path;
      ++refused;
    }
  });
  EXPECT_GT(taken, 50);
  EXPECT_GT(refused, 60);
}

TEST(ConfigTest, TextOfAnExperimentReadsBack) {
  const Experiment experiment = Resolved({"model.kind=MLP", "model.hidden=3,4", "data.path=a b\""});
  const auto read = ReadExperiment(WriteExperiment("back.textproto", ExperimentText(experiment)));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(MessageDifferencer::Equals(experiment, read.value()));
}

// Every field that is called path, at any level.
void ForEachPath(google::protobuf::Message* message,
                 const std::function<void(std::string name, std::string* path)>& visit) {
  const auto& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const auto* field = message->GetDescriptor()->field(i);
    if (field->is_repeated()) continue;
    if (field->message_type() != nullptr && field->real_containing_oneof() == nullptr) {
      ForEachPath(reflection.MutableMessage(message, field), visit);
    } else if (field->name().ends_with("path")) {
      std::string path = reflection.GetString(*message, field);
      visit(field->full_name(), &path);
      reflection.SetString(message, field, path);
    }
  }
}

TEST(ConfigTest, PathsFromTheRoot) {
  Experiment experiment = Resolved();
  const std::string hash = NumericHash(experiment);
  int paths = 0;
  ForEachPath(&experiment, [&](const std::string&, std::string* path) {
    *path = "a/../b";
    ++paths;
  });
  EXPECT_EQ(paths, 5);
  Experiment absolute = WithAbsolutePaths(experiment);
  ForEachPath(&absolute, [&](const std::string& name, std::string* path) {
    EXPECT_EQ(*path, std::filesystem::current_path().string() + "/a/../b") << name;
    *path = "";
  });
  ForEachPath(&absolute, [](const std::string&, std::string* path) { *path = "/d"; });
  EXPECT_EQ(ExperimentText(WithAbsolutePaths(absolute)), ExperimentText(absolute));
  // No path is no path, and paths are not numeric.
  EXPECT_EQ(WithAbsolutePaths(Resolved()).data().path(), "");
  EXPECT_EQ(NumericHash(WithAbsolutePaths(Resolved({"data.path=y"}))), hash);
}

TEST(ConfigTest, TheResolvedTextNamesWhatIsZero) {
  const std::string text = ExperimentText(Resolved());
  for (const char* line : {"rank_elastor {", "convention: PAPER", "dropout: 0", "order: SHUFFLED",
                           "sparse: LAZY_ADAM", "clip_norm: 0", "seed: 0", "overlap: false"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("shape")));
}

TEST(ConfigTest, MistakesInAFileAreLocated) {
  const std::string path = WriteExperiment("bad.textproto", "data {\n  pth: \"x\"\n}\n");
  const Status status = ReadExperiment(path).status();
  EXPECT_EQ(status.code(), StatusCode::kUser);
  EXPECT_EQ(status.message(),
            path +
                ":2:6: Message type \"elastor.DataConfig\" has no field named \"pth\"."
                " It has: path, order, window_blocks, reader_threads, shape, train_rows; did you "
                "mean 'path'?");

  const std::string missing = testing::TempDir() + "/missing.textproto";
  EXPECT_EQ(ReadExperiment(missing).status().code(), StatusCode::kUser);
  EXPECT_THAT(ReadExperiment(missing).status().message(), HasSubstr(missing));
  EXPECT_THAT(ReadExperiment(missing).status().message(), Not(HasSubstr("\n")));
}

TEST(ConfigTest, AMistakenNameInAFileListsThePossibleOnes) {
  const auto message = [](const std::string& text) {
    return ParseExperiment(text, "f").status().message();
  };
  // Several fields are called kind; the one meant is found by its place.
  EXPECT_EQ(message("# { kind }\nmodel { rank_elastor { feed_forward { activation: RELU }\n"
                    "  head { kind: MEAN_POL } } }"),
            "f:3:25: Unknown enumeration value of \"MEAN_POL\" for field \"kind\"."
            " Expected one of: HEAD_CONVENTION, MEAN_POOL, FLATTEN_LINEAR, FLATTEN_MLP, "
            "MULTI_PROBE, VECTOR_COLLAPSE"
            "; did you mean 'MEAN_POOL'?");
  EXPECT_EQ(message("optimizer < dense: ADAMW >"),
            "f:1:26: Unknown enumeration value of \"ADAMW\" for field \"dense\"."
            " Expected one of: ADAM, SGD, ADAGRAD; did you mean 'ADAM'?");
  EXPECT_THAT(message("model { rank_elastic { tokens: 4 } }"),
              AllOf(StartsWith("f:1:22: Message type \"elastor.ModelConfig\" has no field named "
                               "\"rank_elastic\". It has: rank_elastor, rank_mixer"),
                    EndsWith("; did you mean 'rank_elastor'?")));
  EXPECT_EQ(message("model { mlp { hiden: 4 } }"),
            "f:1:20: Message type \"elastor.MlpConfig\" has no field named \"hiden\"."
            " It has: hidden, batch_norm, dropout; did you mean 'hidden'?");
}

// An experiment of the first format says the same as one of today's.
TEST(ConfigTest, ReadsTheFirstFormat) {
  const auto load = [](const std::string& model, const std::vector<std::string>& overrides = {}) {
    const std::string path = WriteExperiment("format.textproto", "model { " + model +
                                                                     " } embedding { width: 4 } "
                                                                     "training { batch_size: 64 }");
    const auto loaded = LoadExperiment(path, overrides);
    return loaded.ok() ? ExperimentText(loaded.value()) : loaded.status().message();
  };
  const std::string elastor =
      load("rank_elastor { convention: PUBLIC_CODE tokens: 4 token_width: 8 }");
  EXPECT_THAT(elastor, HasSubstr("rank_elastor {\n    convention: PUBLIC_CODE\n    tokens: 4\n"));
  EXPECT_EQ(load("kind: RANK_ELASTOR convention: PUBLIC_CODE tokens: 4 token_width: 8"), elastor);
  EXPECT_EQ(load("convention: PUBLIC_CODE tokens: 4 token_width: 8"), elastor);
  EXPECT_EQ(load("convention: PUBLIC_CODE tokens: 3 token_width: 8", {"model.tokens=4"}), elastor);

  // What the model does not use is dropped, as it always was: written-out runs have such fields.
  EXPECT_EQ(load("kind: MLP convention: PAPER tokens: 4 head { hidden: 3 } hidden: [5, 6] "
                 "dropout: 0.5 batch_norm: true"),
            load("mlp { hidden: [5, 6] dropout: 0.5 batch_norm: true }"));
  EXPECT_EQ(load("kind: RANK_MIXER tokens: 4 token_width: 8 hidden: 5 batch_norm: false "
                 "mixing { block_width: 3 }"),
            load("rank_mixer { tokens: 4 token_width: 8 }"));
  EXPECT_THAT(load("mlp { } tokens: 4"),
              HasSubstr("format.textproto: model: has tokens beside mlp; expected all of a model's "
                        "fields within it"));
}

TEST(ConfigTest, NoModelIsRankElastor) {
  Experiment experiment;
  ResolveDefaults(&experiment);
  EXPECT_EQ(experiment.name(), "RANK_ELASTOR");
  EXPECT_EQ(ValidateExperiment(experiment).message(),
            "model.rank_elastor.tokens: 0; expected a positive number");
}

// The defaults are texts; FillDefaults ends the program at one that its field cannot hold.
TEST(ConfigTest, EveryModelHasDefaults) {
  const auto* models = ModelConfig::descriptor()->FindOneofByName("model");
  for (int i = 0; i < models->field_count(); ++i) {
    Experiment experiment;
    ModelConfig* model = experiment.mutable_model();
    model->GetReflection()->MutableMessage(model, models->field(i));
    ResolveDefaults(&experiment);
    EXPECT_GT(experiment.model().ByteSizeLong(), 2u) << models->field(i)->name();
  }
}

// Rules of keyed tables: the least that makes sense is taken, and every slip has its line.
TEST(ConfigTest, RulesOfKeyedTables) {
  const auto resolved = [](const std::string& tables) {
    Experiment experiment = Given({});
    EXPECT_TRUE(
        google::protobuf::TextFormat::MergeFromString("embedding { " + tables + " }", &experiment));
    ResolveDefaults(&experiment);
    return experiment;
  };
  const auto mistake = [&](const std::string& table) {
    return ValidateExperiment(resolved("tables { " + table + " }")).message();
  };
  EXPECT_EQ(mistake("fields: 'user'"), "");
  EXPECT_EQ(mistake("fields: 'user' capacity: 100"), "");
  const std::string full = "fields: 'user' capacity: 100 on_full: EVICT ";
  EXPECT_EQ(mistake(full + "eviction { policy: LRU }"), "");
  EXPECT_EQ(mistake("fields: 'user' evict_every_steps: 5 eviction { policy: L2 min_l2: .1 }"), "");
  const std::string at = "embedding.tables 1.";
  EXPECT_EQ(mistake("capacity: 100"), at + "fields: empty; expected names of keyed fields");
  EXPECT_EQ(mistake("fields: 'user' capacity: -1"), at + "capacity: -1; expected 0 or more");
  EXPECT_EQ(mistake(full), at + "eviction.policy: NONE; expected a policy for on_full: EVICT");
  EXPECT_EQ(mistake("fields: 'user' on_full: EVICT eviction { policy: LFU }"),
            at + "capacity: 0; expected a number of rows, as on_full is EVICT");
  EXPECT_EQ(mistake("fields: 'user' eviction { policy: LRU }"),
            at + "evict_every_steps: 0; expected steps between two passes, or on_full: EVICT, as "
                 "eviction.policy is LRU");
  EXPECT_EQ(mistake("fields: 'user' evict_every_steps: 5"),
            at + "evict_every_steps: 5; expected 0, as eviction.policy is NONE");
  EXPECT_EQ(mistake("fields: 'user' evict_every_steps: 5 eviction { policy: LRU }"),
            at + "eviction.evict_to: 0; expected the rows that a pass leaves");
  EXPECT_EQ(mistake(full + "eviction { policy: LRU evict_to: 101 }"),
            at + "eviction.evict_to: 101; expected at most the capacity, 100");
  EXPECT_EQ(mistake(full + "eviction { policy: TTL_STEPS }"),
            at + "eviction.ttl_steps: 0; expected a positive number, as policy is TTL_STEPS");
  EXPECT_EQ(
      mistake(full + "eviction { policy: TTL_EVENT_TIME }"),
      at + "eviction.ttl_seconds: 0; expected a positive number, as policy is TTL_EVENT_TIME");
  EXPECT_EQ(mistake(full + "eviction { policy: TTL_EVENT_TIME ttl_seconds: 60 }"),
            "data.order: SHUFFLED; expected FILE_ORDER, as embedding.tables 1.eviction.policy is "
            "TTL_EVENT_TIME");
  EXPECT_EQ(mistake(full + "eviction { policy: LRU min_l2: .5 }"),
            at + "eviction.min_l2: 0.5; expected 0, as policy is LRU");
  EXPECT_EQ(
      ApplyOverride("embedding.tables.capacity=5", std::make_unique<Experiment>().get()).message(),
      "--set=embedding.tables.capacity=5: tables is a list of groups; expected it in the "
      "experiment's file, not a flag");

  DatasetInfo data;
  data.categorical = {{.name = "user", .keyed = true}, {.name = "city", .ids = 9}};
  const auto refused = [&](const Experiment& experiment) {
    return CheckKeyedTables(experiment, data).message();
  };
  Experiment experiment = resolved("tables { " + full + "eviction { policy: LRU } }");
  EXPECT_EQ(refused(experiment), "");
  const std::vector<TableSpec> tables = MakeTables(experiment, data);
  EXPECT_TRUE(tables[0].keyed && tables[0].keeps_use && !tables[1].keyed);
  EXPECT_EQ(tables[0].rows, 100);
  EXPECT_EQ(tables[0].rules.evict_to, 90);
  const auto evict_to = [&](const std::string& capacity) {
    return resolved("tables { capacity: " + capacity + " }")
        .embedding()
        .tables(0)
        .eviction()
        .evict_to();
  };
  EXPECT_EQ(evict_to("1"), 1);
  EXPECT_EQ(evict_to("9"), 8);
  EXPECT_EQ(evict_to("9223372036854775807"), 8301034833169298226);
  EXPECT_EQ(refused(resolved("tables { fields: 'city' }")),
            "embedding.tables: 'city' is no field with a keyed table; expected one of: user");
  EXPECT_EQ(refused(resolved("tables { fields: 'user' } tables { fields: 'user' }")),
            "embedding.tables: field 'user' stands there twice");
  data.categorical[1].name = "user/deleted";
  EXPECT_EQ(
      refused(experiment),
      "data.path: field 'user/deleted' beside keyed fields: checkpoints call parts of their tables "
      "so; expected another name in the schema");
  data.categorical[1].name = "city";
  experiment.mutable_optimizer()->set_sparse(OptimizerConfig::DENSE_ADAM);
  EXPECT_EQ(refused(experiment),
            "optimizer.sparse: DENSE_ADAM updates rows that never occurred, and the data has keyed "
            "fields (user); expected LAZY_ADAM or another");
  // A policy that changes is another experiment, and stays what it was in its distinct fields.
  experiment = resolved("tables { " + full + "eviction { policy: LRU } }");
  const Experiment other = resolved("tables { " + full + "eviction { policy: LFU } }");
  EXPECT_EQ(NumericDifference(other, experiment),
            "embedding.tables.eviction.policy: LFU; expected LRU");
  Experiment again = DistinctFields(experiment);
  ResolveDefaults(&again);
  EXPECT_EQ(NumericHash(again), NumericHash(experiment));
  EXPECT_EQ(FieldTexts(experiment).at("embedding.tables.0.eviction.policy"), "LRU");
}

// The admission of keyed tables: its tables stand behind those of the fields, and every slip has
// its line.
TEST(ConfigTest, AdmissionOfKeyedTables) {
  const auto resolved = [](const std::string& table) {
    Experiment experiment = Given({});
    EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(
        "embedding { tables { fields: 'user' " + table + " } }", &experiment));
    ResolveDefaults(&experiment);
    return experiment;
  };
  const auto mistake = [&](const std::string& table) {
    return ValidateExperiment(resolved(table)).message();
  };
  const std::string at = "embedding.tables 1.admission.";
  EXPECT_EQ(mistake("admission { min_count: 3 count_ttl_steps: 9 } unadmitted: SHARED_ROW"), "");
  EXPECT_EQ(mistake("capacity: 5 admission { min_count: 3 counter: COUNT_MIN }"), "");
  EXPECT_EQ(mistake("admission { min_count: 16777217 }"),
            at + "min_count: 16777217; expected at most 16777216");
  EXPECT_EQ(mistake("unadmitted: SHARED_ROW"),
            at + "min_count: 0; expected 2 or more, as unadmitted is set");
  EXPECT_EQ(mistake("admission { min_count: 1 count_ttl_steps: 9 }"),
            at + "min_count: 1; expected 2 or more, as admission.count_ttl_steps is set");
  EXPECT_EQ(mistake("admission { min_count: 1 counter: COUNT_MIN }"),
            at + "min_count: 1; expected 2 or more, as admission.counter is set");
  EXPECT_EQ(mistake("admission { min_count: 3 counter: COUNT_MIN }"),
            at + "sketch_counters: 0; expected a number up to 2199023255552, or a capacity that it "
                 "is made of");
  EXPECT_EQ(mistake("admission { min_count: 3 sketch_counters: 7 }"),
            at + "sketch_counters: 7; expected 0, as counter is EXACT");
  EXPECT_EQ(mistake("capacity: 5 admission { min_count: 3 counter: COUNT_MIN count_ttl_steps: 4 }"),
            at + "count_ttl_steps: 4; expected 0, as sketches do not forget; or counter: EXACT");

  DatasetInfo data;
  data.categorical = {{.name = "user", .keyed = true}, {.name = "city", .ids = 9}};
  const std::vector<TableSpec> tables = MakeTables(
      resolved("capacity: 40000 admission { min_count: 3 counter: COUNT_MIN } unadmitted: "
               "SHARED_ROW"),
      data);
  ASSERT_EQ(tables.size(), 4u);
  EXPECT_EQ(tables[2].name, "user/shared");
  EXPECT_EQ(tables[2].rows, 4096);
  EXPECT_EQ(tables[3].name, "user/sketch");
  EXPECT_EQ(tables[3].rows, 4096 * 4 * 2);  // 80,000 counters of 65,536 a line
  const std::vector<TableSpec> exact =
      MakeTables(resolved("admission { min_count: 3 count_ttl_steps: 9 }"), data);
  ASSERT_EQ(exact.size(), 3u);
  EXPECT_EQ(exact[2].name, "user/counts");
  EXPECT_EQ(exact[2].rules.evict_every_steps, 2);
  EXPECT_EQ(MakeTables(resolved("admission { min_count: 1 }"), data).size(), 2u);
  data.categorical[1].name = "user/counts";
  EXPECT_EQ(CheckKeyedTables(resolved(""), data).message(),
            "data.path: field 'user/counts' beside keyed fields: checkpoints call parts of their "
            "tables so; expected another name in the schema");
}

TEST(ConfigTest, DistinctFieldsAreTheLeastThatMakeTheSameExperiment) {
  const std::vector<std::vector<std::string>> all = {
      {},
      {"model.convention=PUBLIC_CODE"},
      {"model.convention=PUBLIC_CODE", "model.tokenizer.kind=SHARED"},  // hidden is 0, not 500
      {"model.kind=RANK_MIXER", "model.feed_forward.expansion=3"},
      {"model.convention=PUBLIC_CODE", "model.tokenizer.hidden=0"},
      {"optimizer.beta1=0", "optimizer.beta2=0"},
      {"model.kind=MLP", "model.hidden=5,6"},
      {"model.kind=DCN_V2", "model.structure=PARALLEL"},
      {"training.schedule.plateau_factor=0.1", "training.monitor.best_weights=true"},
  };
  for (const std::vector<std::string>& overrides : all) {
    const Experiment experiment = Resolved(overrides);
    Experiment again = DistinctFields(experiment);
    ResolveDefaults(&again);
    EXPECT_EQ(NumericDifference(again, experiment), "");
    EXPECT_EQ(NumericHash(again), NumericHash(experiment));
  }
  EXPECT_EQ(ExperimentText(DistinctFields(Resolved({"training.seed=7"}))),
            "model {\n  rank_elastor {\n    tokens: 15\n    token_width: 26\n  }\n}\n"
            "embedding {\n  width: 20\n}\n"
            "training {\n  seed: 7\n  batch_size: 4096\n}\n");
}

}  // namespace
}  // namespace elastor
