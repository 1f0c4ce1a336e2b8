#include "trainer/modes/mode_rows.h"
#include "trainer/score/export_model.h"

namespace elastor {
namespace {

Status RunExport(const ModeCall& call, Communicator& communicator) {
  return AgreeOnStatus(communicator, communicator.rank() == 0 ? ExportModel(call.options.model_dir,
                                                                            call.options.output_dir)
                                                              : OkStatus());
}

constexpr const char* kExportParallel[] = {"threads"};

}  // namespace

const Mode kExport = {.name = "export",
                      .help = "writes a model's ONNX graph, tables and encoding",
                      .source = Mode::Source::kModel,
                      .parallel = kExportParallel,
                      .run = RunExport};

}  // namespace elastor
