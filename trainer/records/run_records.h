#ifndef ELASTOR_TRAINER_RECORDS_RUN_RECORDS_H_
#define ELASTOR_TRAINER_RECORDS_RUN_RECORDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/records/metric_values.h"
#include "trainer/records/ntk_record.h"
#include "trainer/records/spectrum_record.h"

namespace elastor {

// Records of a run: the lines of metrics.jsonl, and summary.json (docs/use/outputs.md).

struct TrainRecord {
  int64_t step = 0;  // steps done
  int64_t epoch = 0;
  double loss = 0;  // the task's loss, without l2
  double l2 = 0;
  double learning_rate = 0;                                        // of that step
  double gradient_norm = 0;                                        // before clipping
  double samples_per_s = 0;                                        // since the last record
  std::vector<std::pair<std::string, double>> phase_seconds = {};  // since the last record
};

struct EvalRecord {
  std::string split;
  int64_t step = 0;
  int64_t rows = 0;           // number of the split's rows
  MetricValues metrics = {};  // metrics of the label that the monitor follows
  // Metrics of every label, the monitored one included, if several labels are learned; else empty.
  std::vector<MetricValues> labels = {};
  bool scheduled = false;  // whether control (plateau, early stop, best weights) acts upon it
};

// A checkpoint that is whole on disk.
struct CheckpointRecord {
  int64_t step = 0;
  std::string digest = {};
  std::string path = {};       // path within the output directory
  std::string base = {};       // the folder that a delta completes; empty for a full checkpoint
  double blocked_seconds = 0;  // time that training stood still while state was copied or written
  double write_seconds = 0;    // time from the copy's end to the rename
};

// Total cost of one phase of communication, over training and evaluation.
struct CommunicationRecord {
  std::string phase;
  int64_t calls = 0;       // calls of one rank
  int64_t bytes_sent = 0;  // bytes that all ranks sent to other ranks
  double seconds = 0;      // time inside the calls on rank 0, waiting included
};

struct Summary {
  std::string name;                 // the experiment's name
  std::string mode = "train";       // or evaluate, predict, spectra, theory, ntk
  std::string model = {};           // folder of the model that such a mode used
  std::string predictions = {};     // the file that was written; empty: none
  std::string split;                // split of the last evaluation; empty: not evaluated
  int64_t rows = 0;                 // number of rows of that evaluation
  bool unlabelled = false;          // whether none of these rows has a label
  std::optional<double> auc;        // AUC of that evaluation; none: one class, or not evaluated
  std::optional<double> best_auc;   // best AUC that any model can reach, if the data set knows it
  std::optional<double> best_gauc;  // best gAUC, likewise
  std::optional<double> logloss;
  std::optional<double> gauc;  // none: no groups, or none with both classes
  // Metrics of class labels.
  std::optional<double> accuracy = {};
  std::optional<double> bits_per_label = {};
  // If several labels are learned: the label that the metrics above belong to, and the metrics of
  // each label.
  std::string label = {};
  struct Label {
    std::string name = {};
    int64_t rows = 0;  // number of rows that have the label
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
  // Result of the scheduled evaluations; empty without any.
  std::string monitor = {};  // the metric that control follows: "auc"
  std::optional<int64_t> best_step = {};
  std::optional<double> best_metric = {};  // the monitored metric's value at best_step
  bool early_stopped = false;
  double samples_per_s = 0;
  int ranks = 0;
  int virtual_shards = 0;
  int64_t dense_parameters = 0;
  int64_t embedding_parameters = 0;
  std::string state_digest;
  std::string numerics;  // numerics fingerprint
  std::string isa =
      {};  // instruction set of rank 0's kernels, "v3" or "v4"; numbers do not depend on it
  std::string numeric_hash;  // NumericHash of the experiment
  double wall_s = 0;
  int64_t peak_memory_bytes = 0;              // peak memory of rank 0's process
  std::vector<SpectrumRecord> spectrum = {};  // the last measurement, one record per probe
  std::vector<CommunicationRecord> communication = {};
};

// Merges neighbouring bins of a RankRecord's histogram into the 32 bins that records show.
std::vector<int64_t> CoarseHistogram(const std::vector<int64_t>& histogram);

// Return one JSON object on one line, without the newline. Numbers that are not finite become null.
std::string ToJson(const TrainRecord& record);
std::string ToJson(const EvalRecord& record);
std::string ToJson(const SpectrumRecord& record);
std::string ToJson(const ScoringRecord& record);
std::string ToJson(const NtkRecord& record);  // without the eigenvalues
std::string ToJson(const CheckpointRecord& record);

// Returns the text of summary.json, indented.
std::string ToJson(const Summary& summary);
// Returns the summary for people: a few lines, each ended by a newline.
std::string ToText(const Summary& summary);
// Returns "step 100  validation  auc 0.7581  logloss 0.4811".
std::string ToText(const EvalRecord& record);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_RUN_RECORDS_H_
