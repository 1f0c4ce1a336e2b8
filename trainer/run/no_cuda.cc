// For builds without CUDA.
#include "trainer/run/step_parts.h"

namespace elastor {
namespace {

Status NoCuda() {
  return UserError("--device=cuda: this build is without CUDA; build with --config=cuda");
}

}  // namespace

StatusOr<std::string> OpenCudaDevice(Communicator&) { return NoCuda(); }
StatusOr<std::unique_ptr<StepParts>> MakeCudaParts(const StepRequest&) { return NoCuda(); }

}  // namespace elastor
