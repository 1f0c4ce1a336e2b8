#ifndef ELASTOR_TESTS_BENCH_FMA_PEAK_H_
#define ELASTOR_TESTS_BENCH_FMA_PEAK_H_

#include <ctime>

#include "core/kernels/cpu/isa.h"
#include "core/kernels/cpu/vec.h"

namespace elastor {

// CPU time of the calling thread, in seconds: what other processes take does not count.
inline double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

namespace fma_peak {

inline constexpr int kChains = 12;
inline constexpr int kRounds = 100'000;

// Independent chains of FMAs. Their values are unknown to the compiler, so that it cannot merge
// chains or leave them out.
#ifdef __aarch64__
#define ELASTOR_REGISTER "w"
#else
#define ELASTOR_REGISTER "v"
#endif
#define ELASTOR_FMA_ROUNDS(vector, fma)                          \
  vector chains[kChains];                                        \
  vector factor = vector{} + 0.5f;                               \
  asm volatile("" : "+" ELASTOR_REGISTER(factor));               \
  for (int i = 0; i < kChains; ++i) {                            \
    chains[i] = factor * static_cast<float>(i);                  \
    asm volatile("" : "+" ELASTOR_REGISTER(chains[i]));          \
  }                                                              \
  for (int round = 0; round < kRounds; ++round) {                \
    _Pragma("GCC unroll 12") for (int i = 0; i < kChains; ++i) { \
      chains[i] = fma(chains[i], factor, factor);                \
    }                                                            \
  }                                                              \
  for (int i = 0; i < kChains; ++i) asm volatile("" : : ELASTOR_REGISTER(chains[i]));
inline void Rounds() { ELASTOR_FMA_ROUNDS(FloatVec, Fma) }
#ifdef __aarch64__
inline void WideRounds() { Rounds(); }
#else
[[gnu::target("avx512f")]] inline void WideRounds() { ELASTOR_FMA_ROUNDS(__m512, _mm512_fmadd_ps) }
#endif
#undef ELASTOR_FMA_ROUNDS
#undef ELASTOR_REGISTER

}  // namespace fma_peak

// The rate in GFLOP/s at which this core runs independent FMAs of the vectors that ActiveIsa() has
// right now, over about half a millisecond. A kernel's share of the peak is its rate divided by
// probes taken just before and after it: clock rates and neighbours change from one second to the
// next.
inline double FmaPeakGflops() {
  using namespace fma_peak;
  const bool wide = ActiveIsa() == Isa::kV4;
  const double begin = ThreadSeconds();
  wide ? WideRounds() : Rounds();
  const double seconds = ThreadSeconds() - begin;
  return 2.0 * (wide ? 16 : kLanes<float>)*kChains * kRounds / seconds * 1e-9;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_BENCH_FMA_PEAK_H_
