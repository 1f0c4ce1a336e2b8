#ifndef ELASTOR_CORE_CUDA_EMULATION_SHARED_MEMORY_H_
#define ELASTOR_CORE_CUDA_EMULATION_SHARED_MEMORY_H_

#include <cstddef>
#include <vector>

namespace elastor::cuda::emulation {

// The shared memory of the running block: 0xff bytes when it starts (a float: NaN).
class SharedMemory {
 public:
  // Reserves the dynamic shared memory of a launch. REQUIRES: dynamic_bytes <= 227 KiB.
  void Reserve(size_t dynamic_bytes);
  void StartBlock();
  // Called when a thread reaches the declaration of a static shared variable; the block's first
  // thread poisons it.
  void Declare(void* variable, size_t bytes);
  // Returns the dynamic shared memory, 16-byte aligned; an access behind its end faults.
  void* dynamic() const { return dynamic_; }

 private:
  char* arena_ = nullptr;
  char* dynamic_ = nullptr;
  size_t dynamic_bytes_ = 0;
  std::vector<void*> declared_;  // in this block
};

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_SHARED_MEMORY_H_
