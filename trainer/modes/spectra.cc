#include <span>
#include <vector>

#include "core/report/chart_table.h"
#include "trainer/evaluate/rows_file.h"
#include "trainer/evaluate/spectra_files.h"
#include "trainer/modes/flags.h"
#include "trainer/modes/mode_rows.h"
#include "trainer/records/run_files.h"
#include "trainer/run/inference.h"

namespace elastor {
namespace {

// Measures every row of the split; by choice, writes the ranks of each meanwhile.
StatusOr<std::vector<SpectrumRecord>> MeasureRows(const RunOptions& options, RunContext* context) {
  const int64_t rows = context->evaluation().rows(options.split);
  if (!options.per_sample) return context->evaluation().MeasureSpectrum(options.split, rows, {});
  std::vector<std::string> stages;
  for (const Probe& probe : context->model.graph.probes()) stages.push_back(probe.name);
  const auto stage_count = static_cast<int64_t>(stages.size());
  return WithRowsFile<std::vector<SpectrumRecord>>(
      options.output_dir + "/" + kSpectraSamplesFile, SamplesHeader(stages), context,
      [&](RowsFile* file) {
        return context->evaluation().MeasureSpectrum(
            options.split, rows, [&](int64_t first_row, std::span<const EffectiveRank> ranks) {
              return file->Append(SampleLines(first_row, stage_count, ranks));
            });
      });
}

StatusOr<Measured> MeasureSpectra(const RunOptions& options, int64_t step, RunContext* context) {
  Measured measured;
  ELASTOR_ASSIGN_OR_RETURN(measured.spectrum, MeasureRows(options, context));
  for (SpectrumRecord& record : measured.spectrum) record.step = step;
  measured.rows = measured.spectrum[0].samples;
  return measured;
}

Status Write(const RunOptions& options, const Measured& measured, int64_t step,
             RunContext* context) {
  for (const SpectrumRecord& record : measured.spectrum) {
    ELASTOR_RETURN_IF_ERROR(context->log->Append(record));
  }
  ELASTOR_RETURN_IF_ERROR(context->LogScoring(step));
  if (context->communicator->rank() != 0) return OkStatus();
  return WriteSpectra(options.output_dir, options.experiment.name(), measured.spectrum,
                      ExportFormatOf(FLAGS_export));
}

Status RunSpectra(const ModeCall& call, Communicator& communicator) {
  return RunInference(call.options, {.measure = MeasureSpectra, .write = Write}, communicator);
}

constexpr const char* kSpectraFlags[] = {"export", "per_sample", "split", "tensorboard"};

}  // namespace

const Mode kSpectra = {.name = "spectra",
                       .help = "effective ranks of a trained model after every stage",
                       .flags = kSpectraFlags,
                       .run = RunSpectra};

}  // namespace elastor
