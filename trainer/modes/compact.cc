#include "trainer/checkpoint/compact.h"

#include "core/base/text.h"
#include "trainer/modes/mode_rows.h"

namespace elastor {
namespace {

Status RunCompact(const ModeCall& call, Communicator& communicator) {
  const RunOptions& options = call.options;
  ELASTOR_ASSIGN_OR_RETURN(
      const CheckpointMetadata metadata,
      CompactCheckpoint(options.model_dir, options.output_dir,
                        options.experiment.parallel().threads(), communicator));
  return PrintOnce(StrCat(options.output_dir,
                          ": written, needs no other folder\n  step: ", metadata.control.step(),
                          "\n  state digest: ", metadata.state_digest, "\n"),
                   communicator);
}

constexpr const char* kCompactParallel[] = {"threads", "start_seconds", "deadline_seconds",
                                            "watchdog_seconds"};

}  // namespace

const Mode kCompact = {
    .name = "compact",
    .help = "writes a checkpoint and the base that it needs as one full checkpoint",
    .source = Mode::Source::kModel,
    .parallel = kCompactParallel,
    .run = RunCompact};

}  // namespace elastor
