#include "trainer/run/inference.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/file.h"
#include "core/process/standard_streams.h"
#include "glog/logging.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/evaluate/evaluation.h"
#include "trainer/evaluate/ntk.h"
#include "trainer/evaluate/predictions_file.h"
#include "trainer/evaluate/rank_projection.h"
#include "trainer/evaluate/rows_file.h"
#include "trainer/evaluate/spectra_files.h"
#include "trainer/evaluate/theory.h"
#include "trainer/experiment/model_choice.h"

namespace elastor {
namespace {

const char* ModeName(Mode mode) {
  if (mode == Mode::kPredict) return "predict";
  if (mode == Mode::kTheory) return "theory";
  if (mode == Mode::kProjection) return "projection";
  if (mode == Mode::kNtk) return "ntk";
  return mode == Mode::kSpectra ? "spectra" : "evaluate";
}

struct Measured {
  EvalRecord evaluated;                  // without a split in modes spectra, theory, projection
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

// Whether a row has one of the labels that the model learned.
bool HasLabels(const EvalRecord& record) {
  const auto any = [](const MetricValues& values) { return values.rows > 0; };
  return any(record.metrics) || std::ranges::any_of(record.labels, any);
}

// Whether the model has the matrices that modes theory and projection are about.
Status CheckMatrixMode(const RunOptions& options) {
  const ModelConfig& config = options.experiment.model();
  const TokenModelConfig* const tokens = TokenModelOf(config);
  const bool projection = options.mode == Mode::kProjection;
  if (tokens == nullptr && !(projection && config.has_matrix_thinker())) {
    return UserError("model: " + KindName(*ChosenModel(config)) + "; expected RANK_ELASTOR" +
                     (projection ? ", RANK_MIXER or MATRIX_THINKER" : " or RANK_MIXER") +
                     ", which --mode=" + ModeName(options.mode) + " is about");
  }
  if (projection) return OkStatus();
  const int64_t iterations =
      std::max(tokens->iterations(), options.experiment.evaluation().iterations());
  if (iterations == 1) return OkStatus();
  return UserError("model.iterations: " + std::to_string(iterations) +
                   "; expected 1: the theorems are about blocks with weights of their own");
}

// The whole table, on `samples` rows; the weights are the initial ones afterwards.
StatusOr<std::vector<TheoryRow>> MeasureTheoryTable(const RunOptions& options, int64_t samples,
                                                    RunContext* context) {
  const uint64_t seed = options.experiment.training().seed();
  const TheoryModel model = {.graph = &context->graph,
                             .config = &context->experiment.model(),
                             .weights = context->step().weights(),
                             .seed = seed};
  const auto measure = [&](const std::string& representation) {
    return MeasureTheory(representation, model, options.split, samples, &context->evaluation(),
                         context->communicator);
  };
  std::vector<TheoryRow> rows = CountParameters(model);
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<TheoryRow> random,
                           MeasureRandomTheory(model, options.split, samples,
                                               &context->evaluation(), context->communicator));
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<TheoryRow> trained, measure("trained"));
  context->State().embedding->ForgetRows();
  context->graph.parameters().Initialize(seed, context->step().weights());
  context->step().WeightsChanged();
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<TheoryRow> initial, measure("initial"));
  for (const auto* part : {&random, &initial, &trained}) {
    rows.insert(rows.end(), part->begin(), part->end());
  }
  return rows;
}

// theory.csv, and the same on stdout.
Status WriteTheory(const std::vector<TheoryRow>& rows, const RunOptions& options,
                   const RunContext& context) {
  if (context.communicator->rank() != 0) return OkStatus();
  ELASTOR_RETURN_IF_ERROR(context.log->CheckInPlace());
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(options.output_dir + "/theory.csv", TheoryCsv(rows)));
  return WriteToStdout(TheoryText(rows));
}

// projections.csv, and the same on stdout.
Status MeasureProjectionTable(const RunOptions& options, RunContext* context) {
  const ProjectionModel model = context->HeadModel();
  ELASTOR_ASSIGN_OR_RETURN(
      const std::vector<RankProjection> projections,
      MeasureProjections(model, options.split, &context->evaluation(), context->communicator));
  ELASTOR_RETURN_IF_ERROR(context->BeginLog());
  const auto write = [&]() -> Status {
    if (context->communicator->rank() != 0) return OkStatus();
    ELASTOR_RETURN_IF_ERROR(context->log->CheckInPlace());
    ELASTOR_RETURN_IF_ERROR(
        WriteFileAtomically(options.output_dir + "/projections.csv", ProjectionsCsv(projections)));
    return WriteToStdout(ProjectionsText(projections, MeasureScoring(model)));
  };
  return AgreeOnStatus(*context->communicator, write());
}

// The spectra, and by choice the kernels, which are written as they come.
StatusOr<NtkMeasurement> MeasureNtk(const RunOptions& options, int64_t step, RunContext* context) {
  NtkKernelVisit write;
  if (options.kernels) {
    write = [&](const std::string& layer, int64_t rows, std::span<const double> kernel) -> Status {
      ELASTOR_RETURN_IF_ERROR(context->log->CheckInPlace());
      return WriteFileAtomically(options.output_dir + "/ntk_" + layer + ".npy",
                                 NpyText(rows, kernel));
    };
  }
  ELASTOR_ASSIGN_OR_RETURN(NtkMeasurement measured,
                           context->MeasureNtk(options.split, options.ntk_rows, write));
  for (NtkRecord& record : measured.records) record.step = step;
  return measured;
}

Status WriteNtkFiles(const NtkMeasurement& measured, const RunOptions& options,
                     const RunContext& context) {
  if (context.communicator->rank() != 0) return OkStatus();
  ELASTOR_RETURN_IF_ERROR(context.log->CheckInPlace());
  ELASTOR_RETURN_IF_ERROR(
      WriteNtk(options.output_dir, options.experiment.name(), measured.records));
  return WriteToStdout(NtkText(measured));
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
    if (logged.ok()) logged = context->LogScoring(step);
    if (logged.ok() && context->communicator->rank() == 0) {
      logged = WriteSpectra(options.output_dir, options.experiment.name(), measured.spectrum);
    }
  } else if (options.mode == Mode::kTheory) {
    measured.rows =
        std::min(options.experiment.spectrum().samples(), context->dataset->rows(options.split));
    ELASTOR_ASSIGN_OR_RETURN(const std::vector<TheoryRow> theory,
                             MeasureTheoryTable(options, measured.rows, context));
    ELASTOR_RETURN_IF_ERROR(context->BeginLog());
    logged = WriteTheory(theory, options, *context);
  } else if (options.mode == Mode::kProjection) {
    measured.rows = context->dataset->rows(options.split);
    ELASTOR_RETURN_IF_ERROR(MeasureProjectionTable(options, context));
  } else if (options.mode == Mode::kNtk) {
    ELASTOR_ASSIGN_OR_RETURN(const NtkMeasurement ntk, MeasureNtk(options, step, context));
    measured.rows = ntk.rows;
    ELASTOR_RETURN_IF_ERROR(context->BeginLog());
    logged = WriteNtkFiles(ntk, options, *context);
  } else {
    ELASTOR_ASSIGN_OR_RETURN(measured.evaluated, options.mode == Mode::kPredict
                                                     ? MeasureAndPredict(options, context)
                                                     : context->Evaluate(options.split, {}));
    if (options.mode == Mode::kEvaluate && !HasLabels(measured.evaluated)) {
      return UserError(options.experiment.data().path() + ": no row of the " +
                       measured.evaluated.split +
                       " split has a label; expected --mode=predict, which needs none");
    }
    measured.evaluated.step = step;
    measured.rows = measured.evaluated.rows;
    ELASTOR_RETURN_IF_ERROR(context->BeginLog());
    logged = context->log->Append(measured.evaluated);
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*context->communicator, logged));
  return measured;
}

}  // namespace

std::string PredictionsPath(const RunOptions& options) {
  return options.output_dir + "/predictions.csv";
}

StatusOr<EvalRecord> MeasureAndPredict(const RunOptions& options, RunContext* context) {
  return WithRowsFile<EvalRecord>(
      PredictionsPath(options), PredictionsHeader(context->task), context, [&](RowsFile* file) {
        return context->Evaluate(
            options.split, [&](int64_t first_row, const std::vector<float>& labels,
                               const std::vector<float>& logits) {
              return file->Append(PredictionLines(context->task, first_row, labels, logits));
            });
      });
}

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
  if (options.mode == Mode::kTheory || options.mode == Mode::kProjection) {
    ELASTOR_RETURN_IF_ERROR(CheckMatrixMode(options));
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RunContext> context,
                           RunContext::Open(options, /*steps_done=*/0, &communicator));
  if (options.mode == Mode::kNtk) ELASTOR_RETURN_IF_ERROR(context->CheckNtk());
  CheckpointMetadata metadata;
  if (!options.model_dir.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(
        metadata, LoadCheckpoint(options.model_dir, Contents::kWeights, context->Identity(),
                                 context->State(), communicator));
    context->step().WeightsChanged();
  }

  const double loaded = SecondsSince(context->start);
  ELASTOR_ASSIGN_OR_RETURN(const Measured measured,
                           Measure(options, metadata.control.step(), context.get()));
  ELASTOR_ASSIGN_OR_RETURN(Summary summary, context->MakeSummary());
  if (!options.model_dir.empty() && metadata.numerics != summary.numerics &&
      communicator.rank() == 0) {
    LOG(WARNING) << options.model_dir << ": trained under the numerics '" << metadata.numerics
                 << "'; here they are '" << summary.numerics << "': bits may differ";
  }
  summary.mode = ModeName(options.mode);
  summary.model = options.model_dir;
  if (options.mode == Mode::kPredict) summary.predictions = PredictionsPath(options);
  if (!measured.evaluated.split.empty()) context->AddEvaluation(measured.evaluated, &summary);
  summary.split = SplitName(options.split);
  summary.rows = measured.rows;
  summary.spectrum = measured.spectrum;
  summary.steps = metadata.control.step();
  summary.epochs = metadata.control.epoch();
  summary.samples_per_s = static_cast<double>(measured.rows) / (summary.wall_s - loaded);
  summary.state_digest = metadata.state_digest;
  return AgreeOnStatus(communicator, context->log->Finish(summary));
}

}  // namespace elastor
