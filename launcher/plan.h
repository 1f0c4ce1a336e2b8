#ifndef ELASTOR_LAUNCHER_PLAN_H_
#define ELASTOR_LAUNCHER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

namespace elastor {

// Work of a training step per sample without dense weights, for its ids and embedding rows, in
// multiply-adds of the forward pass. It was measured on Criteo's 39 fields of width 20.
inline constexpr double kFixedMultiplyAdds = 45'000;

// Stage of a run. Tuning runs are no result of a sweep (Sweep.tuning).
enum class Stage { kFinal, kTune };
const char* StageName(Stage stage);  // "final", "tune"

// One run of a sweep.
struct PlannedRun {
  std::string folder;  // FolderName
  Stage stage = Stage::kFinal;
  std::string model = {};  // as KindName has it
  int64_t seed = 0;
  std::vector<std::string> columns = {};  // by Plan::columns
  int ranks = 1, threads = 1;
  int gpus = 0;       // GPUs per rank
  int nodes = 1;      // divides ranks
  int memory_gb = 0;  // memory of the whole run; 0: not given
  int minutes = 0;    // time limit; 0: not given
  int64_t dense_parameters = 0, embedding_parameters = 0;
  int64_t multiply_adds = 0;  // per sample, forward pass
  int64_t bytes_of_rank = 0;  // memory that the largest rank is sure to touch
  int64_t steps = 0;          // 0: not known, without data
  int64_t samples = 0;        // samples of all steps
  // Seconds of a sample within steps, by parallel.machine (PredictedTimes); 0: not known.
  double predicted_sample_s = 0;
  std::string experiment = {};   // as a text; empty in a plan that was read
  std::string predictions = {};  // Sweep.predictions; empty in a plan that was read
  // For a trial: its folder in the previous rung, whose steps are its first steps; empty: none.
  // Empty in a plan that was read.
  std::string continues = {};

  int cores() const { return ranks * threads; }
  int all_gpus() const { return ranks * gpus; }
  int64_t bytes()
      const;            // memory of all ranks: the given one, else the sure one with the libraries'
  double cost() const;  // samples * (multiply_adds + kFixedMultiplyAdds)
};

// State of a configuration's tuning: open, finished with chosen values, or failed.
struct TunedConfiguration {
  std::string name;                // the labels of its points
  std::string chosen;              // "optimizer.learning_rate=0.002"
  std::string metric = "logloss";  // by which it was chosen
  double value = 0;                // the metric of the chosen trial
  std::string warning;             // the chosen values are at the edge of what was tried
  std::string bound;               // what the budget left out
  std::string failure;
};

// Runs that cannot be planned yet.
struct LaterRuns {
  PlannedRun each;    // without a folder; of its size
  int64_t count = 0;  // of the final stage exactly, of the other at most
};

struct Plan {
  std::string name;
  // Names of the axes that have labels, then every field that an axis sets. With tuning also
  // "stage", the tuned fields and "tuning_warning".
  std::vector<std::string> columns;
  std::vector<PlannedRun> runs;
  std::vector<TunedConfiguration> tuned;
  std::vector<LaterRuns> later;  // which depend on what these runs come to
};

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_PLAN_H_
