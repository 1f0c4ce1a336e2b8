#ifndef ELASTOR_CORE_CUDA_EMULATION_PAGE_FAULT_H_
#define ELASTOR_CORE_CUDA_EMULATION_PAGE_FAULT_H_

namespace elastor::cuda::emulation {

// Returns whether a handler of SIGSEGV, whose third argument is `context`, was called for a write.
bool IsWrite(void* context);

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_PAGE_FAULT_H_
