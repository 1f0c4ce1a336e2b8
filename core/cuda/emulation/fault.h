#ifndef ELASTOR_CORE_CUDA_EMULATION_FAULT_H_
#define ELASTOR_CORE_CUDA_EMULATION_FAULT_H_

namespace elastor::cuda::emulation {

// From now on a memory fault, or a trap of a kernel's checks, says on stderr what was touched and
// by which thread of which kernel, before it ends the process as ever.
void InstallFaultHandler();

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_FAULT_H_
