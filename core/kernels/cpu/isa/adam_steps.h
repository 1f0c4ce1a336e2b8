#ifndef ELASTOR_CORE_KERNELS_CPU_ISA_ADAM_STEPS_H_
#define ELASTOR_CORE_KERNELS_CPU_ISA_ADAM_STEPS_H_

#include <cstdint>
#include <type_traits>

#include "core/kernels/cpu/vec.h"
#include "core/kernels/row_sums.h"

// RowSumKernels::take_steps, which row_sums.cc includes. A vector of a row takes steps until every
// weight has stopped: its step is below a quarter of its last place, so that w - step = w, and so
// are all later ones, because they fall. Behind that m and v decay, four vectors side by side,
// because one would wait for its chain of products.
namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

template <typename T>
struct FloatBits;
template <>
struct FloatBits<float> {
  using Word = int32_t;
  static constexpr Word kSign = INT32_MIN;
  static constexpr Word kExponent = 0x7f800000;
  static constexpr float kInfinity = __builtin_inff();
  // Times the power of two of a number: a quarter of its last place.
  static constexpr float kQuarterOfLastPlace = 0x1p-25f;
};
template <>
struct FloatBits<double> {
  using Word = int64_t;
  static constexpr Word kSign = INT64_MIN;
  static constexpr Word kExponent = 0x7ff0000000000000;
  static constexpr double kInfinity = __builtin_inf();
  static constexpr double kQuarterOfLastPlace = 0x1p-54;
};

// 16 bytes where there are roots of them.
template <typename T>
struct SmallVec {
  using Type = Vec<T>;
};
template <>
struct SmallVec<float> {
  typedef float Type __attribute__((vector_size(16)));
};

// The elements of a vector of any width.
template <typename V>
using ElementOf = std::remove_reference_t<decltype(V{}[0])>;
template <typename V>
inline constexpr int64_t kElements = sizeof(V) / sizeof(ElementOf<V>);

// The bits of x that are set in mask.
template <typename V>
ELASTOR_INLINE V Masked(V x, typename FloatBits<ElementOf<V>>::Word mask) {
  typedef typename FloatBits<ElementOf<V>>::Word Words __attribute__((vector_size(sizeof(V))));
  return reinterpret_cast<V>(reinterpret_cast<Words>(x) & mask);
}
template <typename V>
ELASTOR_INLINE V Magnitude(V x) {
  return Masked(x, ~FloatBits<ElementOf<V>>::kSign);
}

// The end of a row may not fill its vector. Its other lanes stop at once.
template <typename V, typename T>
ELASTOR_INLINE V LoadLanes(const T* from, int64_t lanes, T others) {
  V v;
  if (lanes == kElements<V>) {
    __builtin_memcpy(&v, from, sizeof(V));
  } else {
    for (int64_t i = 0; i < kElements<V>; ++i) v[i] = i < lanes ? from[i] : others;
  }
  return v;
}
template <typename V, typename T>
ELASTOR_INLINE void SaveLanes(T* to, int64_t lanes, V v) {
  if (lanes == kElements<V>) {
    __builtin_memcpy(to, &v, sizeof(V));
  } else {
    for (int64_t i = 0; i < lanes; ++i) to[i] = v[i];
  }
}

// Takes up to `owed` steps. Returns how many are left, which change no weight.
template <typename V, typename T>
ELASTOR_INLINE int64_t StepUntilStopped(const AdamSteps<T>& steps, int64_t owed, V& w, V& m, V& v) {
  const V zero = {};
  const V infinity = zero + FloatBits<T>::kInfinity;
  const V beta1 = zero + steps.beta1, beta2 = zero + steps.beta2, epsilon = zero + steps.epsilon;
  while (owed > 0) {
    const auto& step = steps.end[-owed];
    --owed;
    m = CanonicalProducts(beta1, m);
    v = CanonicalProducts(beta2, v);
    // g = ±0 changes no m but ±0. Not to wait for the weight then is what makes steps fast.
    const V g = zero * w;
    if (AllBelow(zero, Magnitude(m)) && AllBelow(Magnitude(w), infinity)) [[likely]] {
      v += zero;
    } else {
      m += g;
      v += g * g;
    }
    const V change =
        CanonicalProducts(zero + step.step_size, m) / (Sqrt(v) * step.inverse_root_bias + epsilon);
    const V bound = Masked(w, FloatBits<T>::kExponent) * FloatBits<T>::kQuarterOfLastPlace;
    w -= change;
    // A weight that is not finite has made its change NaN.
    if (owed <= steps.falling && AllBelow(Magnitude(change), bound)) break;
  }
  return owed;
}

// A vector whose weights have stopped.
template <typename V>
struct Stopped {
  V g, m, v;
  ElementOf<V>* to;  // m; v lies `width` elements behind it
  int64_t lanes;
  int64_t owed;
};

template <int kVectors, typename V, typename T>
void Decay(const AdamSteps<T>& steps, int64_t count, Stopped<V>* const* vectors) {
  const V zero = {};
  const V beta1 = zero + steps.beta1, beta2 = zero + steps.beta2;
  V m[kVectors], v[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    m[i] = vectors[i]->m;
    v[i] = vectors[i]->v;
  }
  for (int64_t step = 0; step < count; ++step) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      m[i] = CanonicalProducts(beta1, m[i]);
      v[i] = CanonicalProducts(beta2, v[i]);
    }
  }
  for (int i = 0; i < kVectors; ++i) {
    vectors[i]->m = m[i];
    vectors[i]->v = v[i];
  }
}

template <typename V>
class StoppedVectors {
 public:
  using T = ElementOf<V>;
  ELASTOR_INLINE StoppedVectors(const AdamSteps<T>& steps, int64_t width)
      : steps_(steps), width_(width) {}

  // One vector of a row, whose weights begin at w.
  ELASTOR_INLINE void Take(int64_t owed, T* at, int64_t lanes) {
    V w = LoadLanes<V>(at, lanes, T(0x1p64));
    V m = LoadLanes<V>(at + width_, lanes, T{1});
    V v = LoadLanes<V>(at + 2 * width_, lanes, T{1});
    const int64_t left = StepUntilStopped(steps_, owed, w, m, v);
    SaveLanes(at, lanes, w);
    if (left > 0) return Add({V{} * w, m, v, at + width_, lanes, left});
    SaveLanes(at + width_, lanes, m);
    SaveLanes(at + 2 * width_, lanes, v);
  }

  ELASTOR_INLINE void Finish() {
    int64_t done = 0;
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t steps = vectors_[i]->owed - done;
      done = vectors_[i]->owed;
      switch (count_ - i) {
        case 4:
          Decay<4>(steps_, steps, vectors_ + i);
          break;
        case 3:
          Decay<3>(steps_, steps, vectors_ + i);
          break;
        case 2:
          Decay<2>(steps_, steps, vectors_ + i);
          break;
        default:
          Decay<1>(steps_, steps, vectors_ + i);
      }
      // Here as at every step: m is -0 only where all of g were.
      SaveLanes(vectors_[i]->to, vectors_[i]->lanes, V(vectors_[i]->m + vectors_[i]->g));
      SaveLanes(vectors_[i]->to + width_, vectors_[i]->lanes, vectors_[i]->v);
    }
    count_ = 0;
  }

 private:
  static constexpr int64_t kAtOnce = 4;

  ELASTOR_INLINE void Add(const Stopped<V>& vector) {
    memory_[count_] = vector;
    // By the steps that are left, ascending.
    int64_t at = count_++;
    for (; at > 0 && vectors_[at - 1]->owed > vector.owed; --at) vectors_[at] = vectors_[at - 1];
    vectors_[at] = &memory_[count_ - 1];
    if (count_ == kAtOnce) Finish();
  }

  const AdamSteps<T>& steps_;
  const int64_t width_;
  int64_t count_ = 0;
  Stopped<V> memory_[kAtOnce];
  Stopped<V>* vectors_[kAtOnce];
};

template <typename T>
void TakeSteps(const AdamSteps<T>& steps, T* const* rows, const int64_t* owed, int64_t count,
               int64_t width) {
  using Small = typename SmallVec<T>::Type;  // roots and quotients of few lanes take less time
  StoppedVectors<Vec<T>> wide(steps, width);
  StoppedVectors<Small> small(steps, width);
  for (int64_t i = 0; i < count; ++i) {
    int64_t column = 0;
    for (; width - column > kElements<Small>; column += kLanes<T>) {
      wide.Take(owed[i], rows[i] + column, width - column < kLanes<T> ? width - column : kLanes<T>);
    }
    if (column < width) small.Take(owed[i], rows[i] + column, width - column);
  }
  wide.Finish();
  small.Finish();
}

}  // namespace
}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_ISA_ADAM_STEPS_H_
