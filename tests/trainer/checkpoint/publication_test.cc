#include "trainer/checkpoint/publication.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "embedding/admission.h"
#include "gtest/gtest.h"
#include "tests/trainer/checkpoint/checkpoint_testing.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/published_keys.h"
#include "trainer/checkpoint/stored_checkpoint.h"

namespace elastor {
namespace {

const Layout kPublishers[] = {{1, PlanKind::kRowWise, 2},
                              {3, PlanKind::kTableWise},
                              {5, PlanKind::kReplicated, 2},
                              {7, PlanKind::kRowWise}};

SmallModel PublishedModel() {
  SmallModel model;
  model.track_unpublished = true;
  return model;
}

std::vector<int64_t> EveryKey(int64_t end, int64_t stride) {
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < end; key += stride) keys.push_back(key);
  return keys;
}

// Publishes numbers 1 (a base), 2 (a delta) and 3 (both) of a training of three steps.
Status PublishThree(const Layout& layout, const std::string& folder, int64_t keep_bases,
                    RowFormat rows = RowFormat::kFloat32) {
  return OnRanks(PublishedModel(), layout, [&](StateRank& rank) -> Status {
    PublicationWriter writer(rank.View(), rank.communicator);
    CheckpointMetadata metadata = SomeMetadata(Contents::kWeights);
    Publication last;
    const auto publish = [&](const PublicationWriter::Parts& parts) -> Status {
      ELASTOR_ASSIGN_OR_RETURN(metadata.state_digest,
                               WeightsDigest(rank.View(), rows, *rank.communicator));
      last.follows = last.result;
      ++last.number;
      last.run = "0123456789abcdef";
      last.rows = rows;
      metadata.control.set_step(last.number);
      metadata.publication = last;
      last.result = PublicationResult(last, last.number, metadata.state_digest);
      if (last.origin.empty()) last.origin = last.result;
      ELASTOR_RETURN_IF_ERROR(writer.Start(folder, metadata, parts, "", keep_bases));
      rank.Train(EveryKey(100, 7), 10 + last.number);  // while it is written; of the next one
      return writer.Finish();
    };
    rank.Fill(2);
    rank.Train(EveryKey(300, 2), 1);
    ELASTOR_RETURN_IF_ERROR(publish({.base = true}));
    rank.Train(EveryKey(600, 5), 2);
    for (float& weight : rank.weights) weight += 1;
    ELASTOR_RETURN_IF_ERROR(publish({.delta = true}));
    rank.Train(EveryKey(30, 3), 3);
    return publish({.base = true, .delta = true});
  });
}

std::map<std::string, std::string> FilesOf(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[entry.path().lexically_relative(folder)] = *ReadFile(entry.path());
  }
  return files;
}

int64_t RowsOf(const Manifest& manifest, size_t table) {
  int64_t rows = 0;
  for (const EmbeddingFile& file : manifest.embedding) {
    for (const RowPiece& piece : file.pieces[table]) rows += piece.rows.size();
  }
  return rows;
}

TEST(PublicationTest, AnyRanksPublishTheSameBytes) {
  const std::string directory = ScratchDirectory();
  for (const RowFormat rows : {RowFormat::kFloat32, RowFormat::kInt4}) {
    std::map<std::string, std::string> expected;
    for (const Layout& layout : kPublishers) {
      const std::string folder =
          directory + "/" + std::string(RowFormatName(rows)) + std::to_string(layout.ranks);
      EXPECT_EQ(PublishThree(layout, folder, 9, rows).message(), "") << layout.ranks;
      const auto files = FilesOf(folder);
      EXPECT_EQ(files.size(), 4 * 3u) << layout.ranks;
      if (expected.empty()) expected = files;
      EXPECT_TRUE(files == expected) << layout.ranks << " ranks published other bytes";
    }
  }
}

TEST(PublicationTest, SmallRowsAreTakenByTheirReadersAlone) {
  const std::string folder = ScratchDirectory() + "/published";
  ASSERT_EQ(PublishThree({2, PlanKind::kRowWise}, folder, 9, RowFormat::kInt8).message(), "");
  const std::string base = folder + "/" + PublishedBaseName(3);
  const auto self = MakeSelfCommunicator();
  EXPECT_EQ(StoredCheckpoint::Open(base, *self).status().message(),
            base +
                "/manifest.json: has INT8 rows, for scoring raw rows and serving alone; expected "
                "a model with FLOAT32 rows");
  const auto stored = StoredCheckpoint::Open(base, *self, StoredCheckpoint::SmallRows::kTaken);
  ASSERT_TRUE(stored.ok()) << stored.status().message();
  EXPECT_EQ(stored->manifest().tables[1].columns,
            std::vector<Column>({{"rows_int8", 2 + (5 + 3) / 4}}));
  // A weight that has no small row ends the publication on every rank.
  const Status refused = OnRanks(PublishedModel(), {2}, [&](StateRank& rank) {
    rank.Fill(2);
    const std::vector<float> row = {1, INFINITY, 2};
    rank.embedding->SetRow(0, 9, row.data(), nullptr);
    return WeightsDigest(rank.View(), RowFormat::kInt8, *rank.communicator).status();
  });
  EXPECT_EQ(refused.code(), StatusCode::kDiverged);
  EXPECT_EQ(
      refused.message(),
      "publish.rows: INT8: key 9 of embedding table 'long' has a weight that is not finite, or "
      "not below 2^127");
}

TEST(PublicationTest, ADeltaHasTheRowsOfItsSteps) {
  const std::string folder = ScratchDirectory() + "/published";
  ASSERT_EQ(PublishThree({3, PlanKind::kRowWise}, folder, 9).message(), "");
  const StatusOr<StoredCheckpoint> second =
      StoredCheckpoint::OpenPublishedDelta(folder + "/" + PublishedDeltaName(2));
  ASSERT_TRUE(second.ok()) << second.status().message();
  // 120 keys, and 15 that were updated while number 1 was written, of which 0, 35 and 70 are both.
  EXPECT_EQ(RowsOf(second->manifest(), 0), 120 + 15 - 3);
  EXPECT_EQ(RowsOf(second->manifest(), 1), 0);
  const StatusOr<CheckpointMetadata> third =
      ReadCheckpointMetadata(folder + "/" + PublishedBaseName(3));
  ASSERT_TRUE(third.ok());
  const Publication& publication = *second->manifest().metadata.publication;
  EXPECT_EQ(third->publication->follows, publication.result);
  EXPECT_EQ(third->publication->origin, publication.follows);
  // A delta alone is no model, and a base is one.
  const auto open = [&](const std::string& name) {
    return StoredCheckpoint::Open(folder + "/" + name, *MakeSelfCommunicator()).status().message();
  };
  EXPECT_EQ(open(PublishedBaseName(3)), "");
  EXPECT_TRUE(open(PublishedDeltaName(3)).find("no whole model") != std::string::npos);
}

TEST(PublicationTest, OldOnesGo) {
  const std::string folder = ScratchDirectory() + "/published";
  ASSERT_EQ(PublishThree({2, PlanKind::kRowWise}, folder, 1).message(), "");
  const StatusOr<Published> left = FindPublished(folder);
  EXPECT_EQ(left->bases, std::set<int64_t>({3}));
  EXPECT_EQ(left->deltas, std::set<int64_t>());
}

// ---- Keyed tables

// Keys beyond 2^63, too.
std::vector<int64_t> Scattered(int64_t begin, int64_t end) {
  constexpr uint64_t kOdd = 0xf00000100000193;
  std::vector<int64_t> keys;
  for (int64_t i = begin; i < end; ++i) {
    keys.push_back(static_cast<int64_t>(static_cast<uint64_t>(i + 1) * kOdd));
  }
  return keys;
}

SmallModel KeyedModel() {
  SmallModel model = PublishedModel();
  model.tables = {{"long", 0, 3, 0.1}};
  model.tables[0].keyed = model.tables[0].keeps_use = true;
  model.tables[0].rules = {
      .policy = RowRules::Policy::kLru, .min_count = 2, .shares_rows = true, .count_ttl_steps = 9};
  model.tables = WithAdmission(model.tables);
  return model;
}

// Publishes a state in memory as the number behind `last`.
Status PublishNext(const std::string& folder, bool delta, StateRank* rank, Publication* last) {
  PublicationWriter writer(rank->View(), rank->communicator);
  CheckpointMetadata metadata = SomeMetadata(Contents::kWeights);
  ELASTOR_ASSIGN_OR_RETURN(metadata.state_digest,
                           WeightsDigest(rank->View(), RowFormat::kFloat32, *rank->communicator));
  last->follows = last->result;
  ++last->number;
  last->run = "0123456789abcdef";
  metadata.control.set_step(last->number);
  metadata.publication = *last;
  last->result = PublicationResult(*last, last->number, metadata.state_digest);
  if (last->origin.empty()) last->origin = last->result;
  ELASTOR_RETURN_IF_ERROR(writer.Start(folder, metadata, {.base = !delta, .delta = delta}, "", 9));
  return writer.Finish();
}

void Remove(const std::vector<int64_t>& keys, StateRank* rank) {
  for (const int64_t key : keys) rank->embedding->RemoveRow(0, key);
}

// Number 1 has the rows of keys [0, 1000). Then those of [0, 300) leave, of which [0, 100) return;
// [2000, 2100) are born, and half of them leave again; [5000, 5040) do not get a row. `stop`: the
// state of a moment in between goes there, and nothing is published behind number 1.
Status TrainKeyed(const std::string& folder, const std::string& stop, StateRank* rank,
                  Publication* last) {
  rank->Train(Scattered(0, 1000), 1);
  rank->Train(Scattered(0, 1000), 2);
  rank->Train(Scattered(4990, 5000), 2);
  ELASTOR_RETURN_IF_ERROR(PublishNext(folder, false, rank, last));
  Remove(Scattered(0, 300), rank);
  rank->Train(Scattered(2000, 2100), 3);
  rank->Train(Scattered(2000, 2100), 4);
  rank->Train(Scattered(0, 100), 5);
  Remove(Scattered(2000, 2050), rank);
  if (stop.empty()) return OkStatus();
  CheckpointWriter writer(rank->View(), kStaging, rank->communicator);
  ELASTOR_RETURN_IF_ERROR(writer.Start(stop, SomeMetadata(Contents::kState)));
  return writer.Finish().status();
}

Status GoOnKeyed(const std::string& folder, StateRank* rank, Publication* last) {
  rank->Train(Scattered(0, 100), 6);
  rank->Train(Scattered(5000, 5040), 7);
  ELASTOR_RETURN_IF_ERROR(PublishNext(folder, true, rank, last));
  Remove(Scattered(990, 1000), rank);
  return PublishNext(folder, true, rank, last);
}

TEST(PublicationTest, DeltasHaveTheKeysThatLeft) {
  const std::string directory = ScratchDirectory();
  std::map<std::string, std::string> expected;
  for (const Layout& layout : kPublishers) {
    const std::string folder = directory + "/on" + std::to_string(layout.ranks);
    const Status status = OnRanks(KeyedModel(), layout, [&](StateRank& rank) -> Status {
      Publication last;
      ELASTOR_RETURN_IF_ERROR(TrainKeyed(folder, "", &rank, &last));
      return GoOnKeyed(folder, &rank, &last);
    });
    EXPECT_EQ(status.message(), "") << layout.ranks;
    if (expected.empty()) expected = FilesOf(folder);
    EXPECT_TRUE(FilesOf(folder) == expected) << layout.ranks << " ranks published other bytes";
  }
  const auto second = StoredCheckpoint::OpenPublishedDelta(directory + "/on1/delta-0000000002");
  const auto third = StoredCheckpoint::OpenPublishedDelta(directory + "/on1/delta-0000000003");
  ASSERT_TRUE(second.ok() && third.ok());
  const std::vector<StoredTable>& tables = second->manifest().tables;
  ASSERT_EQ(tables.size(), 3u);
  EXPECT_EQ(tables[1].name, "long/deleted");
  EXPECT_EQ(tables[2].name, "long/shared");
  EXPECT_EQ(RowsOf(second->manifest(), 0), 50 + 100);
  EXPECT_EQ(RowsOf(second->manifest(), 1), 200);
  EXPECT_GT(RowsOf(second->manifest(), 2), 100);  // partitions with keys
  EXPECT_LT(RowsOf(second->manifest(), 2), 100 + 100 + 40 + 1);
  EXPECT_EQ(RowsOf(third->manifest(), 0), 0);
  EXPECT_EQ(RowsOf(third->manifest(), 1), 10);
  EXPECT_EQ(RowsOf(third->manifest(), 2), 0);

  // A run that goes on behind number 1, on other ranks, learns again what number 2 must have.
  for (const Layout& layout : kPublishers) {
    const std::string folder = directory + "/resumed" + std::to_string(layout.ranks);
    const std::string stop = directory + "/" + CheckpointName(layout.ranks);
    Publication first;
    Status status = OnRanks(KeyedModel(), {2, PlanKind::kReplicated}, [&](StateRank& rank) {
      Publication last;
      const Status trained = TrainKeyed(folder, stop, &rank, &last);
      if (rank.communicator->rank() == 0) first = last;
      return trained;
    });
    ASSERT_EQ(status.message(), "") << layout.ranks;
    status = OnRanks(KeyedModel(), layout, [&](StateRank& rank) -> Status {
      ELASTOR_RETURN_IF_ERROR(
          LoadCheckpoint(stop, Contents::kState, SomeModel(), rank.View(), *rank.communicator)
              .status());
      const TakeKeys note = [&rank](int table, std::span<const int64_t> keys, bool have_rows) {
        rank.embedding->NotePublished(table, keys, have_rows);
      };
      ELASTOR_RETURN_IF_ERROR(
          ReadPublishedKeys(folder, 1, first.result, rank.View(), *rank.communicator, note));
      rank.MarkUnpublished(Scattered(2000, 2100));
      rank.MarkUnpublished(Scattered(0, 100));
      Publication last = first;
      return GoOnKeyed(folder, &rank, &last);
    });
    EXPECT_EQ(status.message(), "") << layout.ranks;
    EXPECT_TRUE(FilesOf(folder) == expected) << layout.ranks << " ranks went on otherwise";
  }
  // Behind number 3, two deltas say who has a row.
  std::set<int64_t> keys;
  Status status = OnRanks(KeyedModel(), {2}, [&](StateRank& rank) -> Status {
    std::set<int64_t> own;
    const auto note = [&own](int, std::span<const int64_t> some, bool have_rows) {
      for (const int64_t key : some) {
        have_rows ? static_cast<void>(own.insert(key)) : static_cast<void>(own.erase(key));
      }
    };
    const Status read =
        ReadPublishedKeys(directory + "/on1", 3, third->manifest().metadata.publication->result,
                          rank.View(), *rank.communicator, note);
    if (rank.communicator->rank() == 1) keys = own;
    return read;
  });
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(keys.size(), 1000u - 200 + 50 - 10);
  status = OnRanks(KeyedModel(), {2}, [&](StateRank& rank) {
    return ReadPublishedKeys(directory + "/on1", 2, "of another", rank.View(), *rank.communicator,
                             [](int, std::span<const int64_t>, bool) {});
  });
  EXPECT_EQ(status.code(), StatusCode::kUser);
}

}  // namespace
}  // namespace elastor
