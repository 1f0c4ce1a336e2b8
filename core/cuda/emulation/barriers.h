#ifndef ELASTOR_CORE_CUDA_EMULATION_BARRIERS_H_
#define ELASTOR_CORE_CUDA_EMULATION_BARRIERS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace elastor::cuda::emulation {

// The kinds of points where the threads of a warp wait for each other. All lanes of the mask must
// reach the same one.
enum class WarpBarrier { kSync, kShuffle, kBallot };
// Changes the values of a warp's lanes once all of them have come. Lanes that give different ones
// do not meet.
using Exchange = void (*)(uint64_t* values);

// Called in a kernel. Waits for all lanes of `mask`; then element `lane` of the result is the value
// that this lane passed, or what `exchange` made of it. The result is valid until the thread's next
// barrier. Ends the process if a lane can never arrive.
const uint64_t* WaitForWarp(WarpBarrier barrier, unsigned mask, uint64_t value,
                            Exchange exchange = nullptr);
// Waits for all threads of the block.
void WaitForBlock();
// The lane of the running thread in its warp.
inline int current_lane;
// Ends the process with a message that names the running thread.
[[noreturn]] void DieOfKernel(const char* what);

template <typename T>
uint64_t ToWord(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}
template <typename T>
T FromWord(uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof(T));
  return value;
}

template <typename T>
T Shuffle(unsigned mask, T value, int source_lane) {
  const uint64_t* words = WaitForWarp(WarpBarrier::kShuffle, mask, ToWord(value));
  if ((mask >> source_lane & 1) == 0) DieOfKernel("a shuffle reads a lane outside its mask");
  return FromWord<T>(words[source_lane]);
}

// What lanes 16, 8, 4, 2 and 1 apart combine in turn, by one wait in place of five.
template <typename T, typename Combine>
T OverLanes(T value, Combine) {
  const Exchange exchange = [](uint64_t* words) {
    constexpr int kLanes = 32;
    T values[kLanes], others[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) values[lane] = FromWord<T>(words[lane]);
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      for (int lane = 0; lane < kLanes; ++lane) others[lane] = values[lane ^ distance];
      for (int lane = 0; lane < kLanes; ++lane) {
        values[lane] = Combine{}(values[lane], others[lane]);
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) words[lane] = ToWord(values[lane]);
  };
  return FromWord<T>(
      WaitForWarp(WarpBarrier::kShuffle, 0xffffffffu, ToWord(value), exchange)[current_lane]);
}

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_BARRIERS_H_
