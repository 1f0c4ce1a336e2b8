#include "trainer/run/inference.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "glog/logging.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/evaluate/evaluation.h"
#include "trainer/evaluate/predictions_file.h"
#include "trainer/evaluate/rows_file.h"
#include "trainer/evaluate/spectra_files.h"

namespace elastor {
namespace {

std::string PredictionsPath(const RunOptions& options) {
  return options.output_dir + "/predictions.csv";
}

const char* ModeName(Mode mode) {
  if (mode == Mode::kPredict) return "predict";
  return mode == Mode::kSpectra ? "spectra" : "evaluate";
}

struct Measured {
  MetricValues metrics;                  // of no rows when spectra were asked for
  std::vector<SpectrumRecord> spectrum;  // else empty
  int64_t rows = 0;
};

// A RowsFile while rows are measured: `measure` fills it.
template <typename T>
StatusOr<T> WithRowsFile(const std::string& path, const std::string& header, RunContext* context,
                         const std::function<StatusOr<T>(RowsFile*)>& measure) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RowsFile> file,
                           RowsFile::Open(path, header, context->communicator));
  ELASTOR_ASSIGN_OR_RETURN(T measured, measure(file.get()));
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*context->communicator, context->log->CheckInPlace()));
  ELASTOR_RETURN_IF_ERROR(file->Commit());
  return measured;
}

// In mode predict, writes every row's prediction meanwhile.
StatusOr<MetricValues> MeasureMetrics(const RunOptions& options, RunContext* context) {
  if (options.mode != Mode::kPredict) return context->evaluation().Measure(options.split, {});
  return WithRowsFile<MetricValues>(
      PredictionsPath(options), kPredictionsHeader, context, [&](RowsFile* file) {
        return context->evaluation().Measure(
            options.split, [&](int64_t first_row, const std::vector<float>& labels,
                               const std::vector<float>& logits) {
              return file->Append(PredictionLines(first_row, labels, logits));
            });
      });
}

// Of every row of the split; by choice, writes the ranks of each meanwhile.
StatusOr<std::vector<SpectrumRecord>> MeasureSpectra(const RunOptions& options,
                                                     RunContext* context) {
  const int64_t rows = context->dataset->rows(options.split);
  if (!options.per_sample) return context->evaluation().MeasureSpectrum(options.split, rows, {});
  std::vector<std::string> stages;
  for (const Probe& probe : context->graph.probes()) stages.push_back(probe.name);
  const auto stage_count = static_cast<int64_t>(stages.size());
  return WithRowsFile<std::vector<SpectrumRecord>>(
      options.output_dir + "/spectra_samples.csv", SamplesHeader(stages), context,
      [&](RowsFile* file) {
        return context->evaluation().MeasureSpectrum(
            options.split, rows, [&](int64_t first_row, std::span<const EffectiveRank> ranks) {
              return file->Append(SampleLines(first_row, stage_count, ranks));
            });
      });
}

// What was asked for; its records, of a model of `step` steps, begin the log.
StatusOr<Measured> Measure(const RunOptions& options, int64_t step, RunContext* context) {
  Measured measured;
  Status logged;
  if (options.mode == Mode::kSpectra) {
    ELASTOR_ASSIGN_OR_RETURN(measured.spectrum, MeasureSpectra(options, context));
    measured.rows = measured.spectrum[0].samples;
    ELASTOR_RETURN_IF_ERROR(context->BeginLog());
    for (SpectrumRecord& record : measured.spectrum) {
      record.step = step;
      if (logged.ok()) logged = context->log->Append(record);
    }
    if (logged.ok() && context->communicator->rank() == 0) {
      logged = WriteSpectra(options.output_dir, options.experiment.name(), measured.spectrum);
    }
  } else {
    ELASTOR_ASSIGN_OR_RETURN(measured.metrics, MeasureMetrics(options, context));
    measured.rows = measured.metrics.rows;
    ELASTOR_RETURN_IF_ERROR(context->BeginLog());
    logged = context->log->Append(
        EvalRecord{.split = SplitName(options.split), .step = step, .metrics = measured.metrics});
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*context->communicator, logged));
  return measured;
}

}  // namespace

Status CheckModelFlag(const std::string& model_dir) {
  std::error_code ignored;
  const auto holds_model = [&](const std::string& path) {
    return std::filesystem::exists(path + "/manifest.json", ignored);
  };
  if (holds_model(model_dir) || !holds_model(model_dir + "/model")) return OkStatus();
  return UserError("--model=" + model_dir + ": is a run's folder; expected the model in it, " +
                   model_dir + "/model");
}

Status RunInference(const RunOptions& options, Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RunContext> context,
                           RunContext::Open(options, /*steps_done=*/0, &communicator));
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata,
                           LoadCheckpoint(options.model_dir, Contents::kWeights,
                                          context->Identity(), context->State(), communicator));
  context->step().WeightsChanged();

  const double loaded = SecondsSince(context->start);
  ELASTOR_ASSIGN_OR_RETURN(const Measured measured,
                           Measure(options, metadata.control.step(), context.get()));
  ELASTOR_ASSIGN_OR_RETURN(Summary summary, context->MakeSummary());
  if (metadata.numerics != summary.numerics && communicator.rank() == 0) {
    LOG(WARNING) << options.model_dir << ": trained under the numerics '" << metadata.numerics
                 << "'; here they are '" << summary.numerics << "': bits may differ";
  }
  summary.mode = ModeName(options.mode);
  summary.model = options.model_dir;
  if (options.mode == Mode::kPredict) summary.predictions = PredictionsPath(options);
  summary.split = SplitName(options.split);
  summary.rows = measured.rows;
  summary.spectrum = measured.spectrum;
  summary.auc = measured.metrics.auc;
  summary.gauc = measured.metrics.gauc;
  if (options.mode != Mode::kSpectra) summary.logloss = measured.metrics.logloss;
  summary.steps = metadata.control.step();
  summary.epochs = metadata.control.epoch();
  summary.samples_per_s = static_cast<double>(measured.rows) / (summary.wall_s - loaded);
  summary.state_digest = metadata.state_digest;
  return AgreeOnStatus(communicator, context->log->Finish(summary));
}

}  // namespace elastor
