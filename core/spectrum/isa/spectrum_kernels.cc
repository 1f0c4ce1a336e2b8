#include "core/spectrum/spectrum_kernels.h"

#include "core/base/canonical_math.h"
#include "core/spectrum/isa/lanes.h"

// Calls nothing that the compiler might emit outside of the namespace of the instruction set: no
// CHECK, no container, no std::min (core/kernels/cpu/isa/kernels.h).
namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

// Every matrix; and as many as leave registers for blocks of a Gram matrix.
using All = Lanes<kSpectrumLanes / kLanes<double>>;
using Group = Lanes<kGramLanes / kLanes<double>>;

// Elements are scaled to a largest one in [1, 2).
constexpr double kNegligibleColumn = 0x1p-200;   // squared length of what a reflection removes
constexpr double kNegligibleSquare = 0x1p-106;   // of an off-diagonal element: (eps / 2)^2
constexpr double kNegligibleCosine = 0x1p-400;   // squared; below, its quotient could overflow
constexpr double kNegligibleLength = 0x1p-1000;  // squared; below, its inverse could overflow
constexpr int kMaxSweeps = 100;                  // for one eigenvalue; two are usual

// Element i of an array, of the lanes from `p` on.
template <typename L>
ELASTOR_INLINE L At(const double* p, int64_t i) {
  return L::Load(p + i * kSpectrumLanes);
}
template <typename L>
ELASTOR_INLINE void Put(double* p, int64_t i, L value) {
  value.SaveTo(p + i * kSpectrumLanes);
}
// Returns the index of element (i, j <= i) in a packed lower triangle.
ELASTOR_INLINE int64_t Lower(int64_t i, int64_t j) { return i * (i + 1) / 2 + j; }

// Blocks of kBlock x kBlock elements are computed together, which saves loads; beyond the last row
// they repeat it, and on the diagonal they compute elements twice.
void Gram(const double* m, int64_t rows, int64_t columns, double* lower) {
  constexpr int kBlock = Group::kVecs == 1 ? 3 : 2;
  for (int64_t lane = 0; lane < kSpectrumLanes;
       lane += kGramLanes, m += rows * columns * kGramLanes) {
    for (int64_t i = 0; i < rows; i += kBlock) {
      for (int64_t j = 0; j <= i; j += kBlock) {
        const double* a[kBlock];
        const double* b[kBlock];
        Group sums[kBlock][kBlock];
        for (int d = 0; d < kBlock; ++d) {
          a[d] = m + (i + d < rows ? i + d : rows - 1) * columns * kGramLanes;
          b[d] = m + (j + d < rows ? j + d : rows - 1) * columns * kGramLanes;
          for (Group& sum : sums[d]) sum = Group::Of(0);
        }
        for (int64_t k = 0; k < columns; ++k) {
          Group ak[kBlock];
          Group bk[kBlock];
          for (int d = 0; d < kBlock; ++d) ak[d] = Group::Load(a[d] + k * kGramLanes);
          for (int d = 0; d < kBlock; ++d) bk[d] = Group::Load(b[d] + k * kGramLanes);
          for (int di = 0; di < kBlock; ++di) {
            for (int dj = 0; dj < kBlock; ++dj) sums[di][dj] = Fma(ak[di], bk[dj], sums[di][dj]);
          }
        }
        for (int di = 0; di < kBlock && i + di < rows; ++di) {
          for (int dj = 0; dj < kBlock && j + dj <= i + di; ++dj) {
            Put(lower + lane, Lower(i + di, j + dj), sums[di][dj]);
          }
        }
      }
    }
  }
}

// By the power of two that brings the largest element into [1, 2): nothing is rounded, and squares
// of squares neither overflow nor vanish. Returns that power.
ELASTOR_INLINE All Scale(int64_t n, double* lower) {
  const int64_t count = Lower(n, 0);
  All largest = All::Of(0);
  for (int64_t i = 0; i < count; ++i) largest = Max(largest, Abs(At<All>(lower, i)));
  const All unit = Select(largest > All::Of(0), PowerOfTwoOf(largest), All::Of(1));
  const All scale = All::Of(1) / unit;
  for (int64_t i = 0; i < count; ++i) Put(lower, i, At<All>(lower, i) * scale);
  return unit;
}

// Column k below the diagonal, x, becomes (+-|x|, 0, ...) by A <- H A H, H = I - v v^T / h with
// v = x + sign(x_0) |x| e_0 and h = v^T v / 2; as A - v q^T - q v^T with p = A v / h,
// q = p - (v^T p / 2h) v. Only the square of what remains is kept.
//
// The tridiagonal matrix is stored upside down: its large elements gather where the reflections
// begin, and the QL iteration, which finds the eigenvalues of the first places first, needs a third
// fewer sweeps when these are the small ones.
void Tridiagonalize(int64_t n, double* lower, double* diagonal, double* squares, double* v,
                    double* q) {
  for (int64_t k = 0; k + 1 < n; ++k) {
    const All x0 = At<All>(lower, Lower(k + 1, k));
    All rest = All::Of(0);
    for (int64_t i = k + 2; i < n; ++i) {
      const All x = At<All>(lower, Lower(i, k));
      rest = Fma(x, x, rest);
      Put(v, i, x);
    }
    const All square = Fma(x0, x0, rest);
    const All length = Sqrt(square);
    Put(diagonal, n - 1 - k, At<All>(lower, Lower(k, k)));
    Put(squares, n - 2 - k, square);
    Put(v, k + 1, x0 + WithSignOf(x0, length));
    const All h = Fma(length, Abs(x0), square);
    // 0 where there is nothing to remove: A stays.
    const All inverse = Select(rest > All::Of(kNegligibleColumn), All::Of(1) / h, All::Of(0));

    All vp = All::Of(0);
    for (int64_t i = k + 1; i < n; ++i) {
      All sum = All::Of(0);
      for (int64_t j = k + 1; j <= i; ++j) {
        sum = Fma(At<All>(lower, Lower(i, j)), At<All>(v, j), sum);
      }
      for (int64_t j = i + 1; j < n; ++j) {
        sum = Fma(At<All>(lower, Lower(j, i)), At<All>(v, j), sum);
      }
      const All p = sum * inverse;
      vp = Fma(At<All>(v, i), p, vp);
      Put(q, i, p);
    }
    const All share = vp * inverse * All::Of(0.5);
    for (int64_t i = k + 1; i < n; ++i) {
      Put(q, i, NegativeFma(share, At<All>(v, i), At<All>(q, i)));
    }
    for (int64_t i = k + 1; i < n; ++i) {
      const All vi = At<All>(v, i);
      const All qi = At<All>(q, i);
      for (int64_t j = k + 1; j <= i; ++j) {
        const All a = NegativeFma(vi, At<All>(q, j), At<All>(lower, Lower(i, j)));
        Put(lower, Lower(i, j), NegativeFma(qi, At<All>(v, j), a));
      }
    }
  }
  Put(diagonal, 0, At<All>(lower, Lower(n - 1, n - 1)));
  Put(squares, n - 1, All::Of(0));
}

// The place that each lane works on: the first from `place` on whose element below is not
// negligible, n - 1 when none is left; with what the shift is made from.
struct Places {
  All place;
  All here;    // of the diagonal, at the place
  All next;    // below it
  All square;  // of the element between
  int64_t lowest;
};
ELASTOR_INLINE Places NextPlaces(int64_t n, const double* diagonal, const double* squares,
                                 int64_t lowest, All place) {
  Places next = {All::Of(static_cast<double>(n - 1)), All::Of(0), All::Of(0), All::Of(1), n - 1};
  for (int64_t i = n - 2; i >= lowest; --i) {
    const All at = All::Of(static_cast<double>(i));
    const All square = At<All>(squares, i);
    const auto open = (square > All::Of(kNegligibleSquare)) & ((at > place) | (at == place));
    next.place = Select(open, at, next.place);
    next.here = Select(open, At<All>(diagonal, i), next.here);
    next.next = Select(open, At<All>(diagonal, i + 1), next.next);
    next.square = Select(open, square, next.square);
    if (Any(open)) next.lowest = i;
  }
  return next;
}

// For each place in turn, sweeps from the bottom up to it until the element below it is negligible;
// the names are dsterf's. Shifts are explicit, so a negligible element in between does no harm. A
// lane goes to its next place without waiting for the others: a sweep runs up to the lowest place
// of all, and a lane whose place it has passed keeps its values.
bool IterateToDiagonal(int64_t n, double* diagonal, double* squares) {
  const All zero = All::Of(0);
  const All one = All::Of(1);
  const int64_t last = n - 1;
  Places at = {zero, zero, zero, zero, 0};
  for (int64_t sweeps = 0; sweeps < kMaxSweeps * n; ++sweeps) {
    at = NextPlaces(n, diagonal, squares, at.lowest, at.place);
    if (at.lowest == last) return true;
    const All below = Sqrt(at.square);
    const All half = (at.next - at.here) / (below + below);
    const All root = WithSignOf(half, Sqrt(Fma(half, half, one)));
    const All sigma = at.here - below / (half + root);

    All c = one;
    All s = zero;
    All gamma = At<All>(diagonal, last) - sigma;
    All p = gamma * gamma;
    // Elements i + 1 of a lane that has ended its sweep below.
    All old_diagonal = At<All>(diagonal, last);
    All old_square = At<All>(squares, last);
    for (int64_t i = last - 1; i >= at.lowest; --i) {
      const All index = All::Of(static_cast<double>(i));
      const auto ends = at.place == index;
      const auto sweeping = (index > at.place) | ends;
      const All square = At<All>(squares, i);
      const All alpha = At<All>(diagonal, i);
      const All r = p + square;
      Put(squares, i + 1, Select(sweeping, s * r, old_square));
      const All old_c = c;
      const All old_gamma = gamma;
      const auto nonzero = r > All::Of(kNegligibleLength);
      const All inverse = one / r;
      const All inverse_c = Select(nonzero, r * (one / p), one);
      c = Select(nonzero, p * inverse, one);
      s = Select(nonzero, square * inverse, zero);
      gamma = c * (alpha - sigma) - s * old_gamma;
      Put(diagonal, i + 1, Select(sweeping, old_gamma + (alpha - gamma), old_diagonal));
      p = Select(c > All::Of(kNegligibleCosine), gamma * gamma * inverse_c, old_c * square);
      old_square = Select(ends, s * p, square);
      old_diagonal = Select(ends, sigma + gamma, alpha);
    }
    Put(squares, at.lowest, old_square);
    Put(diagonal, at.lowest, old_diagonal);
  }
  return false;
}

void SortAndUnscale(int64_t n, All unit, double* values) {
  for (int64_t i = 1; i < n; ++i) {
    All value = At<All>(values, i);
    for (int64_t j = 0; j < i; ++j) {
      const All other = At<All>(values, j);
      Put(values, j, Max(value, other));
      value = Min(value, other);
    }
    Put(values, i, value);
  }
  for (int64_t i = 0; i < n; ++i) Put(values, i, At<All>(values, i) * unit);
}

bool Eigenvalues(int64_t n, double* lower, double* eigenvalues, double* scratch) {
  double* const squares = scratch;
  double* const v = squares + n * kSpectrumLanes;
  double* const q = v + n * kSpectrumLanes;
  const All unit = Scale(n, lower);
  Tridiagonalize(n, lower, eigenvalues, squares, v, q);
  const bool converged = IterateToDiagonal(n, eigenvalues, squares);
  SortAndUnscale(n, unit, eigenvalues);
  return converged;
}

// Loops over lanes are written so that they become vectors.
void EntropyRank(int64_t n, const double* eigenvalues, double* singular_values,
                 double* entropy_rank) {
  const double rounding = static_cast<double>(n) * 0x1p-52;
  double sums[kSpectrumLanes] = {};
  for (int64_t i = 0; i < n; ++i) {
    const double* const values = eigenvalues + i * kSpectrumLanes;
    double* const to = singular_values + i * kSpectrumLanes;
    for (int64_t lane = 0; lane < kSpectrumLanes; ++lane) {
      const double root = __builtin_sqrt(values[lane] > 0 ? values[lane] : 0);
      to[lane] = values[lane] > rounding * eigenvalues[lane] ? root : 0;
      sums[lane] += to[lane];
    }
  }
  double entropies[kSpectrumLanes] = {};
  for (int64_t i = 0; i < n; ++i) {
    const double* const s = singular_values + i * kSpectrumLanes;
    for (int64_t lane = 0; lane < kSpectrumLanes; ++lane) {
      const double p = s[lane] > 0 ? s[lane] / sums[lane] : 1;  // p log p -> 0 with p
      entropies[lane] -= p * CanonicalLog(p);
    }
  }
  for (int64_t lane = 0; lane < kSpectrumLanes; ++lane) {
    entropy_rank[lane] = CanonicalExp(entropies[lane]);
  }
}

}  // namespace

constinit const SpectrumKernels kSpectrumKernels = {
    .gram = Gram, .eigenvalues = Eigenvalues, .entropy_rank = EntropyRank};

}  // namespace ELASTOR_ISA
}  // namespace elastor
