#include "trainer/checkpoint/checkpoint.h"

#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trainer/checkpoint/checkpoint_testing.h"
#include "trainer/checkpoint/manifest.h"

namespace elastor {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const Layout kLayouts[] = {{1, PlanKind::kRowWise, 2},
                           {3, PlanKind::kTableWise},
                           {5, PlanKind::kReplicated, 2},
                           {4, PlanKind::kAuto},
                           {16, PlanKind::kRowWise}};

class CheckpointTest : public testing::Test {
 protected:
  // What LoadCheckpoint on two ranks says.
  std::string LoadError(Contents contents, const ModelIdentity& model = SomeModel()) {
    const Status status = OnRanks(model_, {2, PlanKind::kRowWise}, [&](StateRank& rank) {
      return LoadCheckpoint(path_, contents, model, rank.View(), *rank.communicator).status();
    });
    EXPECT_EQ(status.code(), status.ok() ? StatusCode::kOk : StatusCode::kUser);
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    return status.message();
  }

  SmallModel model_;
  const std::string directory_ = ScratchDirectory();
  const std::string path_ = directory_ + "/step-0000000007";
  std::string digest_;
};

struct Optimizers {
  OptimizerKind dense;
  OptimizerKind sparse;
};
class CheckpointOptimizerTest : public CheckpointTest,
                                public testing::WithParamInterface<Optimizers> {};

// A pair of optimizers has half of the pairs of writers and readers.
TEST_P(CheckpointOptimizerTest, AnyRanksReadWhatAnyRanksWrote) {
  model_.dense = GetParam().dense;
  model_.sparse = GetParam().sparse;
  std::string first;
  for (size_t w = 0; w < std::size(kLayouts); ++w) {
    const Layout& writers = kLayouts[w];
    ASSERT_EQ(Save(model_, writers, path_, Contents::kState, 2, &digest_).message(), "");
    if (first.empty()) first = digest_;
    EXPECT_EQ(digest_, first) << writers.ranks;
    for (size_t r = (w + static_cast<size_t>(GetParam().sparse)) % 2; r < std::size(kLayouts);
         r += 2) {
      const Layout& readers = kLayouts[r];
      const Status status = OnRanks(model_, readers, [&](StateRank& rank) -> Status {
        rank.Fill(1);  // what was there before is gone
        ELASTOR_ASSIGN_OR_RETURN(
            const CheckpointMetadata metadata,
            LoadCheckpoint(path_, Contents::kState, SomeModel(), rank.View(), *rank.communicator));
        EXPECT_EQ(metadata.state_digest, first);
        EXPECT_EQ(rank.Digest(metadata.control), first);
        return OkStatus();
      });
      EXPECT_EQ(status.message(), "") << writers.ranks << " ranks to " << readers.ranks;
      EXPECT_EQ(OnRanks(model_, readers,
                        [&](StateRank& rank) {
                          return VerifyCheckpoint(path_, *rank.communicator).status();
                        })
                    .message(),
                "");
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".old"));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, CheckpointOptimizerTest,
    testing::Values(Optimizers{OptimizerKind::kDenseAdam, OptimizerKind::kLazyAdam},
                    Optimizers{OptimizerKind::kDenseAdam, OptimizerKind::kDenseAdam},
                    Optimizers{OptimizerKind::kAdagrad, OptimizerKind::kRowWiseAdagrad},
                    Optimizers{OptimizerKind::kSgd, OptimizerKind::kAdagrad},
                    Optimizers{OptimizerKind::kAdagrad, OptimizerKind::kSgd}));

TEST_F(CheckpointTest, FactsComeBack) {
  ASSERT_TRUE(Save(model_, {2}, path_, Contents::kState, 1, &digest_).ok());
  const StatusOr<CheckpointMetadata> metadata = ReadCheckpointMetadata(path_);
  ASSERT_TRUE(metadata.ok()) << metadata.status().message();
  const CheckpointMetadata expected = SomeMetadata(Contents::kState);
  EXPECT_EQ(metadata->contents, Contents::kState);
  EXPECT_EQ(metadata->control.SerializeAsString(), expected.control.SerializeAsString());
  EXPECT_EQ(metadata->state_digest, digest_);
  EXPECT_EQ(metadata->numerics, expected.numerics);
  EXPECT_EQ(metadata->model_hash, expected.model_hash);
  EXPECT_EQ(metadata->numeric_hash, expected.numeric_hash);
  EXPECT_EQ(metadata->experiment, expected.experiment);
  EXPECT_EQ(metadata->data, expected.data);
}

TEST_F(CheckpointTest, ASynchronousCheckpointIsTheSame) {
  ASSERT_TRUE(Save(model_, {3}, path_, Contents::kState, 1, &digest_).ok());
  const std::string other = directory_ + "/other";
  const Status status = OnRanks(model_, {3}, [&](StateRank& rank) -> Status {
    rank.Fill(1);
    CheckpointWriter writer(rank.View(), /*staging_bytes=*/0, rank.communicator);
    ELASTOR_RETURN_IF_ERROR(writer.Start(other, SomeMetadata(Contents::kState)));
    EXPECT_TRUE(writer.done());
    rank.Fill(2);
    ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata, writer.Finish());
    EXPECT_EQ(metadata.state_digest, digest_);
    return OkStatus();
  });
  ASSERT_EQ(status.message(), "");
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string name = entry.path().filename();
    EXPECT_EQ(*ReadFile(other + "/" + name), *ReadFile(path_ + "/" + name)) << name;
  }
}

TEST_F(CheckpointTest, TrainingGoesOnWhileItIsWritten) {
  const Status status = OnRanks(model_, {3, PlanKind::kAuto, 2}, [&](StateRank& rank) -> Status {
    rank.Fill(1);
    const CheckpointMetadata metadata = SomeMetadata(Contents::kState);
    const std::string digest = rank.Digest(metadata.control);
    CheckpointWriter writer(rank.View(), kStaging, rank.communicator);
    EXPECT_FALSE(writer.active());
    ELASTOR_RETURN_IF_ERROR(writer.Start(path_, metadata));
    EXPECT_TRUE(writer.active());
    for (int seed = 2; seed < 6; ++seed) rank.Fill(seed);
    ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata written, writer.Finish());
    EXPECT_FALSE(writer.active());
    EXPECT_EQ(written.state_digest, digest);
    ELASTOR_ASSIGN_OR_RETURN(
        const CheckpointMetadata read,
        LoadCheckpoint(path_, Contents::kState, SomeModel(), rank.View(), *rank.communicator));
    EXPECT_EQ(rank.Digest(read.control), digest);
    return OkStatus();
  });
  EXPECT_EQ(status.message(), "");
}

// Weights from a model and from a checkpoint; rows that are in neither become those of the seed.
TEST_F(CheckpointTest, WeightsWithoutSlots) {
  for (const Contents contents : {Contents::kWeights, Contents::kState}) {
    ASSERT_TRUE(Save(model_, {2}, path_, contents, 2, &digest_).ok());
    EXPECT_EQ(ReadCheckpointMetadata(path_)->state_digest,
              contents == Contents::kState ? digest_ : "given");
    SmallModel reader = model_;
    reader.dense = reader.sparse = OptimizerKind::kSgd;
    const Layout layout = {3, PlanKind::kTableWise};
    const auto digest_of = [&](bool load) {
      std::string digest;
      const Status status = OnRanks(reader, layout, [&](StateRank& rank) -> Status {
        rank.Fill(load ? 1 : 2);
        if (load) {
          ELASTOR_RETURN_IF_ERROR(LoadCheckpoint(path_, Contents::kWeights, SomeModel(),
                                                 rank.View(), *rank.communicator)
                                      .status());
        }
        const std::string own = rank.Digest({});
        if (rank.communicator->rank() == 0) digest = own;
        return OkStatus();
      });
      EXPECT_EQ(status.message(), "");
      return digest;
    };
    EXPECT_EQ(digest_of(true), digest_of(false));
    const Status status = OnRanks(model_, layout, [&](StateRank& rank) -> Status {
      rank.Fill(1);
      ELASTOR_RETURN_IF_ERROR(
          LoadCheckpoint(path_, Contents::kWeights, SomeModel(), rank.View(), *rank.communicator)
              .status());
      rank.embedding->ForEachRow([&](int t, int64_t key, const float*, const float* slots) {
        const std::vector<float> m_and_v(slots, slots + 2 * rank.tables[t].width);
        EXPECT_THAT(m_and_v, Each(0.0f)) << t << " " << key;
      });
      return OkStatus();
    });
    EXPECT_EQ(status.message(), "");
  }
}

TEST_F(CheckpointTest, ReplacesAnOlderOne) {
  ASSERT_TRUE(Save(model_, {3}, path_, Contents::kState, 1, &digest_).ok());
  ASSERT_EQ(Save(model_, {2}, path_, Contents::kState, 2, &digest_).message(), "");
  EXPECT_EQ(ReadCheckpointMetadata(path_)->state_digest, digest_);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/embedding-00002-of-00003.safetensors"));
}

// A run killed after any step of writing and publishing: the older one is still read.
TEST_F(CheckpointTest, ACrashLeavesTheOlderOne) {
  ASSERT_TRUE(Save(model_, {2}, path_, Contents::kState, 1, &digest_).ok());
  const std::string whole = directory_ + "/whole";
  std::string newer;
  ASSERT_TRUE(Save(model_, {2}, whole, Contents::kState, 2, &newer).ok());
  const std::string partial = path_ + ".partial";
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(whole)) {
    names.push_back(entry.path().filename());
  }
  // Files appear one by one.
  std::filesystem::create_directory(partial);
  for (const std::string& name : names) {
    EXPECT_EQ(LoadError(Contents::kState), "");
    std::filesystem::copy_file(whole + "/" + name, partial + "/" + name);
  }
  EXPECT_EQ(ReadCheckpointMetadata(path_)->state_digest, digest_);
  std::filesystem::rename(path_, path_ + ".old");
  EXPECT_EQ(LoadError(Contents::kState), "");
  EXPECT_EQ(ReadCheckpointMetadata(path_)->state_digest, digest_);
  EXPECT_EQ(*LastCheckpoint(directory_), path_);
  // The next writer clears up, whatever it finds.
  ASSERT_EQ(Save(model_, {3}, path_, Contents::kState, 3, &digest_).message(), "");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".old"));
  EXPECT_FALSE(std::filesystem::exists(partial));
  std::filesystem::rename(path_, partial);
  std::filesystem::rename(whole, path_ + ".old");
  EXPECT_EQ(ReadCheckpointMetadata(path_)->state_digest, newer);
  std::filesystem::rename(partial, path_);
  EXPECT_EQ(ReadCheckpointMetadata(path_)->state_digest, digest_);
  EXPECT_EQ(LoadError(Contents::kState), "");
}

TEST_F(CheckpointTest, AWriterThatIsDroppedLeavesNothing) {
  const Status status = OnRanks(model_, {3}, [&](StateRank& rank) -> Status {
    rank.Fill(1);
    CheckpointWriter writer(rank.View(), kStaging, rank.communicator);
    return writer.Start(path_, SomeMetadata(Contents::kState));
  });
  EXPECT_EQ(status.message(), "");
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(CheckpointTest, SaysWhatHasAnotherShape) {
  EXPECT_THAT(LoadError(Contents::kState),
              AllOf(HasSubstr(path_ + "/manifest.json: open: No such file"),
                    EndsWith("expected the folder of a checkpoint or a model")));
  ASSERT_TRUE(Save(model_, {2}, path_, Contents::kState, 1, &digest_).ok());
  Experiment other = SomeModel().experiment;
  other.mutable_model()->mutable_rank_elastor()->set_blocks(3);
  EXPECT_EQ(LoadError(Contents::kState, {other, SomeModel().data}),
            "model.rank_elastor.blocks: 3; expected 2, as in " + path_ +
                "/manifest.json: a model's experiment must be that of its training");
  DatasetInfo data = SomeModel().data;
  data.numeric[0].mean = 0.25;
  const ModelIdentity moved = {SomeModel().experiment, data};
  EXPECT_EQ(LoadError(Contents::kState, moved),
            "data.path: : numeric field n: mean 0.25; " + path_ +
                "/manifest.json was trained on 0.5; prepare the rows with the training set's "
                "schema and --vocabulary_from=the training set");
  model_.weight_shape = {4, 301};
  // The wrong experiment is named, not the tensors that follow from it.
  EXPECT_THAT(LoadError(Contents::kState, {other, SomeModel().data}),
              HasSubstr("model.rank_elastor.blocks: 3; expected 2"));
  EXPECT_EQ(LoadError(Contents::kState),
            path_ + "/dense.safetensors: tensor 'weight' is F32 [4, 300]; expected F32 [4, 301]");
  model_ = {};
  model_.tables[1].width = 2;
  EXPECT_EQ(LoadError(Contents::kState),
            path_ +
                "/manifest.json: table 'short' has columns rows 5, m 5, v 5; expected rows 2, "
                "m 2, v 2");
  model_ = {};
  model_.tables[0].rows = 100;
  EXPECT_EQ(LoadError(Contents::kState),
            path_ + "/manifest.json: table 'long' has 10000 keys; expected 100");
  model_ = {};
  model_.tables[2].name = "other";
  EXPECT_EQ(LoadError(Contents::kState), path_ + "/manifest.json: has no table 'other'");
  model_ = {};
  model_.tables.pop_back();
  EXPECT_EQ(LoadError(Contents::kState),
            path_ + "/manifest.json: has 3 tables; expected the model's 2");
  model_ = {};
  model_.dense = OptimizerKind::kAdagrad;
  EXPECT_THAT(LoadError(Contents::kState), HasSubstr("has no tensor 'weight/a'; expected F32"));
  model_.dense = OptimizerKind::kSgd;
  EXPECT_THAT(LoadError(Contents::kState), HasSubstr("has 9 tensors; expected the model's 3"));
  model_ = {};
  ASSERT_TRUE(Save(model_, {2}, path_, Contents::kWeights, 1, &digest_).ok());
  EXPECT_THAT(LoadError(Contents::kState), HasSubstr("contents 'weights'; expected 'state'"));
}

// Pieces of many partitions in order, and partitions in several pieces, are read alike.
TEST_F(CheckpointTest, TablesOfManyPieces) {
  model_.tables = {{"wide", 9000, 64, 0.1}, {"short", 20, 5, 0.1}};
  const Layout writer = {2, PlanKind::kRowWise, 2};
  ASSERT_EQ(Save(model_, writer, path_, Contents::kState, 1, &digest_).message(), "");
  const StatusOr<Manifest> manifest = ParseManifest(path_, *ReadFile(path_ + "/" + kManifestFile));
  ASSERT_TRUE(manifest.ok());
  ASSERT_EQ(manifest->embedding.size(), 2u);
  for (const EmbeddingFile& file : manifest->embedding) {
    EXPECT_GT(file.pieces[0].size(), 3u);
    for (const RowPiece& piece : file.pieces[0]) {
      EXPECT_EQ(piece.hashes.size(), 4u);
      EXPECT_LT(piece.rows.size() * 776, 2 * (256 << 10));
    }
  }
  for (const Layout& layout : kLayouts) {
    EXPECT_EQ(OnRanks(model_, layout,
                      [&](StateRank& rank) {
                        return LoadCheckpoint(path_, Contents::kState, SomeModel(), rank.View(),
                                              *rank.communicator)
                            .status();
                      })
                  .message(),
              "");
  }
}

TEST(ModelHashTest, KnowsWhatPredictionsDependOn) {
  Experiment experiment;
  DatasetInfo data;
  data.numeric = {{"n"}};
  data.categorical = {{"c", 10}};
  const std::string hash = MakeModelHash({experiment, data});
  EXPECT_EQ(hash.size(), 16u);

  Experiment other = experiment;
  other.mutable_training()->set_max_steps(5);
  other.mutable_optimizer()->set_learning_rate(0.5);
  other.mutable_parallel()->set_virtual_shards(32);
  EXPECT_EQ(MakeModelHash({other, data}), hash);

  const std::function<void(Experiment*)> changes[] = {
      [](Experiment* e) { e->mutable_model()->mutable_rank_elastor()->set_blocks(3); },
      [](Experiment* e) { e->mutable_embedding()->set_init_stddev(0.5); },
      [](Experiment* e) { e->mutable_training()->set_seed(1); },
  };
  for (const auto& change : changes) {
    other = experiment;
    change(&other);
    EXPECT_NE(MakeModelHash({other, data}), hash) << other.ShortDebugString();
  }
  const std::function<void(DatasetInfo::Categorical*)> fields[] = {
      [](DatasetInfo::Categorical* c) { c->ids = 11; },
      [](DatasetInfo::Categorical* c) { c->mean_pooling = true; },
      [](DatasetInfo::Categorical* c) { c->shares = 0; },
  };
  for (const auto& change : fields) {
    DatasetInfo changed = data;
    change(&changed.categorical[0]);
    EXPECT_NE(MakeModelHash({experiment, changed}), hash);
  }
}

}  // namespace
}  // namespace elastor
