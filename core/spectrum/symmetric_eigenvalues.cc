#include "core/spectrum/symmetric_eigenvalues.h"

#include "core/spectrum/lanes.h"
#include "glog/logging.h"

namespace elastor {
namespace {

static_assert(SymmetricEigenvalues::kMatrices == Lanes::kCount);

// Elements are scaled to a largest one in [1, 2).
constexpr double kNegligibleColumn = 0x1p-200;  // squared length of what a reflection removes
constexpr double kNegligibleSquare = 0x1p-106;  // of an off-diagonal element: (eps / 2)^2
constexpr double kNegligibleCosine = 0x1p-400;  // squared; below, its quotient could overflow
constexpr int kMaxSweeps = 100;                 // for one value; two or three are usual

Lanes LoadAt(const std::vector<double>& lanes, int64_t i) {
  return LoadLanes(&lanes[i * Lanes::kCount]);
}
void SaveAt(std::vector<double>& lanes, int64_t i, Lanes value) {
  SaveLanes(&lanes[i * Lanes::kCount], value);
}

}  // namespace

SymmetricEigenvalues::SymmetricEigenvalues(int64_t n)
    : n_(n),
      lower_(n * (n + 1) / 2 * kMatrices),
      diagonal_(n * kMatrices),
      squares_(n * kMatrices),
      v_(n * kMatrices),
      q_(n * kMatrices),
      unscale_(kMatrices) {
  CHECK_GE(n, 1);
}

void SymmetricEigenvalues::Compute() {
  Scale();
  Tridiagonalize();
  IterateToDiagonal();
  SortAndUnscale();
}

// By the power of two that brings the largest element into [1, 2): nothing is rounded, and squares
// of squares neither overflow nor vanish.
void SymmetricEigenvalues::Scale() {
  Lanes largest = Splat(0);
  for (size_t i = 0; i < lower_.size(); i += kMatrices) {
    largest = Max(largest, Abs(LoadLanes(&lower_[i])));
  }
  const Lanes unit = Select(largest > Splat(0), PowerOfTwoOf(largest), Splat(1));
  const Lanes scale = Splat(1) / unit;
  for (size_t i = 0; i < lower_.size(); i += kMatrices) {
    SaveLanes(&lower_[i], LoadLanes(&lower_[i]) * scale);
  }
  SaveLanes(unscale_.data(), unit);
}

// Column k below the diagonal, x, becomes (+-|x|, 0, ...) by A <- H A H, H = I - v v^T / h with
// v = x + sign(x_0) |x| e_0 and h = v^T v / 2; as A - v q^T - q v^T with p = A v / h,
// q = p - (v^T p / 2h) v. Only the square of what remains is kept.
void SymmetricEigenvalues::Tridiagonalize() {
  for (int64_t k = 0; k + 1 < n_; ++k) {
    const Lanes x0 = LoadLanes(Element(k + 1, k));
    Lanes rest = Splat(0);
    for (int64_t i = k + 2; i < n_; ++i) {
      const Lanes x = LoadLanes(Element(i, k));
      rest = Fma(x, x, rest);
      SaveAt(v_, i, x);
    }
    const Lanes square = Fma(x0, x0, rest);
    const Lanes length = Sqrt(square);
    SaveAt(diagonal_, k, LoadLanes(Element(k, k)));
    SaveAt(squares_, k, square);
    SaveAt(v_, k + 1, x0 + WithSignOf(x0, length));
    const Lanes h = Fma(length, Abs(x0), square);
    // 0 where there is nothing to remove: A stays.
    const Lanes inverse = Select(rest > Splat(kNegligibleColumn), Splat(1) / h, Splat(0));

    Lanes vp = Splat(0);
    for (int64_t i = k + 1; i < n_; ++i) {
      Lanes sum = Splat(0);
      for (int64_t j = k + 1; j <= i; ++j) {
        sum = Fma(LoadLanes(Element(i, j)), LoadAt(v_, j), sum);
      }
      for (int64_t j = i + 1; j < n_; ++j) {
        sum = Fma(LoadLanes(Element(j, i)), LoadAt(v_, j), sum);
      }
      const Lanes p = sum * inverse;
      vp = Fma(LoadAt(v_, i), p, vp);
      SaveAt(q_, i, p);
    }
    const Lanes share = vp * inverse * Splat(0.5);
    for (int64_t i = k + 1; i < n_; ++i) {
      SaveAt(q_, i, NegativeFma(share, LoadAt(v_, i), LoadAt(q_, i)));
    }
    for (int64_t i = k + 1; i < n_; ++i) {
      const Lanes v = LoadAt(v_, i);
      const Lanes q = LoadAt(q_, i);
      for (int64_t j = k + 1; j <= i; ++j) {
        const Lanes a = NegativeFma(v, LoadAt(q_, j), LoadLanes(Element(i, j)));
        SaveLanes(Element(i, j), NegativeFma(q, LoadAt(v_, j), a));
      }
    }
  }
  SaveAt(diagonal_, n_ - 1, LoadLanes(Element(n_ - 1, n_ - 1)));
  SaveAt(squares_, n_ - 1, Splat(0));
}

// For each place in turn, sweeps from the bottom up until the element below it is negligible; the
// names are dsterf's. Shifts are explicit, so a negligible element in between does no harm.
void SymmetricEigenvalues::IterateToDiagonal() {
  const Lanes zero = Splat(0);
  const Lanes one = Splat(1);
  for (int64_t place = 0; place + 1 < n_; ++place) {
    for (int sweep = 0;; ++sweep) {
      const LaneMask active = LoadAt(squares_, place) > Splat(kNegligibleSquare);
      if (!Any(active)) break;
      CHECK_LT(sweep, kMaxSweeps);
      const Lanes below = Sqrt(LoadAt(squares_, place));
      const Lanes here = LoadAt(diagonal_, place);
      const Lanes half = (LoadAt(diagonal_, place + 1) - here) / (below + below);
      const Lanes root = WithSignOf(half, Sqrt(Fma(half, half, one)));
      const Lanes sigma = here - below / (half + root);

      Lanes c = one;
      Lanes s = zero;
      Lanes gamma = LoadAt(diagonal_, n_ - 1) - sigma;
      Lanes p = gamma * gamma;
      for (int64_t i = n_ - 2; i >= place; --i) {
        const Lanes square = LoadAt(squares_, i);
        const Lanes r = p + square;
        SaveAt(squares_, i + 1, Select(active, s * r, LoadAt(squares_, i + 1)));
        const Lanes old_c = c;
        const Lanes old_gamma = gamma;
        const Lanes alpha = LoadAt(diagonal_, i);
        const LaneMask nonzero = r > zero;
        c = Select(nonzero, p / r, one);
        s = Select(nonzero, square / r, zero);
        gamma = c * (alpha - sigma) - s * old_gamma;
        SaveAt(diagonal_, i + 1,
               Select(active, old_gamma + (alpha - gamma), LoadAt(diagonal_, i + 1)));
        p = Select(c > Splat(kNegligibleCosine), gamma * gamma / c, old_c * square);
      }
      SaveAt(squares_, place, Select(active, s * p, LoadAt(squares_, place)));
      SaveAt(diagonal_, place, Select(active, sigma + gamma, here));
    }
  }
}

void SymmetricEigenvalues::SortAndUnscale() {
  for (int64_t i = 1; i < n_; ++i) {
    Lanes value = LoadAt(diagonal_, i);
    for (int64_t j = 0; j < i; ++j) {
      const Lanes other = LoadAt(diagonal_, j);
      SaveAt(diagonal_, j, Max(value, other));
      value = Min(value, other);
    }
    SaveAt(diagonal_, i, value);
  }
  const Lanes unit = LoadLanes(unscale_.data());
  for (int64_t i = 0; i < n_; ++i) SaveAt(diagonal_, i, LoadAt(diagonal_, i) * unit);
}

}  // namespace elastor
