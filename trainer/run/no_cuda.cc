// For builds without CUDA.
#include "trainer/run/backend.h"

namespace elastor {
namespace {

Status NoCuda() {
  return UserError("--device=cuda: this build is without CUDA; build with --config=cuda");
}

}  // namespace

StatusOr<std::string> OpenCudaDevice(Communicator&) { return NoCuda(); }
int64_t CudaDeviceBytes() { return 0; }
StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const BackendOptions&) { return NoCuda(); }

}  // namespace elastor
