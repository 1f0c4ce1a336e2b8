#include "trainer/run/memory_check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/make_options.h"

namespace elastor {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;
constexpr int64_t kWidth = 8;
constexpr int64_t kRowBytes = 128;  // weights and two slots of 8, in whole cache lines

DatasetInfo Data(int64_t ids, int64_t training_rows) {
  DatasetInfo data;
  data.name = "test";
  data.numeric = {{"I1"}};
  data.categorical = {{"C1", ids}, {"C2", ids}};
  data.rows[static_cast<int>(Split::kTrain)] = training_rows;
  return data;
}

Experiment MakeExperiment(OptimizerConfig::Sparse sparse) {
  Experiment experiment;
  experiment.mutable_model()->mutable_mlp()->add_hidden(16);
  experiment.mutable_embedding()->set_width(kWidth);
  experiment.mutable_optimizer()->set_sparse(sparse);
  experiment.mutable_training()->set_batch_size(256);
  ResolveDefaults(&experiment);
  return experiment;
}

// A run on `ranks` ranks of one host.
struct PlannedRun {
  PlannedRun(const Experiment& experiment, const DatasetInfo& data, int ranks,
             const MemoryPlan::Options& options = {})
      : data(data),
        graph(MakeGraph(experiment, this->data)),
        plan(experiment, this->data, &graph, options),
        shards(plan.Shards(ranks).value()) {
    for (int rank = 0; rank < ranks; ++rank) needs.push_back(plan.OfRank(shards, rank));
  }

  int64_t sure() const {
    int64_t sum = 0;
    for (const RankMemory& rank : needs) sum += rank.sure();
    return sum;
  }

  // On hosts of so many ranks that have `memory` each.
  StatusOr<std::string> JudgeOn(HostMemory memory, int ranks_on_host = 1 << 20,
                                int64_t device_bytes = 0) const {
    std::vector<RankReport> reports;
    for (size_t rank = 0; rank < needs.size(); ++rank) {
      memory.host = "h" + std::to_string(rank / ranks_on_host);
      memory.boot_id = memory.host;
      reports.push_back(MakeReport(needs[rank], memory, device_bytes));
    }
    return JudgeMemory(reports, plan);
  }

  const DatasetInfo data;
  const Graph graph;
  const MemoryPlan plan;
  const ShardPlan shards;
  std::vector<RankMemory> needs;
};

HostMemory HostOf(int64_t bytes) {
  HostMemory memory;
  memory.bytes = memory.available = bytes;
  return memory;
}

TEST(MemoryCheckTest, DenseAdamTouchesEveryRow) {
  constexpr int64_t kIds = 100'000'000;
  const PlannedRun run(MakeExperiment(OptimizerConfig::DENSE_ADAM), Data(kIds, 1000), 4);
  int64_t rows = 0, numbers = 0;
  for (const RankMemory& rank : run.needs) {
    rows += rank[MemoryPart::kTableRows];
    numbers += rank.unsure_rows;
  }
  EXPECT_GE(rows, 2 * kIds * kRowBytes);
  EXPECT_LE(rows, 2 * kIds * (kRowBytes + 1));  // with the bits
  EXPECT_GE(numbers, 2 * kIds * 3);  // of the steps that a row has taken: 4 bytes, less the bits
  EXPECT_LE(numbers, 2 * kIds * 4);

  const StatusOr<std::string> judged = run.JudgeOn(HostOf(24 * kGigabyte));
  ASSERT_FALSE(judged.ok());
  EXPECT_EQ(judged.status().code(), StatusCode::kUser);
  const std::string& line = judged.status().message();
  EXPECT_EQ(line.find("memory: the run needs at least 46.5 GB on host h0 (4 ranks), which has 24.0 "
                      "GB: 25.6 GB rows of embedding tables (embedding.width, optimizer.sparse), "
                      "20.8 GB the checkpoint's copy of the state; would fit with "
                      "optimizer.sparse=LAZY_ADAM (rows that occur), or 4 ranks on 2 such hosts, "
                      "or embedding.width=3 at most"),
            0)
      << line;
  EXPECT_EQ(line.find('\n'), line.npos);
  const std::string more = run.JudgeOn(HostOf(30 * kGigabyte)).status().message();
  EXPECT_NE(more.find("or checkpoint.staging_bytes=1 (training waits"), more.npos) << more;
  EXPECT_TRUE(run.JudgeOn(HostOf(50 * kGigabyte)).ok());
}

// Of lazy optimizers, only what occurs: a run that can work is not refused.
TEST(MemoryCheckTest, ATableOfWhichLittleOccursIsNoObstacle) {
  constexpr int64_t kIds = 1'000'000'000;
  const PlannedRun run(MakeExperiment(OptimizerConfig::LAZY_ADAM), Data(kIds, 1000), 1);
  EXPECT_EQ(run.needs[0][MemoryPart::kTableRows], 0);
  const StatusOr<std::string> judged = run.JudgeOn(HostOf(kGigabyte));
  ASSERT_TRUE(judged.ok());
  EXPECT_EQ(*judged, "");  // 2,000 rows of a page each

  // With deltas the row's record takes another page.
  Experiment deltas = MakeExperiment(OptimizerConfig::LAZY_ADAM);
  deltas.mutable_checkpoint()->set_staging_bytes(1);
  const PlannedRun without(deltas, Data(kIds, 1000), 1);
  deltas.mutable_checkpoint()->set_delta_every_steps(100);
  const PlannedRun with(deltas, Data(kIds, 1000), 1);
  EXPECT_EQ(without.needs[0].unsure_rows, 2000 * sysconf(_SC_PAGESIZE));
  EXPECT_EQ(with.needs[0].unsure_rows, 2 * without.needs[0].unsure_rows);

  const PlannedRun many(MakeExperiment(OptimizerConfig::LAZY_ADAM), Data(kIds, kIds), 1);
  const StatusOr<std::string> warned = many.JudgeOn(HostOf(kGigabyte));
  ASSERT_TRUE(warned.ok());
  EXPECT_NE(warned->find("warning: memory: the run needs "), warned->npos) << *warned;
  EXPECT_NE(warned->find(" to 25"), warned->npos) << *warned;
}

// An epoch surely makes the rows of the ids that occur in it.
TEST(MemoryCheckTest, RowsOfIdsThatOccurAreSure) {
  constexpr int64_t kIds = 1'000'000, kOccurring = 400'000, kTrainingRows = 3'000'000;
  const DatasetInfo data = Data(kIds, kTrainingRows);
  const MemoryPlan::Options occurring = {.occurring_ids = {kOccurring, 0}};
  Experiment experiment = MakeExperiment(OptimizerConfig::LAZY_ADAM);
  const PlannedRun run(experiment, data, 2, occurring);
  const int64_t rows = run.needs[0][MemoryPart::kTableRows] + run.needs[1][MemoryPart::kTableRows];
  EXPECT_NEAR(static_cast<double>(rows), kOccurring * kRowBytes, kRowBytes);

  // Rows in files.
  Experiment tiered = experiment;
  constexpr int64_t kInMemory = 5'000'000;
  tiered.mutable_embedding()->mutable_tier()->set_path("/disk");
  tiered.mutable_embedding()->mutable_tier()->set_memory_bytes(kInMemory);
  const PlannedRun in_files(tiered, data, 2, occurring);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(in_files.needs[rank][MemoryPart::kTableRows], kInMemory);
    EXPECT_EQ(in_files.needs[rank].files, run.needs[rank][MemoryPart::kTableRows]);
    EXPECT_GE(in_files.needs[rank].most_files, in_files.needs[rank].files);
    // Of the state of a checkpoint no more than that is copied.
    EXPECT_LT(in_files.needs[rank][MemoryPart::kCheckpoint],
              run.needs[rank][MemoryPart::kCheckpoint]);
  }

  experiment.mutable_training()->set_max_steps(kTrainingRows / 256);  // a step less than an epoch
  EXPECT_EQ(PlannedRun(experiment, data, 2, occurring).needs[0][MemoryPart::kTableRows], 0);
  experiment.mutable_training()->set_max_steps(kTrainingRows / 256 + 1);
  EXPECT_GT(PlannedRun(experiment, data, 2, occurring).needs[0][MemoryPart::kTableRows], 0);
  experiment.mutable_training()->set_eval_every_steps(10);  // may stop early within the epoch
  experiment.mutable_training()->mutable_monitor()->set_early_stop_patience(1);
  EXPECT_EQ(PlannedRun(experiment, data, 2, occurring).needs[0][MemoryPart::kTableRows], 0);
}

TEST(MemoryCheckTest, IdsThatOccurAreThoseOfTheStatistics) {
  const std::string directory = testing::TempDir();
  std::ofstream(directory + "/stats.json")
      << R"({"categorical": [{"name": "C2", "train": {"distinct": 90, "unknown": 20}},
                             {"name": "C1", "train": {"distinct": 5000}},
                             {"name": "C3", "train": {"distinct": "many"}}]})";
  const DatasetInfo data = Data(/*ids=*/1000, 0);
  EXPECT_EQ(OccurringIds(directory, data), (std::vector<int64_t>{1000, 70}));
  EXPECT_EQ(OccurringIds(directory + "/nowhere", data), (std::vector<int64_t>{0, 0}));
}

// A model's rows are those in its files; what training would take more is not asked for.
TEST(MemoryCheckTest, InferenceTakesTheModelsRows) {
  constexpr int64_t kStored = 1'000'000;
  constexpr int64_t kWeightBytes = kWidth * 4;
  const std::string directory = testing::TempDir() + "model";
  std::filesystem::create_directories(directory);
  for (const char* name : {"embedding-00000-of-00002.safetensors", "dense.safetensors"}) {
    std::ofstream(directory + "/" + name) << '.';
    std::filesystem::resize_file(directory + "/" + name, kStored * (8 + kWeightBytes));
  }
  const Range rows = RowsOfModel(directory, kWidth);
  EXPECT_EQ(rows, (Range{kStored * (8 + kWeightBytes) / (8 + 3 * kWeightBytes), kStored}));
  EXPECT_EQ(RowsOfModel(directory + "/nowhere", kWidth), (Range{0, 0}));

  Experiment experiment = MakeExperiment(OptimizerConfig::SPARSE_SGD);
  const MemoryPlan::Options infers = {.trains = false, .model_rows = rows};
  const PlannedRun run(experiment, Data(1'000'000'000, 1000), 1, infers);
  EXPECT_NEAR(static_cast<double>(run.needs[0][MemoryPart::kTableRows]),
              static_cast<double>(rows.begin * kWeightBytes), 2 * kWeightBytes);
  EXPECT_EQ(run.needs[0][MemoryPart::kCheckpoint], 0);
  EXPECT_GT(run.needs[0].unsure_rows, rows.end * kWeightBytes);  // a page a row
}

// The neural tangent kernel of many rows: what of them would fit is told.
TEST(MemoryCheckTest, RowsOfAKernel) {
  const Experiment experiment = MakeExperiment(OptimizerConfig::SPARSE_SGD);
  const MemoryPlan::Options measures = {.trains = false, .ntk_rows = 4000};
  DatasetInfo data = Data(1000, 1000);
  const PlannedRun run(experiment, data, 2, measures);
  // Rank 0 has the kernel and its copy; both have all rows' gradients and half of the tiles.
  EXPECT_GE(run.needs[0][MemoryPart::kNtk], 2 * 4000 * 4000 * 8);
  EXPECT_GE(run.needs[1][MemoryPart::kNtk], 4000 * 4000 / 2 * 8);
  EXPECT_LT(run.needs[1][MemoryPart::kNtk], run.needs[0][MemoryPart::kNtk]);
  const StatusOr<std::string> judged = run.JudgeOn(HostOf(kGigabyte / 10));
  ASSERT_FALSE(judged.ok());
  const std::string& line = judged.status().message();
  EXPECT_NE(line.find(" the neural tangent kernel (--rows, spectrum.ntk_rows)"), line.npos) << line;
  const size_t remedy = line.find("would fit with --rows=");
  ASSERT_NE(remedy, line.npos) << line;
  const int64_t fewer = std::stoll(line.substr(remedy + 22));
  EXPECT_TRUE(PlannedRun(experiment, data, 2, {.trains = false, .ntk_rows = fewer})
                  .JudgeOn(HostOf(kGigabyte / 10))
                  .ok());
  EXPECT_FALSE(PlannedRun(experiment, data, 2, {.trains = false, .ntk_rows = fewer + 1})
                   .JudgeOn(HostOf(kGigabyte / 10))
                   .ok());
  // No more rows than there are.
  data.rows[static_cast<int>(Split::kValidation)] = 40;
  EXPECT_TRUE(PlannedRun(experiment, data, 2, measures).JudgeOn(HostOf(kGigabyte / 10)).ok());
  Experiment trains = experiment;
  trains.mutable_spectrum()->set_ntk_rows(4000);
  EXPECT_GT(PlannedRun(trains, Data(1000, 1000), 1).needs[0][MemoryPart::kNtk], 0);
  trains.mutable_spectrum()->set_disabled(true);
  EXPECT_EQ(PlannedRun(trains, Data(1000, 1000), 1).needs[0][MemoryPart::kNtk], 0);
}

TEST(MemoryCheckTest, RanksOfOneHostAddUp) {
  const PlannedRun run(MakeExperiment(OptimizerConfig::DENSE_ADAM), Data(10'000'000, 1000), 4);
  const int64_t half = run.sure() / 2 + kGigabyte / 10;
  EXPECT_FALSE(run.JudgeOn(HostOf(half)).ok());
  EXPECT_TRUE(run.JudgeOn(HostOf(half), /*ranks_on_host=*/2).ok());
  EXPECT_FALSE(run.JudgeOn(HostOf(half / 2), /*ranks_on_host=*/2).ok());
}

TEST(MemoryCheckTest, AControlGroupCountsAsItsHostDoes) {
  const PlannedRun run(MakeExperiment(OptimizerConfig::DENSE_ADAM), Data(10'000'000, 1000), 2);
  HostMemory memory = HostOf(1000 * kGigabyte);
  memory.group = "/sys/fs/cgroup/job_7";
  memory.group_bytes = memory.group_available = kGigabyte;
  const StatusOr<std::string> judged = run.JudgeOn(memory);
  ASSERT_FALSE(judged.ok());
  EXPECT_NE(judged.status().message().find(
                "on host h0 (2 ranks), whose control group /sys/fs/cgroup/job_7 allows 1.0 GB: "),
            std::string::npos)
      << judged.status().message();
  memory.group_bytes = memory.group_available = 10 * kGigabyte;
  EXPECT_EQ(run.JudgeOn(memory).value(), "");
  memory.group_available = kGigabyte;
  const std::string warning = run.JudgeOn(memory).value();
  EXPECT_NE(warning.find("allows 10.0 GB, of which 1.0 GB are free now"), warning.npos) << warning;
}

TEST(MemoryCheckTest, AddressSpaceIsNeededForAllRows) {
  const PlannedRun run(MakeExperiment(OptimizerConfig::LAZY_ADAM), Data(100'000'000, 1000), 2);
  HostMemory memory = HostOf(24 * kGigabyte);
  memory.address_space_bytes = 4 * kGigabyte;
  const StatusOr<std::string> judged = run.JudgeOn(memory);
  ASSERT_FALSE(judged.ok());
  EXPECT_NE(judged.status().message().find("memory: rank 0 needs at least 12.8 GB of address space "
                                           "on host h0, ulimit -v allows 4.0 GB"),
            std::string::npos)
      << judged.status().message();
}

TEST(MemoryCheckTest, AGpuHoldsItsRowsAtOnce) {
  const MemoryPlan::Options on_device = {.on_device = true};
  Experiment experiment = MakeExperiment(OptimizerConfig::LAZY_ADAM);
  const DatasetInfo data = Data(1'000'000'000, 1000);
  const HostMemory host = HostOf(24 * kGigabyte);
  const auto judged = PlannedRun(experiment, data, 1, on_device).JudgeOn(host, 1, 80 * kGigabyte);
  ASSERT_FALSE(judged.ok());
  EXPECT_NE(judged.status().message().find("on its GPU for embedding rows"), std::string::npos)
      << judged.status().message();
  // Then most of them are page-locked on the host.
  experiment.mutable_parallel()->set_device_embedding_bytes(40 * kGigabyte);
  const auto pinned = PlannedRun(experiment, data, 1, on_device).JudgeOn(host, 1, 80 * kGigabyte);
  ASSERT_FALSE(pinned.ok());
  EXPECT_NE(pinned.status().message().find("on host h0"), std::string::npos)
      << pinned.status().message();
}

TEST(MemoryCheckTest, HugeNumbersDoNotOverflow) {
  Experiment experiment = MakeExperiment(OptimizerConfig::DENSE_ADAM);
  experiment.mutable_training()->set_batch_size(int64_t{9'000'000'000'000'000'000});
  experiment.mutable_parallel()->set_threads(200'000);
  experiment.mutable_spectrum()->set_ntk_rows(4000);
  const PlannedRun run(experiment, Data(int64_t{1} << 60, 0), 4);
  for (const RankMemory& rank : run.needs) EXPECT_EQ(rank.sure(), int64_t{1} << 62);
  const StatusOr<std::string> judged = run.JudgeOn(HostOf(kGigabyte));
  ASSERT_FALSE(judged.ok());
  EXPECT_EQ(judged.status().message().find('-'), std::string::npos) << judged.status().message();
}

}  // namespace
}  // namespace elastor
