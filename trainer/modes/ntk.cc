#include "trainer/evaluate/ntk.h"

#include <span>
#include <string>

#include "core/base/file.h"
#include "core/report/chart_table.h"
#include "trainer/modes/flags.h"
#include "trainer/modes/mode_rows.h"
#include "trainer/run/inference.h"

namespace elastor {
namespace {

// Measures the spectra, and by choice writes the kernels as they come.
StatusOr<NtkMeasurement> MeasureKernels(const RunOptions& options, int64_t step,
                                        RunContext* context) {
  NtkKernelVisit write;
  if (FLAGS_kernels) {
    write = [&](const std::string& layer, int64_t rows, std::span<const double> kernel) -> Status {
      ELASTOR_RETURN_IF_ERROR(context->log->CheckInPlace());
      ELASTOR_RETURN_IF_ERROR(context->log->BeginFilling());
      return WriteFileAtomically(options.output_dir + "/ntk_" + layer + ".npy",
                                 NpyText(rows, kernel));
    };
  }
  ELASTOR_ASSIGN_OR_RETURN(NtkMeasurement measured,
                           context->MeasureNtk(options.split, options.ntk_rows, write));
  for (NtkRecord& record : measured.records) record.step = step;
  return measured;
}

Status RunNtk(const ModeCall& call, Communicator& communicator) {
  constexpr int64_t kRows = 1024;  // unless --rows says more or less
  RunOptions options = call.options;
  options.ntk_rows = FLAGS_rows == 0 ? kRows : FLAGS_rows;
  NtkMeasurement ntk;
  const auto check = [](const RunOptions& /*options*/, const RunContext& context) {
    return context.CheckNtk();
  };
  const auto measure = [&](const RunOptions& options, int64_t step,
                           RunContext* context) -> StatusOr<Measured> {
    ELASTOR_ASSIGN_OR_RETURN(ntk, MeasureKernels(options, step, context));
    Measured measured;
    measured.rows = ntk.rows;
    measured.text = NtkText(ntk);
    return measured;
  };
  const auto write = [&](const RunOptions& options, const Measured& /*measured*/, int64_t /*step*/,
                         RunContext* context) -> Status {
    if (context->communicator->rank() != 0) return OkStatus();
    ELASTOR_RETURN_IF_ERROR(context->log->CheckInPlace());
    return WriteNtk(options.output_dir, options.experiment.name(), ntk.records,
                    ExportFormatOf(FLAGS_export));
  };
  return RunInference(options, {.check = check, .measure = measure, .write = write}, communicator);
}

constexpr const char* kNtkFlags[] = {"export", "kernels", "rows", "split", "tensorboard"};

}  // namespace

const Mode kNtk = {
    .name = "ntk",
    .help = "spectra of a model's neural tangent kernel; without --model, at the initial weights",
    .model = Mode::Model::kOptional,
    .flags = kNtkFlags,
    .cpu_alone = true,
    .run = RunNtk};

}  // namespace elastor
