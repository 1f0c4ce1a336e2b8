#ifndef ELASTOR_LAUNCHER_SPECTRA_REPORT_RUNS_H_
#define ELASTOR_LAUNCHER_SPECTRA_REPORT_RUNS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

// Two definitions of the effective rank (docs/reference/training.md).
inline constexpr const char* kRankNames[] = {"stable", "entropy"};
inline constexpr int kRankKinds = 2;

// Mean ranks over rows by one definition, one per stage in the model's order.
using StageMeans = std::vector<double>;

// Name and seed of a run's experiment.
struct RunName {
  std::string model;  // the experiment's name
  int64_t seed = 0;
};
StatusOr<RunName> ReadRunName(const std::string& folder);

struct SpectraRun {
  std::string source;  // its folder
  std::string model;   // the experiment's name
  int64_t seed = 0;
  std::string rows;  // "13714 rows of the validation split"
  std::vector<std::string> stages;
  std::map<int64_t, StageMeans> means[kRankKinds];  // by step
  // Mean ranks of a linear head's scoring matrices, by step.
  std::map<int64_t, double> scoring[kRankKinds];
};

// The last stages of a model's blocks or, where its blocks are applied repeatedly, iterations:
// stages are of one where their names begin alike, up to the first point ("iteration3."); a stage
// may be an iteration by itself ("iteration3"; 0 is what the first one reads). Numbers of stages in
// order.
std::vector<size_t> Trajectory(std::span<const std::string> stages);

// The runs of one model, which differ in their seeds.
struct SpectraModel {
  std::string name;
  std::string rows;
  std::vector<std::string> stages;
  std::vector<int64_t> steps;    // at which all runs were measured, ascending
  std::vector<SpectraRun> runs;  // by seed
};

// Reads the measurements in these folders of training runs or of mode spectra: the lines of
// metrics.jsonl whose event is spectrum or scoring. Lines whose event is training_spectrum form a
// separate model, "NAME, training rows". Models come in the order in which they are first named.
// User error when a folder holds no measurement, or when runs of one model have the same seed,
// different stages or rows, or no common step.
StatusOr<std::vector<SpectraModel>> ReadSpectraModels(std::span<const std::string> folders);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SPECTRA_REPORT_RUNS_H_
