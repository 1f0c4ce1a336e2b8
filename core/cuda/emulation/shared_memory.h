#ifndef ELASTOR_CORE_CUDA_EMULATION_SHARED_MEMORY_H_
#define ELASTOR_CORE_CUDA_EMULATION_SHARED_MEMORY_H_

#include <cstddef>
#include <vector>

namespace elastor::cuda::emulation {

// The shared memory of the running block: 0xff bytes when it starts (a float: NaN).
class SharedMemory {
 public:
  // Of a launch. `dynamic_bytes` <= 227 KiB.
  void Reserve(size_t dynamic_bytes);
  void StartBlock();
  // Static memory, where a thread comes to its declaration: poisoned by the first of the block.
  void Declare(void* variable, size_t bytes);
  // 16-byte aligned; an access behind its end faults.
  void* dynamic() const { return dynamic_; }

 private:
  char* arena_ = nullptr;
  char* dynamic_ = nullptr;
  size_t dynamic_bytes_ = 0;
  std::vector<void*> declared_;  // in this block
};

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_SHARED_MEMORY_H_
