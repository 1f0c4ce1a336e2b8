// Reports of folders as a launcher leaves them, with runs whose law is known.
#include "launcher/sweep_report/sweep_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/json.h"
#include "launcher/plan.h"
#include "launcher/plan_file.h"
#include "launcher/rename_label.h"
#include "launcher/run_folder.h"
#include "launcher/sweep_report/sweep_data.h"

namespace elastor {
namespace {

constexpr double kExponent = 0.5;
constexpr size_t kMostBytes = 2'000'000;

struct Planted {
  int sizes = 6;
  int seeds = 2;
  double ratio = 4;                // of neighbouring sizes
  double limit[2] = {0.44, 0.45};  // of the models' loglosses
};

double LoglossOf(const Planted& planted, int model, int size, int seed) {
  // Of any two runs another one: a mean over seeds is not free of it.
  const double deviation = 1.4e-4 * std::sin(7 * size + 5 * seed + 3 * model);
  return (planted.limit[model] + 0.02 * std::pow(planted.ratio, -kExponent * size)) *
         (1 + deviation);
}

class SweepReportTest : public testing::Test {
 protected:
  SweepReportTest()
      : files_{testing::TempDir() + "/sweep_" +
               testing::UnitTest::GetInstance()->current_test_info()->name()} {
    // No converter of pictures: a process for each of them would be most of the time.
    setenv("PATH", files_.root.c_str(), 1);
    std::filesystem::remove_all(files_.root);
    for (const char* directory : {"/runs", "/experiments", "/logs", "/attempts"}) {
      std::filesystem::create_directories(files_.root + directory);
    }
    plan_.name = "planted";
    plan_.columns = {"model", "model.kind", "model.token_width", "training.seed"};
  }

  // Plans runs of two models; `state(i)` of the i-th.
  template <typename State>
  void Plant(const Planted& planted, const State& state) {
    constexpr const char* kKinds[] = {"RANK_ELASTOR", "RANK_MIXER"};
    constexpr const char* kNames[] = {"Elastor", "Mixer"};
    for (int model = 0; model < 2; ++model) {
      for (int size = 0; size < planted.sizes; ++size) {
        for (int seed = 0; seed < planted.seeds; ++seed) {
          PlannedRun run;
          const int64_t parameters = std::llround(1e4 * std::pow(planted.ratio, size));
          const int width = 8 * (size + 1);
          run.columns = {kNames[model], kKinds[model], std::to_string(width), std::to_string(seed)};
          char hash[17];
          std::snprintf(hash, sizeof(hash), "%016zx", plan_.runs.size());
          run.folder = FolderName({kNames[model], "w" + std::to_string(width)}, hash);
          run.dense_parameters = parameters;
          run.multiply_adds = 2 * parameters;
          run.steps = 10;
          run.samples = 640;
          Write(files_.Experiment(run.folder),
                std::string("data { path: \"/data\" }\nmodel { ") +
                    (model == 0 ? "rank_elastor" : "rank_mixer") +
                    " { token_width: " + std::to_string(width) +
                    " blocks: 2 } }\noptimizer { learning_rate: 0.001 }\ntraining { seed: " +
                    std::to_string(seed) + " }\n");
          if (state(plan_.runs.size()) == RunState::kDone) {
            AddResults(run, LoglossOf(planted, model, size, seed));
          }
          plan_.runs.push_back(run);
        }
      }
    }
    ASSERT_TRUE(WritePlan(plan_, files_).ok());
  }
  void Plant(const Planted& planted) {
    Plant(planted, [](size_t) { return RunState::kDone; });
  }

  void AddResults(const PlannedRun& run, double logloss) {
    const std::string folder = files_.Run(run.folder);
    std::filesystem::create_directories(folder + "/model");
    Write(folder + "/model/manifest.json", "{\"data\":\"00c0ffee00c0ffee\"}");
    Write(folder + "/summary.json",
          Json{{"auc", 1.2 - logloss},
               {"logloss", logloss},
               {"rows", 1000},
               {"split", "validation"},
               {"steps", 10},
               {"samples_per_s", 1e9 / (1e4 + run.multiply_adds)},
               {"wall_s", 2.5},
               {"peak_memory_bytes", 1000000},
               {"state_digest", run.folder.substr(run.folder.size() - 16) + "0123456789abcdef"},
               {"numerics", "x86-64-v3 test"},
               {"isa", "v4"}}
              .dump());
    std::string metrics;
    for (const int step : {0, 10}) {
      for (const char* stage : {"embedding", "tokens", "block0"}) {
        metrics += Json{{"event", "spectrum"},      {"step", step},
                        {"stage", stage},           {"stable_rank_mean", 2.0 + 0.1 * step},
                        {"entropy_rank_mean", 5.0}, {"max_rank", 8}}
                       .dump() +
                   "\n";
      }
    }
    Write(folder + "/metrics.jsonl",
          metrics +
              Json{{"event", "eval"}, {"step", 10}, {"normalized_entropy", logloss / 0.5}}.dump() +
              "\n");
    Write(files_.Attempts(run.folder),
          "{\"event\":\"start\"}\n{\"event\":\"end\",\"exit_code\":0}\n");
  }

  void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  std::string Read(const std::string& name) const {
    const StatusOr<std::string> text = ReadFile(files_.Report() + "/" + name);
    EXPECT_TRUE(text.ok()) << name;
    return text.ok() ? *text : "";
  }
  std::string Report(int replicates = 50) {
    const StatusOr<std::string> written =
        WriteSweepReport(files_, {.delta = {}, .replicates = replicates});
    EXPECT_TRUE(written.ok()) << written.status().message();
    return Read("report.html");
  }

  SweepFiles files_;
  Plan plan_;
};

bool Holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// What is wrong with a page: elements that are not closed, text that could be read as one, quotes.
std::string HtmlMistake(const std::string& page) {
  const std::set<std::string> kVoid = {"!DOCTYPE", "meta"};
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != page.npos; at = page.find('<', at)) {
    const size_t end = page.find('>', at);
    if (end == page.npos) return "open tag at the end";
    const std::string tag = page.substr(at + 1, end - at - 1);
    if (Holds(tag, "<")) return "< in " + tag;
    if (std::ranges::count(tag, '"') % 2 != 0) return "quotes of " + tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    at = end + 1;
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return "close of " + tag;
      open.pop_back();
    } else if (name == "script" || name == "style") {
      at = page.find("</" + name + ">", at);
      if (at == page.npos) return "open " + name;
      at += name.size() + 3;
    } else if (!kVoid.contains(name) && tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

// What follows `name` in the line of fits.csv that begins with `begin`, by the heading's columns.
std::string Field(const std::string& csv, const std::string& begin, const std::string& name) {
  const auto cells = [](const std::string& line) {
    std::vector<std::string> parts(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        parts.emplace_back();
      } else {
        parts.back() += c;
      }
    }
    return parts;
  };
  const std::vector<std::string> names = cells(csv.substr(0, csv.find('\n')));
  const size_t line = csv.find("\n" + begin);
  if (line == csv.npos) return "no line " + begin;
  const std::vector<std::string> values =
      cells(csv.substr(line + 1, csv.find('\n', line + 1) - line - 1));
  EXPECT_EQ(values.size(), names.size()) << begin;
  const auto column = std::ranges::find(names, name) - names.begin();
  return column < static_cast<int64_t>(values.size()) ? values[column] : "no column " + name;
}

TEST_F(SweepReportTest, TellsThePlantedLaws) {
  Plant({});
  const std::string page = Report();
  EXPECT_EQ(HtmlMistake(page), "");
  EXPECT_LT(page.size(), kMostBytes);
  EXPECT_TRUE(Holds(page, "24 of 24 runs done, measured on 1000 rows of the validation split."));
  EXPECT_FALSE(Holds(page, "not complete"));
  EXPECT_TRUE(Holds(page, "Elastor is ahead at equal dense parameters (10k to 10.2M)"))
      << page.substr(0, 20000);
  EXPECT_TRUE(Holds(page, "Elastor is ahead at equal multiply-adds a sample"));
  EXPECT_TRUE(Holds(page, "The law is logloss = 0.44 + "));
  EXPECT_TRUE(Holds(page, "No run failed."));
  EXPECT_TRUE(Holds(page, "x86-64-v3 test"));
  EXPECT_TRUE(Holds(page, "00c0ffee00c0ffee"));
  EXPECT_FALSE(Holds(page, "Generalisation gaps") || Holds(page, "Condition numbers"));
  EXPECT_TRUE(Holds(page, "2.00 \u2192 3.00"));
  EXPECT_TRUE(Holds(page, "trainer --experiment=" + files_.Experiment(plan_.runs[0].folder)));
  const std::string fits = Read("fits.csv");
  for (const char* model : {"Elastor", "Mixer"}) {
    const std::string line = "logloss,dense_parameters," + std::string(model);
    EXPECT_NEAR(std::stod(Field(fits, line, "alpha_1")), kExponent, 0.02) << model;
    EXPECT_EQ(Field(fits, line, "identified"), "yes") << model;
    EXPECT_EQ(Field(fits, line, "hold_out_breaks_law"), "no") << model;
  }
  EXPECT_NEAR(std::stod(Field(fits, "normalized_entropy,multiply_adds,Mixer", "E")), 0.9, 2e-3);
  EXPECT_NEAR(std::stod(Field(fits, "1 - auc,dense_parameters,Elastor", "E")), 0.24, 2e-3);
  // Six sizes and two beyond, of three metrics, two sizes and two models, and the width's.
  const std::string points = Read("points.csv");
  EXPECT_GE(std::ranges::count(points, '\n'), 1 + 3 * 2 * 2 * 8);
  for (const char* figure :
       {"logloss_by_dense_parameters", "auc_by_dense_parameters", "logloss_by_multiply_adds",
        "normalized_entropy_by_dense_parameters", "logloss_by_width", "logloss_by_cost",
        "auc_by_seconds", "samples_per_s", "work_per_core"}) {
    const std::string svg = Read(std::string(figure) + ".svg");
    EXPECT_TRUE(svg.starts_with("<svg ")) << figure;
    EXPECT_EQ(HtmlMistake(svg), "") << figure;
    EXPECT_TRUE(Holds(page, svg.substr(0, svg.find("<style>")))) << figure;
  }
}

// Gaps that differ by an arm's own shift, and condition numbers that rise by a hundred.
TEST_F(SweepReportTest, ArmsAndKernels) {
  Plant({.sizes = 1, .seeds = 6});
  Write(
      files_.Sweep(),
      "base { }\naxis { name: \"model\" point { label: \"Elastor\" } point { label: \"Mixer\" } }\n"
      "gap_test { first: \"Elastor\" second: \"Mixer\" from_step: 10 }\n"
      "gap_test { first: \"Mixer\" second: \"Elastor\" from_step: 99 }\n");
  for (size_t i = 0; i < plan_.runs.size(); ++i) {
    const bool mixer = i >= 6;
    const double seed = 0.001 * static_cast<double>(i % 6);
    std::string metrics;
    for (const int step : {5, 10, 15}) {
      const double loss = 0.7 - 0.02 * step + seed;
      metrics += Json{{"event", "training_eval"}, {"step", step}, {"logloss", loss}}.dump() + "\n";
      metrics += Json{{"event", "eval"},
                      {"split", "validation"},
                      {"scheduled", true},
                      {"step", step},
                      {"logloss", loss + seed + (mixer ? 0.1 : 0)}}
                     .dump() +
                 "\n";
    }
    for (const int step : {0, 10}) {
      for (const char* layer : {"block0.ffn", "whole"}) {
        const bool unresolved = i == 0 && step == 10;
        metrics += Json{{"event", "ntk"},
                        {"step", step},
                        {"layer", layer},
                        {"rows", 128},
                        {"parameters", 99},
                        {"lambda_max", 2.0},
                        {"lambda_min", unresolved ? Json(nullptr) : Json(0.5)},
                        {"condition_number", unresolved  ? Json(nullptr)
                                             : step == 0 ? Json(1e3)
                                                         : Json(1e5)},
                        {"rank", 128}}
                       .dump() +
                   "\n";
      }
    }
    Write(files_.Run(plan_.runs[i].folder) + "/metrics.jsonl", metrics);
  }
  const std::string page = Report();
  EXPECT_EQ(HtmlMistake(page), "");
  const std::string gaps = Read("gaps.csv");
  // Of all 924 labellings only the arms' own and the exchanged one are so far apart.
  EXPECT_NEAR(std::stod(Field(gaps, "Elastor,Mixer", "p")), 2.0 / 924, 1e-6);
  for (const char* difference :
       {"gap_difference", "last_gap_difference", "equal_loss_gap_difference"}) {
    EXPECT_NEAR(std::stod(Field(gaps, "Elastor,Mixer", difference)), 0.1, 1e-9) << difference;
  }
  EXPECT_EQ(Field(gaps, "Elastor,Mixer", "labellings_are"), "all");
  EXPECT_EQ(Field(gaps, "Mixer,Elastor", "p"), "");
  EXPECT_TRUE(Holds(page, "no scheduled evaluation of the validation split from step 99"));
  EXPECT_TRUE(Holds(page, "Generalisation gaps</h2>"));
  EXPECT_EQ(std::ranges::count(Read("kernels.csv"), '\n'), 1 + 12 * 2 * 2);
  EXPECT_TRUE(Holds(page, "<td>5 of 6</td><td class=\"n\" data-sort=\"5\">5.00"));
  for (const char* figure :
       {"gap_1_Elastor_Mixer", "condition_numbers_first", "condition_numbers_last"}) {
    const std::string svg = Read(std::string(figure) + ".svg");
    EXPECT_TRUE(Holds(page, svg.substr(0, svg.find("<style>")))) << figure;
  }
}

// Kernels of two sizes, in runs that end at different steps: no mean is of both sizes, and no run
// is left out. The pictures have the larger size.
TEST_F(SweepReportTest, KernelsOfSizesAndOfRunsThatEndEarly) {
  Plant({.sizes = 2, .seeds = 2});
  for (size_t i = 0; i < plan_.runs.size(); ++i) {
    const bool large = i / 2 % 2 == 1;
    const int end = i % 2 == 0 ? 8 : 10;
    std::string metrics;
    for (const int step : {0, end}) {
      metrics += Json{{"event", "ntk"},
                      {"step", step},
                      {"layer", "whole"},
                      {"rows", 128},
                      {"condition_number", (large ? 1e5 : 1e2) * (step == 0 ? 1 : 10)}}
                     .dump() +
                 "\n";
    }
    Write(files_.Run(plan_.runs[i].folder) + "/metrics.jsonl", metrics);
  }
  const std::string page = Report();
  const auto row = [](const std::string& size, const std::string& which, const std::string& step,
                      const std::string& log10) {
    return size + "</td><td>whole</td><td>" + which + "</td><td class=\"n\" data-sort=\"" +
           step.substr(0, step.find(' ')) + "\">" + step +
           "</td><td class=\"n\" data-sort=\"128\">128</td><td>2 of 2</td><td class=\"n\" "
           "data-sort=\"" +
           log10 + "\">" + log10 + ".00 \u00b1 0.00";
  };
  EXPECT_TRUE(Holds(page, row("10k", "first", "0", "2")));
  EXPECT_TRUE(Holds(page, row("40k", "first", "0", "5")));
  EXPECT_TRUE(Holds(page, row("10k", "last", "8 to 10", "3")));
  EXPECT_TRUE(Holds(page, row("40k", "last", "8 to 10", "6")));
  const std::string svg = Read("condition_numbers_last.svg");
  EXPECT_TRUE(Holds(svg, "Elastor: whole 1,000,000 (1,000,000 to 1,000,000). Mixer")) << svg;
}

// Beyond 1,000 points of an arm not all are drawn, which the picture says.
// What was tried, by the metric that chose, and what bounded the search; the front has names; and
// the data of every picture beside it where they are asked for.
TEST_F(SweepReportTest, ASearchAndTheDataOfItsPictures) {
  Write(files_.Sweep(), R"(
    name: "planted" base { model { mlp { hidden: 4 } } training { batch_size: 8 } }
    axis { field: "training.seed" values: "1" }
    tuning { metric: AUC random { trials: 3 } most_runs: 9 rungs: 2 })");
  plan_.columns = {"training.seed", "stage", "optimizer.learning_rate", "tuning_warning"};
  const auto add = [&](Stage stage, const std::string& rate, int64_t steps, double logloss) {
    PlannedRun run;
    run.folder = FolderName({"r"}, std::string(15, '0') + std::to_string(plan_.runs.size()));
    run.stage = stage;
    run.columns = {stage == Stage::kFinal ? "1" : "0", StageName(stage), rate, ""};
    run.dense_parameters = run.multiply_adds = 100;
    run.steps = steps;
    run.samples = 8 * steps;
    Write(files_.Experiment(run.folder), "model { mlp { hidden: 4 } }\n");
    AddResults(run, logloss);
    plan_.runs.push_back(run);
  };
  // By AUC, 1.2 less the logloss here.
  for (const auto& [rate, logloss] : {std::pair("0.001", 0.6), {"0.002", 0.5}, {"0.004", 0.7}}) {
    add(Stage::kTune, rate, 5, logloss);
  }
  for (const auto& [rate, logloss] : {std::pair("0.002", 0.45), {"0.001", 0.55}}) {
    add(Stage::kTune, rate, 10, logloss);
  }
  add(Stage::kFinal, "0.002", 10, 0.44);
  plan_.tuned.push_back({.name = "r",
                         .chosen = "optimizer.learning_rate=0.002",
                         .metric = "auc",
                         .value = 0.75,
                         .warning = {},
                         .bound = "the budget of 9 runs allows 3 random combinations",
                         .failure = {}});
  ASSERT_TRUE(WritePlan(plan_, files_).ok());
  ASSERT_TRUE(WriteSweepReport(files_, {}, ExportFormat::kCsv).ok());
  EXPECT_TRUE(Holds(
      Read("report.html"),
      "<li>r: optimizer.learning_rate=0.002 had the best validation AUC, 0.75000, of 5 trials. "
      "Not all was tried: the budget of 9 runs allows 3 random combinations.</li>"));
  EXPECT_EQ(Read("tuning_1.csv"),
            "series,kind,x,y,low,high\n5 steps,mean,0.001,0.6,,\n5 steps,mean,0.002,0.7,,\n"
            "5 steps,mean,0.004,0.5,,\n10 steps,mean,0.002,0.75,,\n10 "
            "steps,mean,0.001,0.6499999999999999,,\n");
  EXPECT_TRUE(Holds(Read("logloss_by_cost.csv"), ",front,8000,0.44,,\n"));
}

TEST_F(SweepReportTest, ThinnedClouds) {
  Plant({.sizes = 1, .seeds = 3});
  Write(
      files_.Sweep(),
      "base { }\naxis { name: \"model\" point { label: \"Elastor\" } point { label: \"Mixer\" } }\n"
      "gap_test { first: \"Elastor\" second: \"Mixer\" }\n");
  for (size_t i = 0; i < plan_.runs.size(); ++i) {
    std::string metrics;
    for (int step = 1; step <= (i < 3 ? 400 : 300); ++step) {
      metrics += Json{{"event", "training_eval"}, {"step", step}, {"logloss", 0.5}}.dump() + "\n" +
                 Json{{"event", "eval"},
                      {"split", "validation"},
                      {"scheduled", true},
                      {"step", step},
                      {"logloss", 0.5 + 1e-3 * step}}
                     .dump() +
                 "\n";
    }
    Write(files_.Run(plan_.runs[i].folder) + "/metrics.jsonl", metrics);
  }
  Report();
  EXPECT_TRUE(Holds(Read("gap_1_Elastor_Mixer.svg"), "1500 of 2100 points are drawn"));
}

TEST_F(SweepReportTest, ConvertsPicturesWhereThereIsAConverter) {
  Plant({.sizes = 2, .seeds = 1});
  StatusOr<std::string> said = WriteSweepReport(files_, {.delta = {}, .replicates = 1});
  ASSERT_TRUE(said.ok());
  EXPECT_TRUE(Holds(*said, "no PNG files, for want of a working rsvg-convert"));
  EXPECT_FALSE(std::filesystem::exists(files_.Report() + "/logloss_by_cost.png"));
  const std::string converter = files_.root + "/rsvg-convert";
  Write(converter, "#!/bin/sh\necho \"$4\" >\"${3#--output=}\"\n");
  std::filesystem::permissions(converter, std::filesystem::perms::owner_all);
  said = WriteSweepReport(files_, {.delta = {}, .replicates = 1});
  ASSERT_TRUE(said.ok());
  EXPECT_FALSE(Holds(*said, "PNG"));
  EXPECT_EQ(Read("logloss_by_cost.png"), files_.Report() + "/logloss_by_cost.svg\n");
}

TEST_F(SweepReportTest, AsksTheNetworkForNothing) {
  Plant({});
  std::string page = Report();
  EXPECT_TRUE(Holds(page, "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"));
  const std::string name_space = "http://www.w3.org/2000/svg";
  for (size_t at = page.find(name_space); at != page.npos; at = page.find(name_space)) {
    page.erase(at, name_space.size());
  }
  for (const char* address : {"http:", "https:", "url(", "@import", "src="}) {
    EXPECT_FALSE(Holds(page, address)) << address;
  }
}

TEST_F(SweepReportTest, EqualFilesGiveEqualBytes) {
  Plant({});
  const std::string page = Report(), fits = Read("fits.csv");
  EXPECT_EQ(Report(), page);
  EXPECT_EQ(Read("fits.csv"), fits);
}

TEST_F(SweepReportTest, SaysThatASweepIsHalfWay) {
  Plant({}, [](size_t i) { return i % 3 == 0 ? RunState::kWaiting : RunState::kDone; });
  const std::string page = Report();
  EXPECT_TRUE(Holds(page, "16 of 24 runs done, 8 not finished"));
  EXPECT_TRUE(Holds(page, "The sweep is not complete"));
  EXPECT_TRUE(Holds(page, "Runs that are not finished: 8."));
  EXPECT_EQ(HtmlMistake(page), "");
}

TEST_F(SweepReportTest, NothingIsDoneYet) {
  Plant({}, [](size_t) { return RunState::kWaiting; });
  const std::string page = Report();
  EXPECT_TRUE(Holds(page, "0 of 24 runs done, 24 not finished"));
  EXPECT_TRUE(Holds(page, "No run is done yet."));
  EXPECT_EQ(HtmlMistake(page), "");
}

TEST_F(SweepReportTest, ListsFailuresWhateverTheyPrinted) {
  plan_.name = "</script><script>alert(1)</script>";
  Plant({}, [](size_t i) { return i == 5 ? RunState::kFailed : RunState::kDone; });
  const std::string attempts = files_.Attempts(plan_.runs[5].folder);
  ASSERT_TRUE(AppendStart(attempts, 1, {.cores = {0}}).ok());
  ASSERT_TRUE(AppendEnd(attempts, 4, false, 1.5,
                        "trainer: <script>alert(2)</script> & \"quoted\" \x1b[31m caf\xe9")
                  .ok());
  const std::string page = Report();
  EXPECT_EQ(HtmlMistake(page), "");
  EXPECT_FALSE(Holds(page, "<script>alert"));
  EXPECT_TRUE(Holds(page, "<td>diverged</td>"));
  EXPECT_TRUE(
      Holds(page, "trainer: &lt;script&gt;alert(2)&lt;/script&gt; &amp; &quot;quoted&quot;  [31m"));
  EXPECT_TRUE(Holds(page, "\"sweep\":\"\\u003c/script>"));
}

// The sizes' learning rates and the labels are no series; a learning rate that every size has, and
// another data set, are.
TEST(SeriesTest, WhatIsComparedAsOne) {
  SweepData data;
  data.columns = {"which", "model.token_width", "optimizer.learning_rate", "data.path"};
  std::vector<std::string> kinds;
  const auto add = [&](const char* label, const char* width, const char* rate, const char* path) {
    SweepRun& run = data.runs.emplace_back();
    run.plan.columns = {label, width, rate, path};
    run.sizes = {{"dense_parameters", std::stod(width)}};
    kinds.push_back("rank_elastor");
  };
  const auto series = [&] {
    data.series.clear();
    AssignSeries(kinds, &data);
    return data.series;
  };
  add("small", "8", "0.01", "a");
  add("large", "16", "0.001", "a");
  EXPECT_EQ(series(), (std::vector<std::string>{"RankElastor"}));
  add("small", "8", "0.02", "a");
  EXPECT_EQ(series(), (std::vector<std::string>{"small, learning_rate 0.01", "large",
                                                "small, learning_rate 0.02"}));
  data.runs.pop_back();
  kinds.pop_back();
  add("small", "8", "0.01", "b");
  EXPECT_EQ(series(), (std::vector<std::string>{"RankElastor, path a", "RankElastor, path b"}));
}

// Runs with AUCs that are given, of settings with a label each, sizes in dense parameters.
class AnswerTest : public SweepReportTest {
 protected:
  AnswerTest() { plan_.columns = {"model", "model.kind", "model.blocks", "training.seed"}; }

  void Add(const std::string& label, const char* kind, int blocks, int seed, double auc,
           int64_t parameters = 1000) {
    PlannedRun run;
    run.columns = {label, kind, std::to_string(blocks), std::to_string(seed)};
    char hash[17];
    std::snprintf(hash, sizeof(hash), "%016zx", plan_.runs.size());
    run.folder = FolderName({label, "b" + std::to_string(blocks)}, hash);
    run.dense_parameters = parameters;
    run.multiply_adds = 2 * parameters;
    run.steps = 10;
    run.samples = 640;
    Write(files_.Experiment(run.folder), std::string("data { path: \"/data\" }\nmodel { ") + kind +
                                             " { } }\ntraining { seed: " + std::to_string(seed) +
                                             " }\n");
    if (auc > 0) AddResults(run, 1.2 - auc);
    plan_.runs.push_back(run);
  }

  // The paragraphs of the answer.
  std::vector<std::string> Answer() {
    EXPECT_TRUE(WritePlan(plan_, files_).ok());
    const std::string page = Report();
    EXPECT_EQ(HtmlMistake(page), "");
    std::vector<std::string> paragraphs;
    size_t at = page.find("<div class=\"answer\">");
    const size_t end = std::min(page.find("<details>", at), page.find("</div>", at));
    for (; at < end; ++at) {
      at = page.find("<p", at);
      if (at >= end) break;
      at = page.find('>', at) + 1;
      paragraphs.push_back(page.substr(at, page.find("</p>", at) - at));
    }
    paragraphs.resize(std::max<size_t>(paragraphs.size(), 2));
    return paragraphs;
  }
};

// Deviations of three seeds that add up to 0.
constexpr double kSeeds[] = {-1e-3, 0, 1e-3};

TEST_F(AnswerTest, NoEffect) {
  for (int s = 0; s < 3; ++s) {
    Add("A", "mlp", 1, s, 0.8 + kSeeds[s]);
    Add("B", "dcn_v2", 1, s, 0.8 + 1e-4 - 2 * kSeeds[s]);
  }
  const std::vector<std::string> said = Answer();
  // Differences -2.9e-3, 1e-4 and 3.1e-3 have the spread 3e-3: 0.0001 -+ 4.30265 3e-3 / sqrt 3.
  EXPECT_EQ(
      said[0],
      "B and A cannot be told apart by AUC: B is better by 0.0001 [\u22120.0074, 0.0076] over "
      "3 seeds.");
  EXPECT_EQ(said[1], "By logloss nobody can be told from the best either.");
}

TEST_F(AnswerTest, OneArmAhead) {
  for (int s = 0; s < 3; ++s) {
    Add("A", "mlp", 1, s, 0.8 + 10 * kSeeds[s]);
    Add("B", "dcn_v2", 1, s, 0.81 + 10 * kSeeds[s] + 0.1 * kSeeds[s]);
    Add("C", "auto_int", 1, s, 0.79 + 10 * kSeeds[s] - 0.1 * kSeeds[s]);
  }
  std::vector<std::string> said = Answer();
  EXPECT_EQ(
      said[0],
      "B is ahead of all others in AUC over 3 seeds: of A by 0.0100 [0.0098, 0.0102] and C by "
      "0.0200 [0.0195, 0.0205].");
  EXPECT_EQ(said[1], "It is the same by logloss.");
  EXPECT_TRUE(Holds(Read("differences.csv"), "auc,validation,A,B,,3,yes,"));
  EXPECT_TRUE(Holds(Read("settings.csv"), "\nB,B,,3,1000,2000,,"));
  EXPECT_TRUE(Holds(Read("lead_auc.svg"), "of C: +0.0200 [+0.0195, +0.0205], told apart."));
}

TEST_F(AnswerTest, ASettingThatFailedToLearnSquashesNoPicture) {
  for (int blocks = 1; blocks <= 5; ++blocks) {
    Add("A", "mlp", blocks, 1, blocks == 5 ? 0.51 : 0.8 + 1e-3 * blocks, 1000 * blocks);
  }
  ASSERT_TRUE(WritePlan(plan_, files_).ok());
  ASSERT_TRUE(WriteSweepReport(files_, {}, ExportFormat::kCsv).ok());
  EXPECT_TRUE(Holds(Read("auc_by_cost.svg"), "not drawn, as far worse: blocks 5 (AUC 0.51000)"));
  EXPECT_FALSE(Holds(Read("auc_by_cost.csv"), "0.51"));
  EXPECT_TRUE(Holds(Read("auc_by_cost.csv"), "0.801"));
  EXPECT_TRUE(Holds(Read("settings.csv"), "0.51"));
}

TEST_F(AnswerTest, ANewNameForALabel) {
  for (int s = 0; s < 2; ++s) {
    Add("A", "mlp", 1, s, 0.8);
    Add("B", "dcn_v2", 1, s, 0.81);
  }
  ASSERT_TRUE(WritePlan(plan_, files_).ok());
  Write(files_.Sweep(),
        "base { }\naxis { name: \"model\" point { label: \"A\" set: \"name=A\" } "
        "point { label: \"B\" } }\n");
  ASSERT_TRUE(RenameLabel(files_, {"A", "Alpha & co"}).ok());
  const std::string page = Report();
  EXPECT_TRUE(Holds(page, "B is ahead of Alpha &amp; co by 0.0100 AUC"));
  EXPECT_TRUE(Holds(page, "No law is fitted: no model has three sizes."));
  EXPECT_FALSE(Holds(page, "The laws in words"));
  EXPECT_TRUE(Holds(page, "<td>Alpha &amp; co, seed 1</td>"));
  EXPECT_TRUE(Holds(*ReadFile(files_.Table()), plan_.runs[0].folder + ",Alpha & co,mlp,"));
  EXPECT_TRUE(Holds(*ReadFile(files_.Sweep()), "name=Alpha & co"));
  EXPECT_TRUE(Holds(RenameLabel(files_, {"A", "C"}).message(),
                    "--rename=A=C: the sweep has no label 'A'; it has: Alpha & co, B"));
  EXPECT_TRUE(Holds(RenameLabel(files_, {"B", "Alpha & co"}).message(), "expected a new name"));
}

TEST_F(AnswerTest, OneSeed) {
  Add("A", "mlp", 1, 1, 0.8);
  Add("B", "dcn_v2", 1, 1, 0.81);
  EXPECT_EQ(Answer()[0],
            "B has the better AUC, by 0.0100 over A, but with one seed nothing tells this from the "
            "luck of a seed.");
}

TEST_F(AnswerTest, ARunFailed) {
  for (int s = 0; s < 3; ++s) {
    Add("A", "mlp", 1, s, 0.8 + kSeeds[s]);
    Add("B", "dcn_v2", 1, s, s == 1 ? 0 : 0.82 + kSeeds[s]);
  }
  ASSERT_TRUE(AppendStart(files_.Attempts(plan_.runs[3].folder), 1, {.cores = {0}}).ok());
  ASSERT_TRUE(AppendEnd(files_.Attempts(plan_.runs[3].folder), 4, false, 1, "diverged").ok());
  const std::vector<std::string> said = Answer();
  EXPECT_EQ(said[0], "B is ahead of A by 0.0200 AUC [0.0200, 0.0200] over 2 seeds.");
  EXPECT_EQ(said[2], "1 run failed and is in none of these figures.");
}

TEST_F(AnswerTest, ArmsThatCross) {
  for (int s = 0; s < 3; ++s) {
    for (const int blocks : {1, 2}) {
      Add("A", "mlp", blocks, s, 0.8 + 0.01 * blocks + kSeeds[s], 1000 * blocks);
      Add("B", "dcn_v2", blocks, s, 0.83 - 0.01 * blocks + 1.1 * kSeeds[s], 1000 * blocks);
    }
  }
  // At one block 0.81 and 0.82, at two 0.82 and 0.81.
  EXPECT_EQ(Answer()[0], "A and B cross in AUC: A is ahead at blocks 2, B at blocks 1.");
}

TEST_F(AnswerTest, SizesOfOneModel) {
  const auto plant = [&](const std::vector<double>& means, double noise, int seeds = 3) {
    plan_.runs.clear();
    for (const char* folder : {"/runs", "/attempts"}) {
      std::filesystem::remove_all(files_.root + folder);
      std::filesystem::create_directories(files_.root + folder);
    }
    for (size_t i = 0; i < means.size(); ++i) {
      for (int s = 0; s < seeds; ++s) {
        Add("A", "mlp", static_cast<int>(i) + 1, s, means[i] + noise * kSeeds[(s + i) % 3],
            std::llround(1e4 * std::pow(4, i)));
      }
    }
    return Answer();
  };
  EXPECT_EQ(
      plant({0.8, 0.8001, 0.8}, 1)[0],
      "No difference between sizes is shown between 10k and 160k dense parameters: p 0.99. No "
      "law can be fitted.");
  EXPECT_EQ(plant({0.79, 0.8, 0.81}, 1)[0],
            "The largest size was best, 160k (AUC 0.8100), and was still improving: go on to "
            "larger ones.");
  EXPECT_EQ(plant({0.79, 0.81, 0.8101}, 1)[0],
            "The largest size was best, 160k (AUC 0.8101), but is not shown to be better than "
            "40k.");
  EXPECT_EQ(plant({0.79, 0.82, 0.8}, 1)[0],
            "The best size was 40k (AUC 0.8200); the largest, 160k, is worse by 0.0200 AUC.");
  EXPECT_EQ(plant({0.79, 0.8101, 0.81}, 1)[0],
            "The best size was 40k (AUC 0.8101); the largest, 160k, cannot be told from it.");
  EXPECT_EQ(plant({0.79, 0.8}, 1, 1)[0],
            "One seed of every size: what size does between 10k and 40k dense parameters cannot be "
            "told from the luck of a seed; the best was 40k (AUC 0.8000).");
  EXPECT_EQ(plant({0.79, 0.8}, 1)[1], "The best setting was blocks 2, AUC 0.8000.");
}

TEST_F(SweepReportTest, ALawAndABrokenLaw) {
  Plant({.sizes = 8, .ratio = 3});
  std::string page = Report();
  EXPECT_TRUE(Holds(page, "Elastor: Logloss follows the law 0.44 + "));
  EXPECT_TRUE(Holds(page, "The largest size was best, 21.9M (AUC "));
  // The two largest sizes are worse than the law of the others by far.
  for (size_t i = 0; i < plan_.runs.size(); ++i) {
    if (i % 16 < 12) continue;
    AddResults(plan_.runs[i], 0.449 + 1e-5 * static_cast<double>(i % 2));
  }
  page = Report();
  EXPECT_TRUE(Holds(page,
                    "Elastor: The law breaks: the largest sizes lie outside what the smaller "
                    "ones predict."));
  EXPECT_FALSE(Holds(page, "Elastor: Logloss follows the law"));
}

// Points with labels that set different fields are arms, though all that they set are numbers.
TEST(SeriesTest, LabelsOfPointsThatSetOtherFields) {
  SweepData data;
  data.columns = {
      "model",         "model.hidden", "sequence.heads", "stage", "optimizer.learning_rate",
      "tuning_warning"};
  const std::vector<std::string> kinds(2, "mlp");
  for (const bool attends : {false, true}) {
    SweepRun& run = data.runs.emplace_back();
    run.plan.columns = {
        attends ? "DIN" : "MLP", attends ? "" : "64", attends ? "2" : "", "final", "0.1", ""};
    run.sizes = {{"dense_parameters", attends ? 200.0 : 100.0}};
  }
  AssignSeries(kinds, &data);
  EXPECT_EQ(data.series, (std::vector<std::string>{"MLP", "DIN"}));
  // One model, tuned: its name is no stage.
  data.runs.pop_back();
  data.columns[0] = "model.tokens";
  data.runs[0].plan.columns[0] = "3";
  data.series.clear();
  AssignSeries({"mlp"}, &data);
  EXPECT_EQ(data.series, (std::vector<std::string>{"Mlp"}));
}

TEST_F(SweepReportTest, TenThousandRuns) {
  Plant({.sizes = 10, .seeds = 500, .ratio = 2},
        [](size_t i) { return i % 5 == 0 ? RunState::kDone : RunState::kWaiting; });
  ASSERT_EQ(plan_.runs.size(), 10'000u);
  const auto start = std::chrono::steady_clock::now();
  const std::string page = Report(/*replicates=*/10);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("10,000 runs: %.1f s, %zu bytes\n", seconds.count(), page.size());
  EXPECT_LT(page.size(), kMostBytes);
  EXPECT_EQ(HtmlMistake(page), "");
  EXPECT_TRUE(Holds(page, "2000 of 10000 runs done, 8000 not finished"));
  EXPECT_TRUE(Holds(page, "all are in runs.csv"));
}

}  // namespace
}  // namespace elastor
