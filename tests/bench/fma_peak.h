#ifndef ELASTOR_TESTS_BENCH_FMA_PEAK_H_
#define ELASTOR_TESTS_BENCH_FMA_PEAK_H_

#include <ctime>

#include "core/kernels/cpu/vec.h"

namespace elastor {

// CPU time of the calling thread, in seconds: what other processes take does not count.
inline double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The rate in GFLOP/s at which this core runs independent 8-lane FMAs right now, over about half a
// millisecond. A kernel's share of the peak is its rate divided by probes taken just before and
// after it: clock rates and neighbours change from one second to the next.
inline double FmaPeakGflops() {
  constexpr int kChains = 12;
  constexpr int kRounds = 100'000;
  FloatVec factor = Broadcast(0.5f);
  FloatVec chains[kChains];
  // Values that the compiler does not know, so that it cannot merge chains or leave them out.
  asm volatile("" : "+x"(factor));
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) chains[i] = factor * Broadcast(static_cast<float>(i));
  const double begin = ThreadSeconds();
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chains[i] = Fma(chains[i], factor, factor);
  }
  FloatVec sum = {};
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sum += chains[i];
  asm volatile("" : : "x"(sum));
  const double seconds = ThreadSeconds() - begin;
  return 2.0 * kLanes<float> * kChains * kRounds / seconds * 1e-9;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_BENCH_FMA_PEAK_H_
