#ifndef ELASTOR_CORE_CUDA_EMULATION_FAULT_H_
#define ELASTOR_CORE_CUDA_EMULATION_FAULT_H_

namespace elastor::cuda::emulation {

// Makes every later memory fault, or trap of a kernel's checks, print to stderr which memory was
// touched by which thread of which kernel, before it ends the process as usual.
void InstallFaultHandler();

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_FAULT_H_
