#include "core/process/standard_streams.h"
#include "trainer/modes/mode.h"
#include "trainer/modes/mode_rows.h"

namespace elastor {

std::span<const Mode* const> Modes() {
  static constexpr const Mode* kModes[] = {
      &kTrain,  &kEvaluate, &kPredict,   &kSpectra, &kTheory, &kProjection, &kNtk,
      &kVerify, &kDescribe, &kCalibrate, &kCompact, &kExport, &kPlot,
  };
  return kModes;
}

Status PrintOnce(const std::string& text, Communicator& communicator) {
  return AgreeOnStatus(communicator, communicator.rank() == 0 ? WriteToStdout(text) : OkStatus());
}

}  // namespace elastor
