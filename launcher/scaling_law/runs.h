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

// What a law is fitted to. All are losses: of the AUC it is 1 - AUC.
enum class Metric { kLogloss, kAuc, kNormalizedEntropy };
// "logloss", "auc", "normalized_entropy", as in metrics.jsonl.
const char* MetricName(Metric metric);
StatusOr<Metric> MetricOf(const std::string& name);

// What runs can be compared by: "dense_parameters", "width", "depth", "samples" (rows trained on,
// epochs counted), "multiply_adds" (of a sample's forward pass).
std::span<const char* const> SizeNames();

// What is known of one run.
struct Run {
  std::string source;  // its folder, or "points.csv:7"
  std::string model;   // "rank_elastor"; of points without that column "points"
  int64_t seed = 0;
  double value = 0;                     // of the metric, as a loss
  std::map<std::string, double> sizes;  // by name
};

// "rank_elastor": the model that a run is compared as.
std::string ModelName(const ModelConfig& model);
// Adds width and depth: token_width and blocks of the token models, and of an MLP the width and
// number of its hidden layers where those are equally wide; of others nothing.
void AddModelSizes(const ModelConfig& model, std::map<std::string, double>* sizes);

// The runs of these folders, from summary.json, experiment.textproto and, for normalized_entropy,
// metrics.jsonl. Multiply-adds need the shape of the data set and are missing when that is not
// there any more. User error when a folder is not that of a finished run, has no finite metric, or
// was evaluated on other rows than the first.
StatusOr<std::vector<Run>> ReadRunFolders(std::span<const std::string> folders, Metric metric);

// The lines of a CSV file whose first line names the columns: the metric, sizes, and optionally
// model and seed (left out: the how-many-eth of the model and these sizes). Blank lines and lines
// that begin with # are skipped. User error naming the line.
StatusOr<std::vector<Run>> ReadPoints(const std::string& path, Metric metric);

// User error, without the model's name, when a law of these sizes has too few configurations, and,
// unless `single_seeds`, when no configuration has two seeds.
Status EnoughToFit(const std::vector<Configuration>& configurations,
                   std::span<const std::string> names, bool single_seeds);

// The configurations of every model, by the sizes of these names, in increasing order. User error
// when a run lacks one, when two have the same seed, and as EnoughToFit.
StatusOr<std::map<std::string, std::vector<Configuration>>> GroupRuns(
    std::span<const Run> runs, std::span<const std::string> names, bool single_seeds);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_RUNS_H_
