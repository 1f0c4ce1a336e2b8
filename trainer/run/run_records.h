#ifndef ELASTOR_TRAINER_RUN_RUN_RECORDS_H_
#define ELASTOR_TRAINER_RUN_RUN_RECORDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/evaluate/metrics.h"
#include "trainer/evaluate/spectrum_record.h"

namespace elastor {

// What a run tells about itself: the lines of metrics.jsonl and summary.json (docs/use/outputs.md).

struct TrainRecord {
  int64_t step = 0;  // steps done
  int64_t epoch = 0;
  double loss = 0;  // the task's, without l2
  double l2 = 0;
  double learning_rate = 0;                                        // of that step
  double gradient_norm = 0;                                        // before clipping
  double samples_per_s = 0;                                        // since the last record
  std::vector<std::pair<std::string, double>> phase_seconds = {};  // since the last record
};

struct EvalRecord {
  std::string split;
  int64_t step = 0;
  int64_t rows = 0;           // of the split
  MetricValues metrics = {};  // of the label that the monitor follows
  // Where several are learned: of all of them, that one included.
  std::vector<MetricValues> labels = {};
  bool scheduled = false;  // one that control (plateau, early stop, best weights) acts upon
};

// A checkpoint that is whole on disk.
struct CheckpointRecord {
  int64_t step = 0;
  std::string digest = {};
  std::string path = {};       // in the output directory
  std::string base = {};       // of a delta: the folder that it completes; else empty
  double blocked_seconds = 0;  // training stood still: state copied, or written
  double write_seconds = 0;    // from the copy's end to the rename
};

// What a phase of communication took in all, training and evaluation.
struct CommunicationRecord {
  std::string phase;
  int64_t calls = 0;       // of one rank
  int64_t bytes_sent = 0;  // by all ranks to other ranks
  double seconds = 0;      // inside the calls on rank 0, waiting included
};

struct Summary {
  std::string name;                 // of the experiment
  std::string mode = "train";       // or evaluate, predict, spectra, theory, ntk
  std::string model = {};           // of those modes: the folder of the model that was used
  std::string predictions = {};     // the file that was written; empty: none
  std::string split;                // of the last evaluation; empty: not evaluated
  int64_t rows = 0;                 // of that evaluation
  bool unlabelled = false;          // none of them has a label
  std::optional<double> auc;        // of that evaluation; none: one class, or not evaluated
  std::optional<double> best_auc;   // that any model can reach, where the data set knows it
  std::optional<double> best_gauc;  // likewise
  std::optional<double> logloss;
  std::optional<double> gauc;  // none: no groups, or none with both classes
  // Where labels are classes.
  std::optional<double> accuracy = {};
  std::optional<double> bits_per_label = {};
  // Where several labels are learned: the one these five are of, and those of each.
  std::string label = {};
  struct Label {
    std::string name = {};
    int64_t rows = 0;  // that have it
    std::optional<double> auc = {};
    std::optional<double> best_auc = {};
    std::optional<double> logloss = {};
    std::optional<double> gauc = {};
    std::optional<double> accuracy = {};
    std::optional<double> bits_per_label = {};
  };
  std::vector<Label> labels = {};
  int64_t steps = 0;
  int64_t epochs = 0;
  // Of the scheduled evaluations; none: there was none.
  std::string monitor = {};  // the metric that control follows: "auc"
  std::optional<int64_t> best_step = {};
  std::optional<double> best_metric = {};  // its value there
  bool early_stopped = false;
  double samples_per_s = 0;
  int ranks = 0;
  int virtual_shards = 0;
  int64_t dense_parameters = 0;
  int64_t embedding_parameters = 0;
  std::string state_digest;
  std::string numerics;      // fingerprint
  std::string isa = {};      // of rank 0's kernels, on which no number depends: "v3" or "v4"
  std::string numeric_hash;  // of the experiment
  double wall_s = 0;
  int64_t peak_memory_bytes = 0;              // of rank 0's process
  std::vector<SpectrumRecord> spectrum = {};  // the last measurement, one a probe
  std::vector<CommunicationRecord> communication = {};
};

// A RankRecord's histogram as records show it: neighbouring bins together, 32 in all.
std::vector<int64_t> CoarseHistogram(const std::vector<int64_t>& histogram);

// One JSON object on one line, without the newline. Numbers that are not finite become null.
std::string ToJson(const TrainRecord& record);
std::string ToJson(const EvalRecord& record);
std::string ToJson(const SpectrumRecord& record);
std::string ToJson(const ScoringRecord& record);
std::string ToJson(const CheckpointRecord& record);

// summary.json, indented.
std::string ToJson(const Summary& summary);
// The summary for people: a few lines, each ended.
std::string ToText(const Summary& summary);
// "step 100  validation  auc 0.7581  logloss 0.4811"
std::string ToText(const EvalRecord& record);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_RUN_RECORDS_H_
