#include "core/base/text.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/modes/mode_rows.h"

namespace elastor {
namespace {

Status RunVerify(const ModeCall& call, Communicator& communicator) {
  const std::string& folder = call.options.model_dir;
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata,
                           VerifyCheckpoint(folder, communicator));
  const char* contents = metadata.contents == Contents::kState ? "training state" : "model weights";
  return PrintOnce(StrCat(WithoutControls(folder), ": whole\n  contents: ", contents, "\n  step: ",
                          metadata.control.step(), "\n  state digest: ", metadata.state_digest,
                          metadata.build.empty() ? "" : "\n  build: ", metadata.build,
                          "\n  numerics: ", metadata.numerics, "\n"),
                   communicator);
}

}  // namespace

const Mode kVerify = {.name = "verify",
                      .help = "compares every byte of a model or checkpoint with its manifest",
                      .source = Mode::Source::kModel,
                      .writes = false,
                      .run = RunVerify};

}  // namespace elastor
