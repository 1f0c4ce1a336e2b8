#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "core/base/file.h"
#include "core/process/claimed_folder.h"
#include "embedding/admission.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trainer/checkpoint/checkpoint_testing.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/compact.h"
#include "trainer/checkpoint/manifest.h"

namespace elastor {
namespace {

const Layout kDeltaLayouts[] = {{1, PlanKind::kRowWise, 2},
                                {3, PlanKind::kTableWise},
                                {5, PlanKind::kReplicated, 2},
                                {16, PlanKind::kRowWise}};

// Fill(2) makes the rows whose key is 2 modulo 3.
std::vector<int64_t> Keys(int64_t begin, int64_t end, int64_t stride) {
  std::vector<int64_t> keys;
  for (int64_t key = begin; key < end; key += stride) keys.push_back(key);
  return keys;
}

CheckpointMetadata MetadataAt(int64_t step) {
  CheckpointMetadata metadata = SomeMetadata(Contents::kState);
  metadata.control.set_step(step);
  return metadata;
}

class DeltaTest : public testing::Test {
 protected:
  DeltaTest() { model_.track_touched = true; }

  std::string Path(int64_t step) const { return directory_ + "/" + CheckpointName(step); }

  // Writes the state on `rank`, which must have the digest that it says.
  StatusOr<CheckpointMetadata> Write(int64_t step, bool delta, StateRank* rank,
                                     CheckpointWriter* writer) const {
    const CheckpointMetadata metadata = MetadataAt(step);
    const std::string digest = rank->Digest(metadata.control);
    ELASTOR_RETURN_IF_ERROR(delta ? writer->StartDelta(Path(step), metadata)
                                  : writer->Start(Path(step), metadata));
    ELASTOR_ASSIGN_OR_RETURN(CheckpointMetadata written, writer->Finish());
    EXPECT_EQ(written.state_digest, digest) << step;
    return written;
  }

  // A full state at step 1, deltas at 2 and 3: rows trained again, rows that are new, a row that is
  // set. All are of step 1. At step 4 the state of step 3 once more, as a full one.
  Status WriteAll(const Layout& layout) {
    return OnRanks(model_, layout, [&](StateRank& rank) -> Status {
      CheckpointWriter writer(rank.View(), kStaging, rank.communicator);
      rank.Fill(2);
      ELASTOR_RETURN_IF_ERROR(Write(1, false, &rank, &writer).status());
      rank.Train(Keys(2, 1000, 6), 1);  // were there
      rank.Train(Keys(0, 300, 3), 2);   // were not
      ELASTOR_ASSIGN_OR_RETURN(CheckpointMetadata delta, Write(2, true, &rank, &writer));
      EXPECT_EQ(delta.base.value_or(CheckpointBase()).name, CheckpointName(1));
      rank.Train(Keys(0, 600, 2), 3);  // of all kinds
      const std::vector<float> row(3 + 6, 0.25f);
      rank.embedding->SetRow(0, 9998, row.data(), row.data() + 3);
      for (float& weight : rank.weights) weight += 1;
      ELASTOR_ASSIGN_OR_RETURN(delta, Write(3, true, &rank, &writer));
      EXPECT_EQ(delta.base.value_or(CheckpointBase()).name, CheckpointName(1));
      ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata full, Write(4, false, &rank, &writer));
      EXPECT_FALSE(full.base.has_value());
      return OkStatus();
    });
  }

  // The digest of what is read from a folder, and that of its manifest.
  void ExpectRead(int64_t step, const Layout& layout) {
    const Status status = OnRanks(model_, layout, [&](StateRank& rank) -> Status {
      rank.Fill(1);  // what was there before is gone
      ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata,
                               LoadCheckpoint(Path(step), Contents::kState, SomeModel(),
                                              rank.View(), *rank.communicator));
      EXPECT_EQ(metadata.control.step(), step);
      EXPECT_EQ(rank.Digest(metadata.control), metadata.state_digest);
      return VerifyCheckpoint(Path(step), *rank.communicator).status();
    });
    EXPECT_EQ(status.message(), "") << step << " on " << layout.ranks;
  }

  using Values = std::map<std::pair<int, int64_t>, std::vector<float>>;
  // Every value that is read from a folder.
  Values ValuesOf(int64_t step) {
    Values values;
    std::mutex mutex;
    const Status status = OnRanks(model_, {2, PlanKind::kAuto}, [&](StateRank& rank) -> Status {
      ELASTOR_RETURN_IF_ERROR(
          LoadCheckpoint(Path(step), Contents::kState, SomeModel(), rank.View(), *rank.communicator)
              .status());
      const std::lock_guard lock(mutex);
      values[{-1, 0}] = rank.weights;
      rank.embedding->ForEachRow([&](int t, int64_t key, const float* weights, const float* slots) {
        const int64_t width = rank.tables[t].width;
        values[{t, key}].assign(weights, weights + width);
        values[{t, key}].insert(values[{t, key}].end(), slots, slots + 2 * width);
      });
      return OkStatus();
    });
    EXPECT_EQ(status.message(), "");
    return values;
  }

  int64_t RowsIn(int64_t step) const {
    const StatusOr<Manifest> manifest =
        ParseManifest(Path(step), *ReadFile(Path(step) + "/" + kManifestFile));
    int64_t rows = 0;
    for (const EmbeddingFile& file : manifest->embedding) {
      for (const std::vector<RowPiece>& pieces : file.pieces) {
        for (const RowPiece& piece : pieces) rows += piece.rows.size();
      }
    }
    return rows;
  }

  SmallModel model_;
  const std::string directory_ = ScratchDirectory();
};

// Each optimizer has half of the pairs of writers and readers.
TEST_F(DeltaTest, AnyRanksReadWhatAnyRanksWrote) {
  for (const OptimizerKind sparse :
       {OptimizerKind::kLazyAdam, OptimizerKind::kRowWiseAdagrad, OptimizerKind::kSgd}) {
    model_.sparse = sparse;
    for (size_t w = 0; w < std::size(kDeltaLayouts); ++w) {
      const Layout& writers = kDeltaLayouts[w];
      if (sparse == OptimizerKind::kLazyAdam) {
        ASSERT_EQ(WriteAll(writers).message(), "") << writers.ranks;
        EXPECT_EQ(RowsIn(1), 3333 + 3);
        EXPECT_EQ(RowsIn(2), 167 + 100);
        // 300 even keys; before them 100 and 167, of which 50 and 100 are even and below 600.
        EXPECT_EQ(RowsIn(3), 300 + 50 + 67 + 1);
      } else {
        const Status status = OnRanks(model_, writers, [&](StateRank& rank) -> Status {
          CheckpointWriter writer(rank.View(), kStaging, rank.communicator);
          rank.Fill(2);
          ELASTOR_RETURN_IF_ERROR(Write(1, false, &rank, &writer).status());
          rank.Train(Keys(1, 700, 1), 1);
          return Write(2, true, &rank, &writer).status();
        });
        ASSERT_EQ(status.message(), "") << writers.ranks;
      }
      for (size_t r = (w + static_cast<size_t>(sparse)) % 2; r < std::size(kDeltaLayouts); r += 2) {
        ExpectRead(2, kDeltaLayouts[r]);
      }
      if (sparse == OptimizerKind::kLazyAdam) ExpectRead(3, kDeltaLayouts[1]);
    }
  }
}

// Rows of a keyed table that went, that went and came back, and that were born and went since the
// base: deltas hold the keys of the first alone. On any ranks, from memory and from the files, and
// as one folder.
TEST_F(DeltaTest, RowsThatGoAndReturn) {
  model_.tables[0].keyed = model_.tables[0].keeps_use = true;
  model_.tables[0].rules = {.policy = RowRules::Policy::kLru};
  const int64_t scattered = 0x1000193;  // keys beyond 2^63, too
  const auto scatter = [&](std::vector<int64_t> keys) {
    for (int64_t& key : keys) key = (key - 200) * scattered * scattered;
    return keys;
  };
  const std::vector<int64_t> first = scatter(Keys(0, 3000, 1));
  const auto remove = [&](StateRank* rank, const std::vector<int64_t>& keys) {
    for (const int64_t key : keys) rank->embedding->RemoveRow(0, key);
  };
  for (const Layout& writers : kDeltaLayouts) {
    for (const int64_t staging : {kStaging, int64_t{0}}) {
      if (staging == 0 && writers.ranks != 3) continue;
      const Status status = OnRanks(model_, writers, [&](StateRank& rank) -> Status {
        CheckpointWriter writer(rank.View(), staging, rank.communicator);
        rank.Train(first, 1);
        ELASTOR_RETURN_IF_ERROR(Write(1, false, &rank, &writer).status());
        remove(&rank, scatter(Keys(0, 900, 1)));      // went
        rank.Train(scatter(Keys(0, 300, 1)), 2);      // came back
        rank.Train(scatter(Keys(5000, 5400, 1)), 3);  // were born
        remove(&rank, scatter(Keys(5000, 5300, 1)));  // and went
        ELASTOR_RETURN_IF_ERROR(Write(2, true, &rank, &writer).status());
        remove(&rank, scatter(Keys(100, 300, 1)));  // came back and went again
        rank.Train(scatter(Keys(400, 500, 1)), 4);
        ELASTOR_RETURN_IF_ERROR(Write(3, true, &rank, &writer).status());
        return Write(4, false, &rank, &writer).status();
      });
      ASSERT_EQ(status.message(), "") << writers.ranks;
      EXPECT_EQ(RowsIn(1), 3000);
      EXPECT_EQ(RowsIn(2), 300 + 100 + 600);
      EXPECT_EQ(RowsIn(3), 100 + 100 + 100 + 700);
      EXPECT_EQ(RowsIn(4), 3000 - 700 + 100);
      for (const Layout& readers : kDeltaLayouts) ExpectRead(3, readers);
      ExpectRead(2, kDeltaLayouts[1]);
      ExpectRead(4, kDeltaLayouts[2]);
    }
  }
  // Deltas go on from what was read, with the keys that were gone.
  const Status status = OnRanks(model_, {4}, [&](StateRank& rank) -> Status {
    ELASTOR_ASSIGN_OR_RETURN(
        const CheckpointMetadata read,
        LoadCheckpoint(Path(3), Contents::kState, SomeModel(), rank.View(), *rank.communicator));
    CheckpointWriter writer(rank.View(), kStaging, rank.communicator);
    writer.ContinueFrom(Path(3), read);
    rank.Train(scatter(Keys(150, 160, 1)), 5);
    ELASTOR_RETURN_IF_ERROR(Write(5, true, &rank, &writer).status());
    return CompactCheckpoint(Path(3), Path(13), 1, *rank.communicator).status();
  });
  ASSERT_EQ(status.message(), "");
  EXPECT_EQ(RowsIn(5), 1000);  // of the gone, ten came back
  ExpectRead(5, {3, PlanKind::kReplicated});
  EXPECT_EQ(RowsIn(13), RowsIn(4));
  EXPECT_EQ(ReadCheckpointMetadata(Path(13))->state_digest,
            ReadCheckpointMetadata(Path(3))->state_digest);
}

// Counts, sketches and shared rows of an admission are part of states, whole and in deltas, and
// none of models.
TEST_F(DeltaTest, AdmissionIsPartOfTheState) {
  model_.tables.resize(1);
  model_.tables[0].keyed = true;
  for (const bool sketched : {false, true}) {
    RowRules& rules = model_.tables[0].rules;
    rules = {.min_count = 3, .shares_rows = true};
    sketched ? rules.sketch_lines = 2 : rules.count_ttl_steps = 5;
    const std::vector<TableSpec> plain = {model_.tables[0]};
    model_.tables = WithAdmission(plain);
    ASSERT_EQ(model_.tables.size(), 3u);
    for (const Layout& writers : {kDeltaLayouts[0], kDeltaLayouts[3]}) {
      const Status status = OnRanks(model_, writers, [&](StateRank& rank) -> Status {
        CheckpointWriter writer(rank.View(), kStaging, rank.communicator);
        rank.Train(Keys(0, 900, 1), 1);
        rank.Train(Keys(0, 300, 1), 2);
        ELASTOR_RETURN_IF_ERROR(Write(1, false, &rank, &writer).status());
        rank.Train(Keys(200, 400, 1), 3);  // admits 100 keys
        rank.Train(Keys(1000, 1050, 1), 4);
        ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata delta, Write(2, true, &rank, &writer));
        EXPECT_TRUE(delta.base.has_value());
        return OkStatus();
      });
      ASSERT_EQ(status.message(), "") << writers.ranks;
      for (const int readers : {1, 2}) ExpectRead(2, kDeltaLayouts[readers]);
    }
    // What is read counts on: the third occurrence admits.
    int64_t rows = 0;
    const auto train_on = [&](StateRank& rank) -> Status {
      ELASTOR_RETURN_IF_ERROR(
          LoadCheckpoint(Path(2), Contents::kState, SomeModel(), rank.View(), *rank.communicator)
              .status());
      rank.Train(Keys(0, 150, 1), 5);
      for (const int64_t of_partition : rank.embedding->CountRows(0)) rows += of_partition;
      return CompactCheckpoint(Path(2), Path(12), 1, *rank.communicator).status();
    };
    std::filesystem::remove_all(Path(12));
    ASSERT_EQ(OnRanks(model_, {1}, train_on).message(), "");
    EXPECT_GE(rows, 100 + 150);
    EXPECT_LE(rows, sketched ? 260 : 250);  // a sketch may count too much
    EXPECT_EQ(ReadCheckpointMetadata(Path(12))->state_digest,
              ReadCheckpointMetadata(Path(2))->state_digest);
    const StatusOr<Manifest> compacted =
        ParseManifest(Path(12), *ReadFile(Path(12) + "/" + kManifestFile));
    EXPECT_TRUE(compacted->tables[2].counts && !compacted->tables[1].counts);
    // A model has no counts, and is read without them.
    std::string digest;
    const std::string weights = directory_ + "/weights" + (sketched ? "1" : "0");
    ASSERT_TRUE(Save(model_, {2}, weights, Contents::kWeights, 1, &digest).ok());
    const Status read = OnRanks(model_, {3}, [&](StateRank& rank) -> Status {
      for (const std::string& path : {weights, Path(2)}) {
        ELASTOR_RETURN_IF_ERROR(
            LoadCheckpoint(path, Contents::kWeights, SomeModel(), rank.View(), *rank.communicator)
                .status());
        for (const int64_t of_partition : rank.embedding->CountRows(2)) EXPECT_EQ(of_partition, 0);
      }
      return OkStatus();
    });
    EXPECT_EQ(read.message(), "");
    model_.tables = plain;
  }
}

// A delta with its base, written as one folder on any ranks, is what a full state of its step is.
TEST_F(DeltaTest, CompactedItNeedsNoBase) {
  for (const OptimizerKind dense : {OptimizerKind::kDenseAdam, OptimizerKind::kSgd}) {
    model_.dense = dense;
    ASSERT_EQ(WriteAll({3, PlanKind::kRowWise}).message(), "");
    const std::string digest = ReadCheckpointMetadata(Path(3))->state_digest;
    for (const Layout& layout : {Layout{3, PlanKind::kRowWise, 2}, Layout{1}, Layout{5}}) {
      const int64_t to = 10 + layout.ranks;
      std::filesystem::remove_all(Path(to));
      const Status status = OnRanks(model_, layout, [&](StateRank& rank) -> Status {
        ELASTOR_ASSIGN_OR_RETURN(
            const CheckpointMetadata compacted,
            CompactCheckpoint(Path(3), Path(to), layout.threads, *rank.communicator));
        EXPECT_FALSE(compacted.base.has_value());
        EXPECT_EQ(compacted.state_digest, digest);
        return OkStatus();
      });
      ASSERT_EQ(status.message(), "") << layout.ranks;
      EXPECT_EQ(RowsIn(to), RowsIn(4));
    }
    for (const auto& entry : std::filesystem::directory_iterator(Path(13))) {
      const std::string name = entry.path().filename();
      if (name == kManifestFile) continue;  // of another step than the full one's
      EXPECT_EQ(*ReadFile(Path(13) + "/" + name), *ReadFile(Path(4) + "/" + name)) << name;
    }
    const std::string base = Path(1);
    std::filesystem::rename(base, base + ".away");
    for (const int64_t compacted : {11, 13, 15}) {
      const Status status = OnRanks(model_, {2, PlanKind::kAuto}, [&](StateRank& rank) -> Status {
        ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata read,
                                 LoadCheckpoint(Path(compacted), Contents::kState, SomeModel(),
                                                rank.View(), *rank.communicator));
        EXPECT_EQ(read.control.step(), 3);
        return VerifyCheckpoint(Path(compacted), *rank.communicator).status();
      });
      EXPECT_EQ(status.message(), "");
    }
    std::filesystem::rename(base + ".away", base);
  }
}

TEST_F(DeltaTest, WhatCannotBeCompacted) {
  ASSERT_EQ(WriteAll({2}).message(), "");
  const std::string weights = directory_ + "/weights", to = directory_ + "/compacted";
  std::string digest;
  ASSERT_TRUE(Save(model_, {1}, weights, Contents::kWeights, 1, &digest).ok());
  const auto self = MakeSelfCommunicator();
  const auto mistake = [&](const std::string& from, const std::string& into) {
    return CompactCheckpoint(from, into, 1, *self).status().message();
  };
  EXPECT_EQ(mistake(weights, to), weights +
                                      "/manifest.json: contents 'weights', which are one folder "
                                      "already; expected 'state', a checkpoint of training");
  EXPECT_EQ(
      mistake(Path(3), Path(2)),
      "--output_dir=" + Path(2) + ": holds 'dense.safetensors'; expected a new or empty directory");
  // What is beside it under a name that a writer uses stays, be it what is read.
  for (const auto& [name, held] :
       {std::pair(to + ".old", "dense.safetensors"), std::pair(to + ".partial", "manifest.json")}) {
    std::filesystem::rename(Path(1), name);
    EXPECT_EQ(mistake(name, to),
              name + ": holds '" + held + "', and would be removed; expected another --output_dir");
    std::filesystem::rename(name, Path(1));
  }
  std::filesystem::rename(Path(1), Path(1) + ".away");
  EXPECT_THAT(mistake(Path(3), to), testing::HasSubstr("a delta of " + CheckpointName(1)));
  std::filesystem::rename(Path(1) + ".away", Path(1));
  // A row of the base that is another.
  const std::string file = Path(1) + "/embedding-00000-of-00002.safetensors";
  std::string bytes = *ReadFile(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(WriteFileAtomically(file, bytes).ok());
  EXPECT_THAT(mistake(Path(3), to), testing::HasSubstr("does not match its hash"));
  EXPECT_FALSE(std::filesystem::exists(to));
  EXPECT_FALSE(std::filesystem::exists(to + ".partial"));
  // What a compaction that was killed has left is its own.
  std::filesystem::create_directories(to + ".partial/vocabulary");
  std::filesystem::create_directory(to);
  for (const char* name : {"dense.safetensors", "embedding-00000-of-00001.safetensors.tmp"}) {
    ASSERT_TRUE(WriteFileAtomically(to + ".partial/" + name, "cut off").ok());
  }
  {
    // Another one that is at work there.
    const StatusOr<ClaimedFolder> claimed = ClaimedFolder::Claim(to);
    EXPECT_EQ(mistake(Path(4), to), "--output_dir=" + to + ": another process is writing there");
    EXPECT_TRUE(std::filesystem::exists(to + ".partial/vocabulary"));
  }
  EXPECT_EQ(mistake(Path(4), to + "//"), "");
  EXPECT_EQ(VerifyCheckpoint(to, *self).status().message(), "");
}

TEST_F(DeltaTest, ADeltaAndAFullOneAreTheSameState) {
  ASSERT_EQ(WriteAll({3, PlanKind::kAuto, 2}).message(), "");
  const Values delta = ValuesOf(3);
  EXPECT_GT(delta.size(), 3500u);
  EXPECT_EQ(delta, ValuesOf(4));
  EXPECT_NE(delta, ValuesOf(2));
}

// Weights alone, and a state that notes nothing.
TEST_F(DeltaTest, WeightsOfADelta) {
  ASSERT_EQ(WriteAll({2}).message(), "");
  SmallModel reader;
  reader.dense = reader.sparse = OptimizerKind::kSgd;
  std::vector<std::string> digests;
  for (const int64_t step : {3, 4}) {
    const Status status = OnRanks(reader, {1}, [&](StateRank& rank) -> Status {
      ELASTOR_RETURN_IF_ERROR(LoadCheckpoint(Path(step), Contents::kWeights, SomeModel(),
                                             rank.View(), *rank.communicator)
                                  .status());
      digests.push_back(rank.Digest({}));
      return OkStatus();
    });
    ASSERT_EQ(status.message(), "");
  }
  EXPECT_EQ(digests[0], digests[1]);
}

// Deltas go on from what was read, a delta or a full one, on other ranks.
TEST_F(DeltaTest, GoesOnFromWhatWasRead) {
  ASSERT_EQ(WriteAll({2, PlanKind::kRowWise, 2}).message(), "");
  for (const int64_t from : {1, 2, 4}) {
    const Status status = OnRanks(model_, {3, PlanKind::kAuto}, [&](StateRank& rank) -> Status {
      ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata read,
                               LoadCheckpoint(Path(from), Contents::kState, SomeModel(),
                                              rank.View(), *rank.communicator));
      CheckpointWriter writer(rank.View(), kStaging, rank.communicator);
      writer.ContinueFrom(Path(from), read);
      rank.Train(Keys(500, 1100, 5), 4);
      ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata delta, Write(5, true, &rank, &writer));
      EXPECT_EQ(delta.base.value_or(CheckpointBase()).name, CheckpointName(from == 4 ? 4 : 1));
      return OkStatus();
    });
    ASSERT_EQ(status.message(), "") << from;
    ExpectRead(5, {4, PlanKind::kRowWise});
    EXPECT_EQ(RowsIn(5), from == 2 ? 167 + 100 + 120 - 17 : 120) << from;
  }
}

TEST_F(DeltaTest, AFullOneWhereADeltaCannotBe) {
  const Status status = OnRanks(model_, {2}, [&](StateRank& rank) -> Status {
    rank.Fill(2);
    CheckpointWriter writer(rank.View(), kStaging, rank.communicator);
    const auto is_delta = [&](int64_t step) {
      const StatusOr<CheckpointMetadata> written = Write(step, true, &rank, &writer);
      EXPECT_TRUE(written.ok()) << written.status().message();
      return written->base.has_value();
    };
    EXPECT_FALSE(is_delta(1));        // none before it
    rank.Train(Keys(2, 4500, 3), 1);  // 1,500 of 3,336 rows
    EXPECT_TRUE(is_delta(2));
    rank.Train(Keys(4502, 6000, 3), 2);  // 2,000
    EXPECT_FALSE(is_delta(3));           // too many
    rank.Train({2}, 3);
    EXPECT_TRUE(is_delta(4));
    // Another directory has no base.
    EXPECT_TRUE(writer.StartDelta(directory_ + "/other/" + CheckpointName(5), MetadataAt(5)).ok());
    const StatusOr<CheckpointMetadata> other = writer.Finish();
    EXPECT_TRUE(other.ok() && !other->base.has_value());
    return OkStatus();
  });
  EXPECT_EQ(status.message(), "");
  model_.track_touched = false;
  const Status untracked = OnRanks(model_, {2}, [&](StateRank& rank) -> Status {
    CheckpointWriter writer(rank.View(), kStaging, rank.communicator);
    for (const int64_t step : {6, 7}) {
      rank.Train({2}, step);
      ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata full, Write(step, true, &rank, &writer));
      EXPECT_FALSE(full.base.has_value());
    }
    return OkStatus();
  });
  EXPECT_EQ(untracked.message(), "");
}

// The state is that of StartDelta, whatever training does meanwhile; without room for a copy it is
// written while training waits, to the same bytes.
TEST_F(DeltaTest, TrainingGoesOnWhileItIsWritten) {
  for (const int64_t staging : {kStaging, int64_t{0}}) {
    const Status status = OnRanks(model_, {3, PlanKind::kAuto, 2}, [&](StateRank& rank) -> Status {
      rank.Fill(2);
      CheckpointWriter writer(rank.View(), staging, rank.communicator);
      ELASTOR_RETURN_IF_ERROR(Write(1, false, &rank, &writer).status());
      rank.Train(Keys(0, 600, 2), 1);
      const int64_t step = staging > 0 ? 2 : 3;
      const CheckpointMetadata metadata = MetadataAt(2);
      const std::string digest = rank.Digest(metadata.control);
      ELASTOR_RETURN_IF_ERROR(writer.StartDelta(Path(step), metadata));
      rank.Train(Keys(0, 900, 1), 2);
      ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata delta, writer.Finish());
      EXPECT_TRUE(delta.base.has_value());
      EXPECT_EQ(delta.state_digest, digest);
      // So is the next one, whose rows were touched while this one was written.
      return Write(4, true, &rank, &writer).status();
    });
    ASSERT_EQ(status.message(), "");
    ExpectRead(4, {2});
  }
  for (const auto& entry : std::filesystem::directory_iterator(Path(2))) {
    const std::string name = entry.path().filename();
    EXPECT_EQ(*ReadFile(Path(3) + "/" + name), *ReadFile(Path(2) + "/" + name)) << name;
  }
}

// Rows that are touched while a full one is written belong to the next delta.
TEST_F(DeltaTest, TouchedWhileTheFullOneIsWritten) {
  const Status status = OnRanks(model_, {3, PlanKind::kAuto, 2}, [&](StateRank& rank) -> Status {
    rank.Fill(2);
    CheckpointWriter writer(rank.View(), kStaging, rank.communicator);
    ELASTOR_RETURN_IF_ERROR(writer.Start(Path(1), MetadataAt(1)));
    rank.Train(Keys(0, 600, 2), 1);
    ELASTOR_RETURN_IF_ERROR(writer.Finish().status());
    ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata delta, Write(2, true, &rank, &writer));
    EXPECT_TRUE(delta.base.has_value());
    return OkStatus();
  });
  ASSERT_EQ(status.message(), "");
  EXPECT_EQ(RowsIn(2), 300);
  ExpectRead(2, {2});
}

// A run that is killed after any step of writing a delta, or of clearing up, goes on from the one
// before it; deltas are not in each other's way.
TEST_F(DeltaTest, ACrashLeavesTheOlderOne) {
  ASSERT_EQ(WriteAll({2}).message(), "");
  std::filesystem::remove_all(Path(4));
  const std::string whole = directory_ + "/whole", partial = Path(3) + ".partial";
  std::filesystem::rename(Path(3), whole);
  std::filesystem::create_directory(partial);
  for (const auto& entry : std::filesystem::directory_iterator(whole)) {
    EXPECT_EQ(*LastCheckpoint(directory_), Path(2));
    ExpectRead(2, {3});
    std::filesystem::copy(entry.path(), partial + "/" + entry.path().filename().string());
  }
  std::filesystem::rename(partial, Path(3));
  EXPECT_EQ(*LastCheckpoint(directory_), Path(3));
  std::filesystem::remove_all(Path(2));
  ExpectRead(3, {3});
  // The base under the name that it has while it is replaced.
  std::filesystem::rename(Path(1), Path(1) + ".old");
  ExpectRead(3, {2});
  // Through a link, and from within.
  std::filesystem::create_directory(directory_ + "/links");
  std::filesystem::create_directory_symlink(Path(3), directory_ + "/links/" + CheckpointName(3));
  const auto self = MakeSelfCommunicator();
  EXPECT_EQ(VerifyCheckpoint(directory_ + "/links/" + CheckpointName(3), *self).status().message(),
            "");
}

}  // namespace
}  // namespace elastor
