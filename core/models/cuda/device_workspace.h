#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_WORKSPACE_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_WORKSPACE_H_

#include <cstdint>
#include <vector>

#include "core/cuda/runtime.h"

namespace elastor::cuda {

// Bytes of a slot: so many for every row, for every leaf, and whatever their numbers.
struct SlotBytes {
  int64_t row = 0;
  int64_t leaf = 0;
  int64_t once = 0;
};

// The device memory of a model, declared once while it is built; one allocation. A kept slot is its
// declarer's alone. Temporary slots lie on a stack: one that is declared after a Frame has ended
// takes the place of those declared within it, so modules that do not run at once share memory.
class DeviceWorkspace {
 public:
  explicit DeviceWorkspace(Stream* stream) : stream_(stream), memory_(stream) {}

  int Keep(const SlotBytes& bytes);
  int Temporary(const SlotBytes& bytes);
  // One slot for what a single op needs, as large as the largest declared.
  void Scratch(const SlotBytes& bytes);

  // Ends, with its life, the room of the temporary slots declared during it.
  class Frame {
   public:
    explicit Frame(DeviceWorkspace* workspace) : workspace_(workspace), top_(workspace->top_) {}
    ~Frame() { workspace_->top_ = top_; }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    DeviceWorkspace* workspace_;
    int top_;
  };

  // Makes room for passes of up to `rows` rows and `leaves` leaves. Slots may move; waits for the
  // stream where they do.
  void Reserve(int64_t rows, int64_t leaves);

  // 256-byte aligned. Valid until the next Reserve.
  template <typename T>
  T* Slot(int slot) const {
    return reinterpret_cast<T*>(memory_.data() + slots_[slot].offset);
  }
  float* scratch() const { return Slot<float>(scratch_); }

 private:
  static constexpr int kKept = -2;
  static constexpr int kBottom = -1;
  struct Place {
    SlotBytes bytes;
    int below = kKept;  // the slot under a temporary one, or kBottom
    int64_t offset = 0;
  };
  int64_t End(const Place& place) const;

  Stream* stream_;
  Buffer<char> memory_;
  std::vector<Place> slots_;
  int top_ = kBottom;
  int scratch_ = -1;
  int64_t rows_ = 0;
  int64_t leaves_ = 0;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_WORKSPACE_H_
