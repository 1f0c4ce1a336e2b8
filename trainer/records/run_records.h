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

// Records of a run: the lines of metrics.jsonl, and summary.json (docs/use/outputs.md). Below each
// stands its table (record_field.h), in the order of the JSON.

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
inline constexpr RecordField<TrainRecord> kTrainFields[] = {
    {.name = "step", .value = &TrainRecord::step},
    {.name = "epoch", .value = &TrainRecord::epoch},
    // A picture of one run has the logloss of its evaluations, too (trainer/plot/run_figures.cc).
    {.name = "loss",
     .value = &TrainRecord::loss,
     .tag = "train/loss",
     .picture = {"Loss", "cross-entropy"}},
    {.name = "l2",
     .value = &TrainRecord::l2,
     .tag = "train/l2",
     .picture = {"L2 penalty", "penalty", /*unless_zero=*/true}},
    {.name = "learning_rate",
     .value = &TrainRecord::learning_rate,
     .tag = "train/learning_rate",
     .picture = {"Learning rate", "learning rate"}},
    {.name = "gradient_norm",
     .value = &TrainRecord::gradient_norm,
     .tag = "train/gradient_norm",
     .picture = {"Gradient norm", "gradient norm"}},
    {.name = "samples_per_s",
     .value = &TrainRecord::samples_per_s,
     .tag = "train/samples_per_s",
     .picture = {"Speed", "samples / s"}},
};

struct EvalRecord {
  std::string split;
  int64_t step = 0;
  int64_t rows = 0;           // number of the split's rows; not written
  MetricValues metrics = {};  // metrics of the label that the monitor follows
  // Metrics of every label, the monitored one included, if several labels are learned; else empty.
  std::vector<MetricValues> labels = {};
  bool scheduled = false;  // whether control (plateau, early stop, best weights) acts upon it
};
// The same of training rows, by the weights of that step and without dropout. A type of its own:
// readers of one take no record of the other. metrics.jsonl tells them apart by the event.
struct TrainingEvalRecord : EvalRecord {};
inline constexpr RecordField<EvalRecord> kEvalFields[] = {
    {.name = "split", .value = &EvalRecord::split},
    {.name = "step", .value = &EvalRecord::step},
    {.name = "scheduled", .value = &EvalRecord::scheduled},
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
inline constexpr RecordField<CheckpointRecord> kCheckpointFields[] = {
    {.name = "step", .value = &CheckpointRecord::step},
    {.name = "digest", .value = &CheckpointRecord::digest},
    {.name = "path", .value = &CheckpointRecord::path},
    {.name = "blocked_s", .value = &CheckpointRecord::blocked_seconds},
    {.name = "write_s", .value = &CheckpointRecord::write_seconds},
    {.name = "base", .value = &CheckpointRecord::base, .if_empty = IfEmpty::kLeftOut},
};

// A keyed table after a step that is recorded, or that removed rows. Over all ranks.
struct TableRecord {
  int64_t step = 0;
  std::string table = {};
  int64_t rows = 0;
  int64_t admitted = 0;  // rows that the step created
  int64_t evicted = 0;   // rows that the step removed
  int64_t bytes = 0;     // of the rows' keys, weights and slots
  // With admission: the share of the step's occurrences whose key has no row.
  std::optional<double> unadmitted_share = std::nullopt;
};
inline constexpr RecordField<TableRecord> kTableFields[] = {
    {.name = "step", .value = &TableRecord::step},
    {.name = "table", .value = &TableRecord::table, .column = false},
    {.name = "rows", .value = &TableRecord::rows, .column = false},
    {.name = "admitted", .value = &TableRecord::admitted, .column = false},
    {.name = "evicted", .value = &TableRecord::evicted, .column = false},
    {.name = "bytes", .value = &TableRecord::bytes, .column = false},
    {.name = "unadmitted_share",
     .value = &TableRecord::unadmitted_share,
     .if_empty = IfEmpty::kLeftOut,
     .column = false},
};

// Total cost of one phase of communication in one kind of work.
struct CommunicationRecord {
  std::string phase;
  std::string work;            // "training", "evaluation" or "other"
  int64_t calls = 0;           // alike on all ranks
  int64_t rank0_messages = 0;  // messages and bytes that rank 0 sent to other ranks
  int64_t rank0_bytes = 0;
  double rank0_seconds = 0;  // time inside the calls on rank 0, waiting included
  int64_t all_messages = 0;  // messages and bytes that all ranks sent to other ranks
  int64_t all_bytes = 0;
  int64_t messages_between_hosts = 0;  // of these, to ranks of other hosts
  int64_t bytes_between_hosts = 0;
  // Of early rows: their share of the rows that travel in steps.
  std::optional<double> rows_share = std::nullopt;
};
inline constexpr RecordField<CommunicationRecord> kCommunicationFields[] = {
    {.name = "phase", .value = &CommunicationRecord::phase},
    {.name = "work", .value = &CommunicationRecord::work},
    {.name = "calls", .value = &CommunicationRecord::calls},
    {.name = "rank0_messages_sent", .value = &CommunicationRecord::rank0_messages},
    {.name = "rank0_bytes_sent", .value = &CommunicationRecord::rank0_bytes},
    {.name = "rank0_seconds", .value = &CommunicationRecord::rank0_seconds},
    {.name = "all_messages_sent", .value = &CommunicationRecord::all_messages},
    {.name = "all_bytes_sent", .value = &CommunicationRecord::all_bytes},
    {.name = "messages_between_hosts", .value = &CommunicationRecord::messages_between_hosts},
    {.name = "bytes_between_hosts", .value = &CommunicationRecord::bytes_between_hosts},
    {.name = "rows_share",
     .value = &CommunicationRecord::rows_share,
     .if_empty = IfEmpty::kLeftOut},
};

struct Summary {
  std::string name;              // the experiment's name
  std::string mode = "train";    // or evaluate, predict, spectra, theory, ntk
  std::string model = {};        // folder of the model that such a mode used
  std::string predictions = {};  // the file that was written; empty: none; not in summary.json
  std::string split;             // split of the last evaluation; empty: not evaluated
  int64_t rows = 0;              // number of rows of that evaluation
  bool unlabelled = false;       // whether none of these rows has a label; not in summary.json
  // Metrics of that evaluation, without slices. If several labels are learned: of the label that
  // the monitor follows, and of each.
  MetricValues metrics = {};
  std::optional<double> best_auc = {};   // best AUC that any model can reach, if the data know it
  std::optional<double> best_gauc = {};  // best gAUC, likewise
  struct Label {
    MetricValues metrics = {};
    std::optional<double> best_auc = {};
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
  int64_t ranks = 0;
  int64_t virtual_shards = 0;
  int64_t dense_parameters = 0;
  int64_t embedding_parameters = 0;
  std::string state_digest = {};
  std::string continued_digest = {};  // of the other run's state that the run goes on from
  std::string build = {};     // BuildName of the trainer; empty: an earlier one did not tell it
  std::string numerics = {};  // numerics fingerprint
  // Instruction set of rank 0's kernels, "v3" or "v4"; numbers do not depend on it.
  std::string isa = {};
  std::string numeric_hash = {};  // NumericHash of the experiment
  double wall_s = 0;
  int64_t peak_memory_bytes = 0;              // peak memory of rank 0's process
  std::vector<SpectrumRecord> spectrum = {};  // the last measurement, one record per probe
  std::vector<CommunicationRecord> communication = {};
};
// Best values that any model can reach, by the metric's name, if the data know them. They stand
// behind their metrics, as "best_auc".
using BestValues = std::vector<std::pair<std::string, std::optional<double>>>;
inline BestValues BestOf(const Summary& summary) {
  return {{"auc", summary.best_auc}, {"gauc", summary.best_gauc}};
}
inline BestValues BestOf(const Summary::Label& label) { return {{"auc", label.best_auc}}; }

// The metrics stand between these.
inline constexpr RecordField<Summary> kSummaryHeadFields[] = {
    {.name = "name", .value = &Summary::name},
    {.name = "mode", .value = &Summary::mode},
    {.name = "model", .value = &Summary::model, .if_empty = IfEmpty::kNull},
    {.name = "split", .value = &Summary::split},
    {.name = "rows", .value = &Summary::rows},
};
inline constexpr RecordField<Summary> kSummaryFields[] = {
    {.name = "steps", .value = &Summary::steps},
    {.name = "epochs", .value = &Summary::epochs},
    {.name = "monitor", .value = &Summary::monitor},
    {.name = "best_step", .value = &Summary::best_step},
    {.name = "best_metric", .value = &Summary::best_metric},
    {.name = "early_stopped", .value = &Summary::early_stopped},
    {.name = "samples_per_s", .value = &Summary::samples_per_s},
    {.name = "ranks", .value = &Summary::ranks},
    {.name = "virtual_shards", .value = &Summary::virtual_shards},
    {.name = "dense_parameters", .value = &Summary::dense_parameters},
    {.name = "embedding_parameters", .value = &Summary::embedding_parameters},
    {.name = "state_digest", .value = &Summary::state_digest},
    {.name = "continued_digest",
     .value = &Summary::continued_digest,
     .if_empty = IfEmpty::kLeftOut},
    {.name = "build", .value = &Summary::build},
    {.name = "numerics", .value = &Summary::numerics},
    {.name = "isa", .value = &Summary::isa},
    {.name = "numeric_hash", .value = &Summary::numeric_hash},
    {.name = "wall_s", .value = &Summary::wall_s},
    {.name = "peak_memory_bytes", .value = &Summary::peak_memory_bytes},
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_RUN_RECORDS_H_
