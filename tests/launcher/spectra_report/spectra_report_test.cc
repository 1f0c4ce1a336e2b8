#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "launcher/spectra_report/projections.h"
#include "launcher/spectra_report/report.h"
#include "launcher/spectra_report/runs.h"

namespace elastor {
namespace {

constexpr double kRounding = 1e-12;

// Folders of runs as the trainer leaves them, in a new directory.
class Folders {
 public:
  Folders()
      : path_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(path_);
  }

  // A run with the stages `a` and `b` at steps 0 and 7; ranks of b by step. Entropy ranks are 1
  // more.
  std::string Add(const std::string& model, int64_t seed, double first, double last,
                  int64_t rows = 20) {
    const std::string folder =
        path_ + "/" + model + "-" + std::to_string(seed) + "-" + std::to_string(names_++);
    EXPECT_TRUE(MakeDirectory(folder).ok());
    Write(folder + "/experiment.textproto",
          "name: \"" + model + "\"\nmodel { mlp {} }\ntraining { seed: " + std::to_string(seed) +
              " }\n");
    Write(folder + "/metrics.jsonl", "{\"event\":\"train\",\"step\":1}\n" + Line(0, "a", 2, rows) +
                                         Line(0, "b", first, rows) + Line(7, "a", 2.5, rows) +
                                         Line(7, "b", last, rows));
    return folder;
  }
  static std::string Line(int64_t step, const std::string& stage, double stable, int64_t rows) {
    return "{\"event\":\"spectrum\",\"step\":" + std::to_string(step) +
           ",\"split\":\"validation\",\"stage\":\"" + stage +
           "\",\"stable_rank_mean\":" + std::to_string(stable) +
           ",\"entropy_rank_mean\":" + std::to_string(stable + 1) +
           ",\"samples\":" + std::to_string(rows) + "}\n";
  }
  // A run of mode projection: a label without a name.
  std::string AddProjection(const std::string& model, int64_t seed, const std::string& lines,
                            const std::string& split = "test") {
    const std::string folder = Add(model, seed, 0, 0);
    Write(folder + "/summary.json", "{\"split\":\"" + split + "\"}");
    Write(folder + "/projections.csv", "rank,label,rows,auc,logloss,gauc,bits_per_label\n" + lines);
    return folder;
  }
  static void Write(const std::string& path, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  }

 private:
  const std::string path_;
  int names_ = 0;
};

std::string MistakeOf(const std::vector<std::string>& folders) {
  const auto models = ReadSpectraModels(folders);
  EXPECT_FALSE(models.ok());
  return models.status().message();
}

TEST(SpectraReportTest, MeansAndIntervalsOverSeeds) {
  // Standard deviation 1 of three values: 4.302653 / sqrt(3).
  const SeedMean mean = MeanOverSeeds(std::vector<double>{-1, 0, 1});
  EXPECT_NEAR(mean.mean, 0, kRounding);
  EXPECT_NEAR(mean.high, 2.484138, 1e-5);
  EXPECT_NEAR(mean.low, -2.484138, 1e-5);
  EXPECT_EQ(mean.positive, 1);
  EXPECT_EQ(mean.negative, 1);
  EXPECT_TRUE(std::isinf(MeanOverSeeds(std::vector<double>{3}).high));
}

TEST(SpectraReportTest, GroupsByModelAndComparesSeedBySeed) {
  Folders folders;
  const std::vector<std::string> paths = {folders.Add("x", 2, 3, 2), folders.Add("y", 1, 5, 6),
                                          folders.Add("x", 1, 1.5, 1)};
  const auto models = ReadSpectraModels(paths);
  ASSERT_TRUE(models.ok()) << models.status().message();
  ASSERT_EQ(models->size(), 2u);
  const SpectraModel& x = models->front();
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(x.rows, "20 rows of the validation split");
  EXPECT_EQ(x.stages, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(x.steps, (std::vector<int64_t>{0, 7}));
  ASSERT_EQ(x.runs.size(), 2u);
  EXPECT_EQ(x.runs[0].seed, 1);
  EXPECT_NEAR(RankOverSeeds(x, 0, 0, 1).mean, 2.25, kRounding);
  EXPECT_NEAR(RankOverSeeds(x, 1, 0, 1).mean, 3.25, kRounding);
  const SeedMean first = ChangeOverSeeds(x, 0, 0, 1);  // 1 and -0.5
  EXPECT_NEAR(first.mean, 0.25, kRounding);
  EXPECT_EQ(first.positive, 1);
  const SeedMean last = ChangeOverSeeds(x, 0, 7, 1);  // -0.5 and -1.5
  EXPECT_NEAR(last.mean, -1, kRounding);
  EXPECT_EQ(last.negative, 2);

  const std::string text = ToText(*models);
  EXPECT_NE(text.find("x, step 7, 2 seeds, 20 rows of the validation split"), std::string::npos)
      << text;
  EXPECT_NE(text.find("2 of 2 fall"), std::string::npos) << text;
  const auto files = ReportFiles(*models);
  std::vector<std::string> names;
  for (const auto& [name, unused] : files) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "stages.csv", "slopes.csv", "stages_stable.svg", "stages_start_stable.svg",
                       "drift_stable_x.svg", "drift_stable_y.svg", "stages_entropy.svg",
                       "stages_start_entropy.svg", "drift_entropy_x.svg", "drift_entropy_y.svg"}));
  EXPECT_NE(files[0].second.find("\ny,7,stable,b,1,6,,,3.5,,,1,0\n"), std::string::npos)
      << files[0].second;
  EXPECT_NE(files[2].second.find("x, step 7, 2 seeds"), std::string::npos);
  const auto exported = ReportFiles(*models, ExportFormat::kCsv);
  ASSERT_EQ(exported.size(), files.size() + 8);
  EXPECT_EQ(exported[3].first, "stages_stable.csv");
  EXPECT_NE(exported[3].second.find("\"y, step 7, 1 seed\",b,1,6,,\n"), std::string::npos)
      << exported[3].second;
}

// Ranks 2, 3, 7 and 2, 2, 3 behind three iterations: slopes 5/2 and 1/2. Training rows are a model
// of their own.
TEST(SpectraReportTest, SlopesOverIterations) {
  Folders folders;
  const std::vector<std::string> paths = {folders.Add("x", 1, 0, 0), folders.Add("x", 2, 0, 0)};
  const double behind[][3] = {{2, 3, 7}, {2, 2, 3}};
  for (int run = 0; run < 2; ++run) {
    std::string lines = Folders::Line(5, "embedding", 9, 20) + Folders::Line(5, "tokens", 9, 20);
    for (int t = 0; t < 3; ++t) {
      const std::string iteration = "iteration" + std::to_string(t);
      lines += Folders::Line(5, iteration + ".block0.mixing", 9, 20) +
               Folders::Line(5, iteration + ".block0.ffn", behind[run][t], 20);
    }
    std::string training = lines;
    for (size_t at; (at = training.find("\"spectrum")) != std::string::npos;) {
      training.replace(at, 9, "\"training_spectrum");
    }
    Folders::Write(paths[run] + "/metrics.jsonl", lines + training);
  }
  const auto models = ReadSpectraModels(paths);
  ASSERT_TRUE(models.ok()) << models.status().message();
  ASSERT_EQ(models->size(), 2u);
  EXPECT_EQ(models->back().name, "x, training rows");
  EXPECT_EQ(Trajectory(models->front().stages), (std::vector<size_t>{3, 5, 7}));
  EXPECT_EQ(
      Trajectory(std::vector<std::string>{"embedding", "iteration0", "iteration1", "iteration2"}),
      (std::vector<size_t>{2, 3}));
  EXPECT_EQ(Trajectory(std::vector<std::string>{"tokens", "block0.mixing", "block0.ffn",
                                                "block1.mixing", "block1.ffn"}),
            (std::vector<size_t>{2, 4}));
  const SeedMean slope = SlopeOverSeeds(models->front(), 0, 5);
  EXPECT_NEAR(slope.mean, 1.5, kRounding);
  EXPECT_EQ(slope.positive, 2);
  EXPECT_NE(ReportFiles(*models)[1].second.find("\nx,5,stable,3,2,1.5,"), std::string::npos);
  EXPECT_NE(ToText(*models).find("slope over 3 blocks or iterations   +1.5000"), std::string::npos)
      << ToText(*models);
}

// Scoring ranks 2 and 4 of two seeds at step 7, which only one of them measured at step 0.
TEST(SpectraReportTest, ScoringMatricesOverTraining) {
  Folders folders;
  const std::vector<std::string> paths = {folders.Add("x", 1, 3, 2), folders.Add("x", 2, 3, 2)};
  const auto line = [](int64_t step, const std::string& stable) {
    return "{\"event\":\"scoring\",\"step\":" + std::to_string(step) +
           ",\"matrices\":1,\"max_rank\":8,\"stable_rank_mean\":" + stable +
           ",\"entropy_rank_mean\":" + stable + "}\n";
  };
  const std::string scoring[] = {line(0, "9") + line(7, "2"), line(7, "4")};
  for (int run = 0; run < 2; ++run) {
    const std::string path = paths[run] + "/metrics.jsonl";
    Folders::Write(path, *ReadFile(path) + scoring[run]);
  }
  const auto models = ReadSpectraModels(paths);
  ASSERT_TRUE(models.ok()) << models.status().message();
  EXPECT_FALSE(ScoringOverSeeds(models->front(), 0, 0).has_value());
  EXPECT_NEAR(ScoringOverSeeds(models->front(), 1, 7)->mean, 3, kRounding);
  const auto files = ReportFiles(*models);
  EXPECT_EQ(files[2].first, "scoring.csv");
  EXPECT_NE(files[2].second.find("high\nx,7,stable,2,3,"), std::string::npos) << files[2].second;
  EXPECT_NE(ToText(*models).find("the head's scoring matrices  3.0000"), std::string::npos);
}

// A run that was stopped while it measured.
TEST(SpectraReportTest, AStepThatLacksStagesIsLeftOut) {
  Folders folders;
  const std::string whole = folders.Add("x", 1, 3, 2), stopped = folders.Add("x", 2, 3, 2);
  Folders::Write(
      stopped + "/metrics.jsonl",
      Folders::Line(0, "a", 2, 20) + Folders::Line(0, "b", 2, 20) + Folders::Line(7, "a", 2, 20));
  const auto models = ReadSpectraModels(std::vector<std::string>{whole, stopped});
  ASSERT_TRUE(models.ok()) << models.status().message();
  EXPECT_EQ(models->front().steps, (std::vector<int64_t>{0}));
}

TEST(SpectraReportTest, MistakesAreToldInOneLine) {
  Folders folders;
  const std::string good = folders.Add("x", 1, 3, 2);
  EXPECT_EQ(
      MistakeOf({good + "x"}),
      good +
          "x: has no experiment.textproto; expected the folder of a run, of mode spectra or of "
          "mode projection");
  const std::string twin = folders.Add("x", 1, 3, 2);
  EXPECT_EQ(MistakeOf({good, twin}),
            twin + " and " + good +
                ", both 'x': have the same seed, 1; expected another, or another name by "
                "--set=name=");
  const std::string other_rows = folders.Add("x", 2, 3, 2, 30);
  EXPECT_EQ(MistakeOf({good, other_rows}),
            other_rows + " and " + good +
                ", both 'x': measured 30 rows of the validation split and 20 rows of the "
                "validation split");
  const std::string odd = folders.Add("x", 3, 3, 2);
  Folders::Write(odd + "/metrics.jsonl", Folders::Line(7, "b", 2, 20));
  EXPECT_EQ(MistakeOf({good, odd}), odd + " and " + good + ", both 'x': have other stages");
  Folders::Write(odd + "/metrics.jsonl",
                 Folders::Line(3, "a", 2, 20) + Folders::Line(3, "b", 2, 20));
  EXPECT_EQ(MistakeOf({good, odd}),
            odd + " and " + good + ", both 'x': were measured at no step in common");
  Folders::Write(odd + "/metrics.jsonl",
                 Folders::Line(3, "a", 2, 20) + Folders::Line(3, "a", 2, 20));
  EXPECT_EQ(MistakeOf({odd}), odd +
                                  "/metrics.jsonl:2: step 3: found stage a out of order; expected "
                                  "every stage once");
  Folders::Write(odd + "/metrics.jsonl", "");
  EXPECT_EQ(
      MistakeOf({odd}),
      odd + "/metrics.jsonl: holds no effective ranks; expected lines whose event is spectrum");
}

// AUC 0.75 and 0.5 of two seeds, and 0.5 each at rank 1: changes of -0.25 and 0, whose interval is
// -0.125 +- 12.706205 / sqrt(2) * 0.25 / sqrt(2).
TEST(ProjectionsTest, MeansAndChangesOverSeeds) {
  Folders folders;
  const std::vector<std::string> paths = {
      folders.AddProjection("x", 2, "0,,9,0.5,0.75,,\n1,,9,0.5,1,,\n2,,9,0.5,0.75,,\n"),
      folders.AddProjection("text", 1, "0,,8,,2,,3\n1,,8,,3,,4.5\n"),
      folders.AddProjection("x", 1, "0,,9,0.75,0.75,,\n1,,9,0.5,1,,\n2,,9,0.75,0.75,,\n")};
  ASSERT_TRUE(*HoldsProjections(paths[0]));
  EXPECT_FALSE(*HoldsProjections(folders.Add("x", 3, 0, 0)));
  const auto models = ReadProjections(paths);
  ASSERT_TRUE(models.ok()) << models.status().message();
  ASSERT_EQ(models->size(), 2u);
  EXPECT_EQ(models->front().runs[0].seed, 1);
  const auto files = ProjectionFiles(*models);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].first, "projections.csv");
  const std::string& csv = files[0].second;
  EXPECT_TRUE(
      csv.starts_with("model,label,metric,rank,seeds,mean,low,high,change,change_low,change_"
                      "high\nx,,auc,0,2,0.625,"))
      << csv;
  EXPECT_NE(csv.find("\nx,,auc,1,2,0.5,0.5,0.5,-0.125,-1.713"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\nx,,logloss,1,2,1,1,1,0.25,0.25,0.25\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\ntext,,bits_per_label,1,1,4.5,,,1.5,,\n"), std::string::npos) << csv;
  EXPECT_EQ(csv.find("gauc"), std::string::npos) << csv;
  EXPECT_EQ(files[1].first, "projections_auc.svg");
  EXPECT_NE(files[1].second.find("x, 2 seeds"), std::string::npos);
  EXPECT_EQ(files[1].second.find("text, 1 seed"), std::string::npos);
  EXPECT_EQ(files[2].first, "projections_bits_per_label.svg");
  EXPECT_NE(files[2].second.find("text, 1 seed"), std::string::npos);
  const std::string text = ToText(*models);
  EXPECT_NE(text.find("x, auc over 2 seeds, 9 rows of the test split"), std::string::npos) << text;
  EXPECT_NE(text.find("  -0.12500 ["), std::string::npos) << text;
}

TEST(ProjectionsTest, LabelsAreSeriesOfTheirOwn) {
  Folders folders;
  const std::string lines = "0,a,9,0.75,1,,\n0,b,7,0.5,1,,\n1,a,9,0.5,1,,\n1,b,7,0.25,1,,\n";
  const auto models = ReadProjections(std::vector{folders.AddProjection("x", 1, lines)});
  ASSERT_TRUE(models.ok()) << models.status().message();
  const auto files = ProjectionFiles(*models);
  EXPECT_NE(files[0].second.find("\nx,a,auc,1,1,0.5,,,-0.25,,\nx,b,auc,0,1,0.5,"),
            std::string::npos)
      << files[0].second;
  EXPECT_NE(files[1].second.find("x, b, 1 seed"), std::string::npos);
}

TEST(ProjectionsTest, MistakesAreToldInOneLine) {
  Folders folders;
  const auto mistake = [](const std::vector<std::string>& paths) {
    const auto models = ReadProjections(paths);
    EXPECT_FALSE(models.ok());
    return models.status().message();
  };
  const std::string lines = "0,,9,0.5,1,,\n1,,9,0.5,1,,\n";
  const std::string good = folders.AddProjection("x", 1, lines);
  const std::string both = " and " + good + ", both 'x': ";
  const std::string twin = folders.AddProjection("x", 1, lines);
  EXPECT_EQ(
      mistake({good, twin}),
      twin + both + "have the same seed, 1; expected another, or another name by --set=name=");
  for (const std::string& other : {folders.AddProjection("x", 2, "0,,9,0.5,1,,\n2,,9,0.5,1,,\n"),
                                   folders.AddProjection("x", 2, "0,,8,0.5,1,,\n1,,8,0.5,1,,\n"),
                                   folders.AddProjection("x", 2, lines, "validation")}) {
    EXPECT_EQ(mistake({good, other}), other + both + "have other ranks, labels or rows");
  }
  const std::string header = "rank,label,rows,auc,logloss,gauc,bits_per_label";
  for (const std::string bad : {"0,,9,0.5,1,", "0,,9,0.5x,1,,", "-1,,9,0.5,1,,", "0,,9,inf,1,,"}) {
    const std::string odd = folders.AddProjection("x", 2, bad + "\n");
    EXPECT_EQ(mistake({odd}),
              odd + "/projections.csv:2: found '" + bad + "'; expected numbers below " + header);
  }
  const std::string cut = folders.AddProjection("x", 2, "1,,9,0.5,1,,\n");
  EXPECT_EQ(mistake({cut}), cut +
                                "/projections.csv: has no line of rank 0; expected that of the "
                                "whole matrices");
  Folders::Write(cut + "/projections.csv", "rank,auc\n");
  EXPECT_EQ(mistake({cut}), cut + "/projections.csv:1: found 'rank,auc'; expected " + header);
}

}  // namespace
}  // namespace elastor
