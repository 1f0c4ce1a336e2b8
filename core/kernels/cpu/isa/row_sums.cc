// As in kernels.h, no inline function is called that the compiler might emit.
#include <utility>

#include "core/kernels/cpu/isa/adam_steps.h"
#include "core/kernels/cpu/row_sum_tables.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

// The most vectors of a row that are summed in one sweep over the rows: with AVX2 as many as there
// are registers, since additions read memory.
inline constexpr int64_t kMostVectors = 16;
inline constexpr int64_t kLineBytes = 64;

ELASTOR_INLINE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// 16 bytes, for rows narrower than a vector.
template <typename T>
struct Narrow {
  typedef T Type __attribute__((vector_size(16)));
};

template <typename V, typename T>
ELASTOR_INLINE V LoadAs(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}

// Sums kVectors vectors of a row. The first begin at `column`, one behind the other; the last one
// begins at `last`, and may reach back over columns that others have too.
template <typename V, typename T, int64_t kVectors>
void Sweep(const T* const* rows, int64_t count, const T* const* ahead, int64_t column, int64_t last,
           T* sum) {
  constexpr int64_t kStep = sizeof(V) / sizeof(T);
  // The address of vector i of a row, from that of the column and of the last vector.
  const auto at = [](auto* begin, auto* end, int64_t i)
                      [[gnu::always_inline]] { return i + 1 < kVectors ? begin + i * kStep : end; };
  V total[kVectors];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kVectors; ++i) {
    total[i] = LoadAs<V>(at(rows[0] + column, rows[0] + last, i));
  }
  for (int64_t r = 1;; ++r) {
    const char* const line = reinterpret_cast<const char*>(ahead[r - 1] + column);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kVectors * static_cast<int64_t>(sizeof(V)); i += kLineBytes) {
      __builtin_prefetch(line + i);
    }
    if (r == count) break;
    const T* begin = rows[r] + column;
    const T* end = rows[r] + last;
    // GCC would otherwise keep every vector's offset in a register, of which there are too few.
    asm("" : "+r"(begin), "+r"(end));
#pragma GCC unroll 16
    for (int64_t i = 0; i < kVectors; ++i) total[i] += LoadAs<V>(at(begin, end, i));
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < kVectors; ++i) {
    __builtin_memcpy(at(sum + column, sum + last, i), &total[i], sizeof(V));
  }
}

template <typename V, typename T, int64_t... kIndex>
ELASTOR_INLINE auto SweepOf(int64_t vectors, std::integer_sequence<int64_t, kIndex...>) {
  static constexpr decltype(&Sweep<V, T, 1>) kSweeps[] = {Sweep<V, T, kIndex + 1>...};
  return kSweeps[vectors - 1];
}

// REQUIRES: a row has at least the elements of a V.
template <typename V, typename T>
ELASTOR_INLINE void SumBy(const T* const* rows, int64_t count, const T* const* ahead, int64_t width,
                          T* sum) {
  constexpr int64_t kStep = sizeof(V) / sizeof(T);
  for (int64_t column = 0; column < width; column += kMostVectors * kStep) {
    const int64_t vectors = Least((width - column + kStep - 1) / kStep, kMostVectors);
    const int64_t last = Least(column + (vectors - 1) * kStep, width - kStep);
    SweepOf<V, T>(vectors, std::make_integer_sequence<int64_t, kMostVectors>())(rows, count, ahead,
                                                                                column, last, sum);
  }
}

template <typename T>
void Sum(const T* const* rows, int64_t count, const T* const* ahead, int64_t width, T* sum) {
  using Small = typename Narrow<T>::Type;
  if (width >= kLanes<T>) return SumBy<Vec<T>>(rows, count, ahead, width, sum);
  if (width * sizeof(T) >= sizeof(Small)) return SumBy<Small>(rows, count, ahead, width, sum);
  SumBy<T>(rows, count, ahead, width, sum);
}

ELASTOR_INLINE Double4 LoadFour(const float* p) { return LoadAsDoubles(p); }
ELASTOR_INLINE Double4 LoadFour(const double* p) { return LoadAs<Double4>(p); }

// kRows rows side by side: a row alone would wait for its chains.
template <int64_t kRows, typename T>
void SquaresOf(const T* const* rows, int64_t width, double* sums) {
  const int64_t whole = width / 4 * 4;
  Double4 lanes[kRows] = {};
  for (int64_t column = 0; column < whole; column += 4) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kRows; ++i) {
      const Double4 value = LoadFour(rows[i] + column);
      lanes[i] += value * value;
    }
  }
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t lane = 0; lane < width - whole; ++lane) {
      const double value = rows[i][whole + lane];
      lanes[i][lane] += value * value;
    }
    sums[i] = (lanes[i][0] + lanes[i][1]) + (lanes[i][2] + lanes[i][3]);
  }
}

template <typename T>
void Squares(const T* const* rows, int64_t count, int64_t width, double* sums) {
  constexpr int64_t kAtOnce = 4;
  int64_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) SquaresOf<kAtOnce>(rows + i, width, sums + i);
  for (; i < count; ++i) SquaresOf<1>(rows + i, width, sums + i);
}

}  // namespace

constinit const RowSumKernels<float> kFloatRowSums = {
    .sum = Sum<float>, .squares = Squares<float>, .take_steps = TakeSteps<float>};
constinit const RowSumKernels<double> kDoubleRowSums = {
    .sum = Sum<double>, .squares = Squares<double>, .take_steps = TakeSteps<double>};

}  // namespace ELASTOR_ISA
}  // namespace elastor
