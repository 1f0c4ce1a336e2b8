#include "launcher/plan.h"

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/kept_folders.h"
#include "launcher/make_plan.h"
#include "launcher/plan_file.h"
#include "launcher/point_sizes.h"
#include "launcher/run_command.h"
#include "launcher/run_folder.h"
#include "launcher/sweep_file.h"
#include "trainer/experiment/config_defaults.h"
#include "xxhash.h"

namespace elastor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kBase[] = R"(
  base {
    data { shape { numeric_fields: 2 categorical_fields: 4 ids_per_field: 50 } }
    model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
    embedding { width: 4 }
    training { batch_size: 64 }
  }
)";

StatusOr<Plan> PlanOf(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const std::string path = testing::TempDir() + "/sweep.textproto";
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  ELASTOR_ASSIGN_OR_RETURN(const Sweep sweep, LoadSweep(path, overrides));
  return MakePlan(sweep, "S");
}

Plan Planned(const std::string& axes, const std::vector<std::string>& overrides = {}) {
  const StatusOr<Plan> plan = PlanOf(kBase + axes, overrides);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? plan.value() : Plan();
}

std::string ErrorOf(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const StatusOr<Plan> plan = PlanOf(text, overrides);
  EXPECT_EQ(plan.status().code(), StatusCode::kUser);
  return plan.status().message();
}

std::vector<std::string> Labels(const Plan& plan) {
  std::vector<std::string> labels;
  for (const PlannedRun& run : plan.runs) {
    labels.push_back(run.folder.substr(0, run.folder.rfind('-')));
  }
  return labels;
}

TEST(PlanTest, AxesMultiplyAndPointsZip) {
  const Plan plan = Planned(R"(
    axis {
      name: "size"
      point { label: "small" set: "model.token_width=8" set: "model.blocks=1" }
      point { label: "large" set: "model.token_width=16" set: "model.blocks=2" }
    }
    axis { field: "training.seed" values: "1" values: "2" }
  )");
  EXPECT_THAT(Labels(plan),
              ElementsAre("small_seed1", "small_seed2", "large_seed1", "large_seed2"));
  EXPECT_THAT(plan.columns,
              ElementsAre("size", "model.token_width", "model.blocks", "training.seed"));
  EXPECT_THAT(plan.runs[3].columns, ElementsAre("large", "16", "2", "2"));
  EXPECT_THAT(plan.runs[2].experiment,
              AllOf(HasSubstr("token_width: 16"), HasSubstr("blocks: 2"), HasSubstr("seed: 1")));
  EXPECT_EQ(plan.runs[0].dense_parameters, plan.runs[1].dense_parameters);
  EXPECT_LT(plan.runs[1].dense_parameters, plan.runs[2].dense_parameters);
  EXPECT_LT(plan.runs[1].multiply_adds, plan.runs[2].multiply_adds);
  EXPECT_EQ(plan.runs[0].embedding_parameters, 4 * 50 * 4);
}

TEST(PlanTest, NamesOfValues) {
  const Plan plan = Planned(R"(
    axis { name: "size" field: "model.blocks" values: "1" values: "2" label: "small" label: "large" }
  )");
  EXPECT_THAT(Labels(plan), ElementsAre("small", "large"));
  EXPECT_THAT(plan.columns, ElementsAre("size", "model.blocks"));
  EXPECT_THAT(plan.runs[1].columns, ElementsAre("large", "2"));
}

TEST(PlanTest, AnAxisOfModels) {
  const Plan plan = Planned(R"(
    axis { field: "model.blocks" values: "1" values: "2" }
    axis {
      name: "model"
      point { label: "elastor" set: "model.mixing.block_width=8" }
      point { label: "mixer" set: "model.kind=RANK_MIXER" }
    }
  )",
                            {"base.training.seed=3"});
  ASSERT_EQ(plan.runs.size(), 4u);
  EXPECT_THAT(plan.runs[3].experiment,
              AllOf(HasSubstr("rank_mixer"), HasSubstr("blocks: 2"), HasSubstr("seed: 3")));
}

TEST(PlanTest, ResourcesAreOfARun) {
  const Plan plan = Planned("", {"resources.ranks=2", "resources.threads=3"});
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].cores(), 6);
  const Machine machine = {.host = "h", .cores = {0, 1, 2, 3, 4}, .memory_bytes = int64_t{1} << 40};
  EXPECT_EQ(Misfit(plan.runs[0], machine), "needs 6 cores (2 ranks of 3 threads), host h gives 5");
  Machine small = machine;
  small.cores.push_back(5);
  EXPECT_EQ(Misfit(plan.runs[0], small), "");
  small.memory_bytes = plan.runs[0].bytes() - 1;
  EXPECT_THAT(Misfit(plan.runs[0], small), StartsWith("needs at least 0.1"));
  EXPECT_THAT(LocalCommand(plan.runs[0], {"/d"}, "/t"),
              AllOf(::testing::Contains("mpirun"), ::testing::Contains("2")));
  EXPECT_EQ(LocalCommand(Planned("").runs[0], {"/d"}, "/t").front(), "/t");
  const Plan gpus = Planned("", {"resources.gpus=1", "resources.memory_gb=2"});
  EXPECT_NE(gpus.runs[0].folder, plan.runs[0].folder);
  EXPECT_EQ(gpus.runs[0].bytes(), 2'000'000'000);
  EXPECT_EQ(Misfit(gpus.runs[0], machine), "needs 1 GPUs, host h gives 0");
  EXPECT_THAT(LocalCommand(gpus.runs[0], {"/d"}, "/t"), ::testing::Contains("--device=cuda"));
  const Plan nodes = Planned("", {"resources.ranks=4", "resources.nodes=2"});
  EXPECT_THAT(Misfit(nodes.runs[0], machine), StartsWith("needs 2 nodes; expected"));
}

TEST(PlanTest, MistakesAreOneLine) {
  const std::string base = kBase;
  EXPECT_THAT(ErrorOf("name: \"x\"\nbsae { }"), HasSubstr("sweep.textproto:2:"));
  EXPECT_THAT(
      ErrorOf(base + R"(axis { name: "depth" field: "model.blokcs" values: "1" })"),
      AllOf(StartsWith("S: axis 'depth': model.blokcs=1: "), HasSubstr("did you mean 'blocks'?")));
  EXPECT_THAT(ErrorOf(base + R"(axis { field: "model.blocks" values: "x" })"),
              HasSubstr("axis 'model.blocks': model.blocks=x: expected a 32-bit integer"));
  EXPECT_THAT(ErrorOf(base + R"(axis { field: "model.blocks" values: "2" values: "-1" })"),
              StartsWith("S: run blocks-1: model.rank_elastor.blocks: "));
  EXPECT_THAT(ErrorOf(base + R"(axis { field: "model.blocks" values: "1" values: "1" })"),
              HasSubstr("axis 'model.blocks': has the point 'blocks1' twice"));
  const std::string two = R"(field: "model.blocks" values: "1" values: "2" label: "a" )";
  EXPECT_THAT(ErrorOf(base + "axis { name: \"n\" " + two + "}"),
              HasSubstr("axis 'n': label: has 1 for 2 values; expected one each"));
  EXPECT_THAT(ErrorOf(base + "axis { " + two + "label: \"b\" }"),
              HasSubstr("axis 'model.blocks': name: missing; expected one, for labels"));
  EXPECT_THAT(ErrorOf(base + R"(axis { field: "parallel.threads" values: "1" values: "2" })"),
              HasSubstr("differ in no field that changes a result"));
  EXPECT_THAT(ErrorOf(base + R"(axis { name: "x" })"), HasSubstr("expected a field with values"));
  EXPECT_THAT(ErrorOf(base + R"(axis { field: "model.blocks" })"), HasSubstr("values: empty"));
  EXPECT_THAT(ErrorOf(base + R"(base_file: "f")"), HasSubstr("has base_file and base"));
  EXPECT_THAT(ErrorOf(R"(base_file: "nowhere")"), HasSubstr("nowhere"));
  EXPECT_THAT(ErrorOf(base, {"base.training.sede=1"}),
              AllOf(StartsWith("--set=base.training.sede=1: "), HasSubstr("'seed'")));
  EXPECT_THAT(ErrorOf(base, {"training.seed=1"}), HasSubstr("expected base.path.to.field=value"));
  EXPECT_THAT(ErrorOf(base, {"resources.cores=1"}), HasSubstr("it has: ranks, threads"));
  EXPECT_THAT(ErrorOf(base, {"base.parallel.virtual_shards=4", "resources.ranks=5"}),
              HasSubstr(": parallel.virtual_shards: 4 cannot be spread over 5 ranks; expected"));
}

TEST(PlanTest, MistakesOfGapTests) {
  const std::string base =
      std::string(kBase) + R"(axis { field: "training.seed" values: "1" values: "2" })";
  const std::string arms = R"(axis {
      name: "arm"
      point { label: "plain" set: "model.blocks=1" }
      point { label: "gated" set: "model.blocks=2" }
    })";
  const std::string test = R"(gap_test { first: "plain" second: "gated" })";
  EXPECT_TRUE(PlanOf(base + arms + test).ok());
  EXPECT_THAT(ErrorOf(base + arms + R"(gap_test { first: "plain" second: "gaetd" })"),
              HasSubstr("'gaetd' is no point; there are: plain, gated; did you mean 'gated'?"));
  EXPECT_THAT(ErrorOf(base + arms + R"(gap_test { first: "plain" second: "plain" })"),
              HasSubstr("'plain' twice"));
  EXPECT_THAT(ErrorOf(base + arms + R"(gap_test { first: "plain" second: "gated" from_step: -1 })"),
              HasSubstr("from_step: -1"));
  // The override is of all tests, and is checked as the file is.
  const std::string turned = R"(gap_test { first: "gated" second: "plain" from_step: 7 })";
  const std::string path = testing::TempDir() + "/gaps.textproto";
  ASSERT_TRUE(WriteFileAtomically(path, base + arms + test + turned).ok());
  const StatusOr<Sweep> sweep = LoadSweep(path, std::vector<std::string>{"gap_test.from_step=2"});
  ASSERT_TRUE(sweep.ok()) << sweep.status().message();
  for (const GapTest& each : sweep->gap_test()) EXPECT_EQ(each.from_step(), 2);
  EXPECT_THAT(ErrorOf(base + arms + test, {"gap_test.from_step=-2"}), HasSubstr("from_step: -2"));
  EXPECT_THAT(ErrorOf(base + arms + test, {"gap_test.form_step=2"}),
              HasSubstr("did you mean 'from_step'?"));
  EXPECT_THAT(ErrorOf(base + arms, {"gap_test.from_step=2"}),
              HasSubstr("--set=gap_test.from_step=2: the sweep has no gap_test"));
  EXPECT_THAT(ErrorOf(base + arms + test +
                      R"(axis { field: "model.token_width" values: "8" values: "16" })"),
              HasSubstr("gap_test: the axis 'model.token_width'; expected one axis of points"));
  EXPECT_THAT(ErrorOf(base + test), HasSubstr("'plain' is no point"));
}

TEST(PlanTest, APlanIsReadBackAsItWas) {
  const SweepFiles files = {testing::TempDir() + "/written"};
  EXPECT_TRUE(MakeDirectory(files.root).ok());
  const Plan plan = Planned(R"(axis { field: "training.seed" values: "1" values: "2" })");
  ASSERT_TRUE(WritePlan(plan, files).ok());
  const StatusOr<Plan> read = ReadPlan(files);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->name, plan.name);
  ASSERT_EQ(read->runs.size(), 2u);
  EXPECT_EQ(read->runs[1].folder, plan.runs[1].folder);
  EXPECT_EQ(read->runs[1].columns, plan.runs[1].columns);
  EXPECT_EQ(read->runs[1].cost(), plan.runs[1].cost());
  ASSERT_TRUE(WriteFileAtomically(files.Plan(), "{\"sweep\": 3").ok());
  EXPECT_THAT(ReadPlan(files).status().message(), HasSubstr("line 1: not a JSON text"));
  ASSERT_TRUE(WriteFileAtomically(files.Plan(), "").ok());
  EXPECT_THAT(ReadPlan(files).status().message(), HasSubstr("is empty"));
  // Numbers that would be divided by or overflow, columns that the plan does not name.
  const auto mistake = [&](const std::string& from, const std::string& to) {
    EXPECT_TRUE(WritePlan(plan, files).ok());
    std::string text = *ReadFile(files.Plan());
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    EXPECT_TRUE(WriteFileAtomically(files.Plan(), text.replace(at, from.size(), to)).ok());
    return ReadPlan(files).status().message();
  };
  EXPECT_THAT(mistake("\"nodes\":1", "\"nodes\":0"), HasSubstr("line 2: nodes: found 0"));
  EXPECT_THAT(mistake("\"ranks\":1", "\"ranks\":1e300"), HasSubstr("line 2: ranks: found 1e+300"));
  EXPECT_THAT(mistake("\"columns\":[\"1\"]", "\"columns\":[]"),
              HasSubstr("line 2: columns: found []; expected 1 texts"));
}

TEST(PlanTest, BytesOfAPlan) {
  const SweepFiles files = {testing::TempDir() + "/bytes"};
  EXPECT_TRUE(MakeDirectory(files.root).ok());
  const std::string text =
      R"({"sweep":"s","columns":["a"],"tuned":[{"configuration":"c","chosen":"a=1","logloss":0.5,)"
      R"("warning":"w","failure":"f"}],"later":[{"run":{"folder":"","stage":"final","model":"",)"
      R"("seed":0,"columns":[],"ranks":1,"threads":1,"gpus":0,"nodes":1,"memory_gb":0,"minutes":0,)"
      R"("dense_parameters":0,"embedding_parameters":0,"multiply_adds":0,"bytes_of_rank":0,)"
      R"("steps":0,"samples":0},"count":7}]})"
      "\n"
      R"({"folder":"x-1","stage":"tune","model":"m","seed":-2,"columns":["v"],"ranks":4,"threads":5,)"
      R"("gpus":6,"nodes":2,"memory_gb":7,"minutes":8,"dense_parameters":9,)"
      R"("embedding_parameters":10,"multiply_adds":11,"bytes_of_rank":12,"steps":13,"samples":14})"
      "\n";
  ASSERT_TRUE(WriteFileAtomically(files.Plan(), text).ok());
  const StatusOr<Plan> plan = ReadPlan(files);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->runs.size(), 1u);
  const PlannedRun& run = plan->runs[0];
  EXPECT_EQ(run.stage, Stage::kTune);
  EXPECT_EQ(run.seed, -2);
  EXPECT_EQ(run.cores(), 4 * 5);
  EXPECT_EQ(run.all_gpus(), 4 * 6);
  EXPECT_EQ(run.nodes, 2);
  EXPECT_EQ(run.bytes(), 7'000'000'000);
  EXPECT_EQ(run.minutes, 8);
  EXPECT_EQ(run.dense_parameters, 9);
  EXPECT_EQ(run.embedding_parameters, 10);
  EXPECT_EQ(run.cost(), 14 * (11 + kFixedMultiplyAdds));
  EXPECT_EQ(run.bytes_of_rank, 12);
  EXPECT_EQ(run.steps, 13);
  ASSERT_EQ(plan->tuned.size(), 1u);
  EXPECT_EQ(plan->tuned[0].value, 0.5);
  ASSERT_EQ(plan->later.size(), 1u);
  EXPECT_EQ(plan->later[0].count, 7);
  ASSERT_TRUE(WritePlan(*plan, files).ok());
  EXPECT_EQ(*ReadFile(files.Plan()), text);
  // Another metric has its name, and a budget what it left out.
  Plan other = *plan;
  other.tuned[0].metric = "auc";
  other.tuned[0].bound = "b";
  ASSERT_TRUE(WritePlan(other, files).ok());
  EXPECT_THAT(*ReadFile(files.Plan()),
              HasSubstr(R"("chosen":"a=1","metric":"auc","value":0.5,"bound":"b","warning")"));
  EXPECT_EQ(ReadPlan(files)->tuned[0].value, 0.5);
  EXPECT_EQ(ReadPlan(files)->tuned[0].metric, "auc");
  EXPECT_EQ(ReadPlan(files)->tuned[0].bound, "b");
}

// Runs keep their folders when labels change, or when axes come and go.
TEST(PlanTest, AChangedSweepKeepsItsRuns) {
  const SweepFiles files = {testing::TempDir() + "/changed"};
  const Plan before = Planned(R"(axis { field: "training.seed" values: "1" values: "2" })");
  for (const PlannedRun& run : before.runs) {
    ASSERT_TRUE(MakeDirectory(files.Run(run.folder)).ok());
  }
  Plan after = Planned(R"(
    axis { field: "model.blocks" values: "1" values: "2" }
    axis { field: "training.seed" values: "2" values: "3" }
  )");
  const PlanChange change = *AdoptFolders(files, &after);
  EXPECT_EQ(change.kept, 1);
  EXPECT_EQ(change.fresh, 3);
  EXPECT_THAT(change.left, ElementsAre(before.runs[0].folder));
  EXPECT_EQ(after.runs[0].folder, before.runs[1].folder);
}

// A run that was refused has attempts and no folder.
TEST(PlanTest, ARefusedRunKeepsItsName) {
  const SweepFiles files = {testing::TempDir() + "/refused"};
  Plan plan = Planned(R"(axis { field: "training.seed" values: "1" values: "2" })");
  const std::string name = "other_labels-" + HashOfFolder(plan.runs[1].folder);
  ASSERT_TRUE(MakeDirectory(files.root + "/attempts").ok());
  ASSERT_TRUE(WriteFileAtomically(files.Attempts(name), "").ok());
  const PlanChange change = *AdoptFolders(files, &plan);
  EXPECT_EQ(change.kept, 1);
  EXPECT_EQ(change.fresh, 1);
  EXPECT_THAT(change.left, ::testing::IsEmpty());
  EXPECT_EQ(plan.runs[1].folder, name);
}

// A trial goes on from a copy of the checkpoints that its previous rung wrote, once.
TEST(PlanTest, ATrialHasTheCheckpointsOfItsPreviousRung) {
  const SweepFiles files = {testing::TempDir() + "/continued"};
  ASSERT_TRUE(MakeDirectory(files.Run("first-1") + "/checkpoints").ok());
  ASSERT_TRUE(WriteFileAtomically(files.Run("first-1") + "/checkpoints/bytes", "c").ok());
  Plan plan;
  plan.runs = {{.folder = "first-1"},
               {.folder = "next-2", .continues = "first-1"},
               {.folder = "alone-3", .continues = "absent-4"}};
  // Without its records the previous run cannot be gone on with.
  EXPECT_FALSE(ContinueTrials(plan, files).ok());
  for (const char* name : {"metrics.jsonl", "experiment.textproto", "plan.txt"}) {
    ASSERT_TRUE(WriteFileAtomically(files.Run("first-1") + "/" + name, name).ok());
  }
  for (int again = 0; again < 2; ++again) {
    const Status status = ContinueTrials(plan, files);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(*ReadFile(files.Run("next-2") + "/checkpoints/bytes"), "c");
  EXPECT_EQ(*ReadFile(files.Run("next-2") + "/plan.txt"), "plan.txt");
  EXPECT_THAT(*NamesIn(files.Runs()), ElementsAre("first-1", "next-2"));
}

// The folders of sweeps that users have. Taken before numbers told a written 0 from one left out.
TEST(PlanTest, RunHashesOfTheRepositoryStay) {
  constexpr struct {
    const char *sweep, *hash;
  } kSweeps[] = {
      {"data_size", "66e40e69603b7c33"},         {"gated_ctr", "f1d094b7e79b6758"},
      {"gated_transformer", "1a73328209793fab"}, {"heads_blocks", "b76ec3cfe5ceb50b"},
      {"heads_iterations", "450f335559ba2446"},  {"heads_probes", "693f275a53a123de"},
      {"images_mixer", "ce93ff71eba2bbf7"},      {"images_vit", "83140d70369d3173"},
      {"matrix_thinker", "0f340a80994c2a0f"},    {"options_avazu", "08fd20edb6653996"},
      {"options_criteo", "fb91b9922667118a"},    {"paper_depth", "649fba7709b5ff46"},
      {"paper_joint", "173e1ec3808128f4"},       {"paper_width", "8f2fe357ddb6e75a"},
      {"planted_mixing", "c3d4acf82512fc43"},    {"quick", "f206434dbcfeec1e"},
      {"table2_avazu", "720043bb00252626"},      {"table2_criteo", "7bbf4aaf048b5fcb"},
      {"table3_avazu", "972ce67607a6b69f"},      {"table3_criteo", "ac4034b44662af81"},
  };
  for (const auto& [name, hash] : kSweeps) {
    const auto sweep = LoadSweep(std::string("configs/sweeps/") + name + ".textproto", {});
    ASSERT_TRUE(sweep.ok()) << sweep.status().message();
    std::string hashes;
    for (const Combination& combination : Product(*sweep)) {
      Experiment experiment = MakeExperiment(*sweep, combination).value();
      ResolveDefaults(&experiment);
      hashes += RunHash(experiment, "data", "numerics");
    }
    EXPECT_EQ(Format("%016llx",
                     static_cast<unsigned long long>(XXH3_64bits(hashes.data(), hashes.size()))),
              hash)
        << name;
  }
}

// {size} is the number that comes nearest, of parameters or of multiply-adds.
TEST(PlanTest, PointsOfOneSize) {
  const std::string axis = R"(
    axis {
      name: "model"
      point { label: "MLP" set: "model.kind=MLP" set: "model.hidden={size},{2*size}" }
      point { label: "Mixer" set: "model.kind=RANK_MIXER" set: "model.feed_forward.expansion={size}" }
      point { label: "FM" set: "model.kind=FM" }
    })";
  const auto sized = [&](const std::string& match, const std::string& text = "") {
    const std::string path = testing::TempDir() + "/sweep.textproto";
    EXPECT_TRUE(WriteFileAtomically(path, kBase + (text.empty() ? axis : text) + match).ok());
    StatusOr<Sweep> sweep = LoadSweep(path, {});
    EXPECT_TRUE(sweep.ok()) << sweep.status().message();
    const Status status = SetPointSizes("S", &*sweep);
    return status.ok() ? sweep : StatusOr<Sweep>(status);
  };
  const auto sizes = [&](const std::string& match, int64_t PlannedRun::*of) {
    const StatusOr<Sweep> sweep = sized(match);
    EXPECT_TRUE(sweep.ok()) << sweep.status().message();
    std::vector<int64_t> found;
    for (const PlannedRun& run : MakePlan(*sweep, "S")->runs) found.push_back(run.*of);
    return found;
  };
  // MLP of 24 features: h + 2 h^2 more weights than 24 h, 3 h biases, 2 h + 1 to the logit; 2 * 2 *
  // 4 numbers of the numeric fields. 2 h^2 + 29 h + 17 is 9,782 with h = 63 and 10,065 with 64.
  const std::vector<int64_t> dense =
      sizes("match { dense_parameters: 10000 }", &PlannedRun::dense_parameters);
  EXPECT_EQ(dense[0], 2 * 64 * 64 + 29 * 64 + 17);
  EXPECT_NEAR(dense[1], 10000, 4 * 2 * 64);  // half of a step of the expansion
  EXPECT_EQ(dense[2], 2 * 2 * 5 + 1);        // rows with first-order weights, and the bias
  // 24 h + 2 h^2 + 2 h.
  EXPECT_EQ(sizes("match { multiply_adds: 9900 }", &PlannedRun::multiply_adds)[0],
            2 * 64 * 64 + 26 * 64);
  EXPECT_EQ(sized("match { dense_parameters: 10 }")->axis(0).point(0).set(1), "model.hidden=1,2");
  const auto message = [&](const std::string& match, const std::string& text = "") {
    return sized(match, text).status().message();
  };
  EXPECT_EQ(message(""),
            "S: axis 'model': MLP: has {size}; expected match { dense_parameters: N } or match { "
            "multiply_adds: N } in the sweep");
  EXPECT_EQ(message("match { multiply_adds: 9 }", "axis { field: 'model.blocks' values: '1' }"),
            "S: match: no point has {size}");
  EXPECT_THAT(message("match { multiply_adds: 9000 }",
                      "axis { name: 'a' point { label: 'b' set: 'training.seed={size}' } }"),
              HasSubstr("S: axis 'a': b: {size}: the model has "));
  EXPECT_THAT(message("match { multiply_adds: 9000 }",
                      "axis { name: 'a' point { label: 'b' set: 'model.tokens={size}' set: "
                      "'model.blokcs=1' } }"),
              HasSubstr("blokcs"));
}

// What a user writes is taken or refused, never replaced.
TEST(PlanTest, AWrittenZeroIsTakenOrRefused) {
  for (const char* field :
       {"resources.ranks", "resources.threads", "resources.nodes", "resources.memory_gb",
        "resources.minutes", "slurm.throttle", "slurm.signal_seconds"}) {
    EXPECT_EQ(
        ErrorOf(kBase, {std::string(field) + "=0"}),
        testing::TempDir() + "/sweep.textproto: " + field + ": 0; expected a positive number");
  }
  EXPECT_EQ(Planned("", {"resources.gpus=0"}).runs[0].gpus, 0);
  for (const char* field : {"start", "factor", "count"}) {
    EXPECT_THAT(ErrorOf(kBase + ("tuning { field { " + std::string(field) + ": 0 } }")),
                HasSubstr("tuning: optimizer.learning_rate: "));
  }
  for (const char* field : {"rungs: 0", "eta: 0", "share: 0"}) {
    EXPECT_THAT(ErrorOf(kBase + ("tuning { " + std::string(field) + " }")),
                HasSubstr(std::string("tuning: ") + field));
  }
}

TEST(PlanTest, MoreRunsThanAnybodyTrainsAreRefused) {
  std::string axes;
  for (int i = 0; i < 40; ++i) {
    const std::string name = std::to_string(i);
    axes += "axis { name: '" + name + "' point { label: 'a' set: 'training.seed=1' } " +
            "point { label: 'b' set: 'training.seed=2' } } ";
  }
  EXPECT_THAT(ErrorOf(kBase + axes), HasSubstr("axis: the axes make more than 100000 runs"));
  std::string fields;
  for (const char* field : {"a", "b", "c"}) {
    fields += std::string("field { field: '") + field + "' start: 1 count: 100 } ";
  }
  EXPECT_THAT(ErrorOf(kBase + ("tuning { " + fields + "}")),
              HasSubstr("tuning: field: the values make more than 100000 trials"));
}

// A block of a token model is the coarsest step.
TEST(PlanTest, TheZooHasOneSize) {
  const std::string path = "configs/sweeps/zoo.textproto";
  for (const auto& [field, of] : {std::pair("dense_parameters", &PlannedRun::dense_parameters),
                                  std::pair("multiply_adds", &PlannedRun::multiply_adds)}) {
    const std::vector<std::string> match = {std::string("match.") + field + "=400000"};
    StatusOr<Sweep> sweep = LoadSweep(path, match);
    ASSERT_TRUE(sweep.ok()) << sweep.status().message();
    const Status sized = SetPointSizes(path, &*sweep);
    ASSERT_TRUE(sized.ok()) << sized.message();
    const StatusOr<Plan> plan = MakePlan(*sweep, path);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    int models = 0;
    for (const LaterRuns& later : plan->later) {
      if (later.each.stage != Stage::kFinal || later.each.model == "LR" ||
          later.each.model == "FM" || later.each.model == "FW_FM") {
        continue;
      }
      ++models;
      EXPECT_NEAR(static_cast<double>(later.each.*of), 400000, 31000) << later.each.model;
    }
    EXPECT_EQ(models, 21);
  }
}

// The committed sweeps, as --dry_run sees them.
TEST(PlanTest, CommittedSweepsCanBePlanned) {
  for (const char* name :
       {"quick", "data_size", "paper_depth", "paper_width", "paper_joint", "successors"}) {
    const std::string path = std::string("configs/sweeps/") + name + ".textproto";
    const StatusOr<Sweep> sweep = LoadSweep(path, {});
    ASSERT_TRUE(sweep.ok()) << sweep.status().message();
    const StatusOr<Plan> plan = MakePlan(*sweep, path);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan->name, name);
    int64_t final_runs = 0;
    for (const LaterRuns& later : plan->later) {
      final_runs += later.each.stage == Stage::kFinal ? later.count : 0;
    }
    const bool successors = plan->name == "successors";
    EXPECT_EQ(final_runs, plan->name == "quick"       ? 20
                          : plan->name == "data_size" ? 36
                          : successors                ? 180
                                                      : 40);
    EXPECT_EQ(plan->runs.size(), (successors ? 6 : 5) * plan->tuned.size());
  }
}

}  // namespace
}  // namespace elastor
