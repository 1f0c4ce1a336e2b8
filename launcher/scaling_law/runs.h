#ifndef ELASTOR_LAUNCHER_SCALING_LAW_RUNS_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_RUNS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "launcher/scaling_law/law_fit.h"

namespace elastor {

// Metric that a law is fitted to. All are losses; for the AUC it is 1 - AUC.
enum class Metric { kLogloss, kAuc, kNormalizedEntropy };
// Return the metric's name in metrics.jsonl, "logloss", "auc" or "normalized_entropy", and the
// metric of a name.
const char* MetricName(Metric metric);
StatusOr<Metric> MetricOf(const std::string& name);

// Names of the sizes by which runs can be compared: "dense_parameters", "width", "depth", "samples"
// (rows trained on, epochs counted), "multiply_adds" (a sample's forward pass).
std::span<const char* const> SizeNames();

// Facts about one run.
struct RunFacts {
  std::string source;  // its folder, or "points.csv:7"
  std::string model;   // "rank_elastor"; of points without that column "points"
  int64_t seed = 0;
  double value = 0;                     // value of the metric, as a loss
  std::map<std::string, double> sizes;  // by name
};

// Returns the name under which a run's model is compared: "rank_elastor".
std::string ModelName(const ModelConfig& model);
// Adds width and depth: token_width and blocks for the token models; for an MLP, the width and
// number of its hidden layers if they are equally wide. Adds nothing for other models.
void AddModelSizes(const ModelConfig& model, std::map<std::string, double>* sizes);

// Reads the runs in these folders from summary.json, experiment.textproto and, for
// normalized_entropy, metrics.jsonl. Multiply-adds need the shape of the data set and are missing
// if it no longer exists. User error when a folder holds no finished run, has no finite metric, or
// was evaluated on other rows than the first.
StatusOr<std::vector<RunFacts>> ReadRunFolders(std::span<const std::string> folders, Metric metric);

// Reads the lines of a CSV file whose first line names the columns: the metric, sizes, and
// optionally model and seed. A missing seed is the line's number among those of its model and
// sizes. Blank lines and lines that begin with # are skipped. User error naming the line.
StatusOr<std::vector<RunFacts>> ReadPoints(const std::string& path, Metric metric);

// User error, without the model's name, when a law of these sizes has too few configurations, and,
// unless `single_seeds`, when no configuration has two seeds.
Status EnoughToFit(const std::vector<Configuration>& configurations,
                   std::span<const std::string> names, bool single_seeds);

// Groups runs into the configurations of every model, by the sizes of these names, in increasing
// order. User error when a run lacks a size, when two runs have the same seed, and as EnoughToFit.
StatusOr<std::map<std::string, std::vector<Configuration>>> GroupRuns(
    std::span<const RunFacts> runs, std::span<const std::string> names, bool single_seeds);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_RUNS_H_
