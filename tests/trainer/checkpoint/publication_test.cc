#include "trainer/checkpoint/publication.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "gtest/gtest.h"
#include "tests/trainer/checkpoint/checkpoint_testing.h"
#include "trainer/checkpoint/checkpoint.h"
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

}  // namespace
}  // namespace elastor
