#ifndef ELASTOR_TRAINER_RECORDS_RUN_FILES_H_
#define ELASTOR_TRAINER_RECORDS_RUN_FILES_H_

namespace elastor {

// Names in a run's folder, the trainer's --output_dir (docs/use/outputs.md, "Files").
inline constexpr char kExperimentFile[] = "experiment.textproto";
inline constexpr char kPlanFile[] = "plan.txt";
inline constexpr char kMachineFile[] = "machine.textproto";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
inline constexpr char kMetricsTableFile[] = "metrics.csv";
inline constexpr char kSummaryFile[] = "summary.json";
inline constexpr char kUnfinishedFile[] = "unfinished.txt";
inline constexpr char kPredictionsFile[] = "predictions.csv";
inline constexpr char kSpectraSamplesFile[] = "spectra_samples.csv";
inline constexpr char kProjectionsFile[] = "projections.csv";
inline constexpr char kTheoryFile[] = "theory.csv";
inline constexpr char kModelFolder[] = "model";
inline constexpr char kCheckpointsFolder[] = "checkpoints";

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_RUN_FILES_H_
