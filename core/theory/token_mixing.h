#ifndef ELASTOR_CORE_THEORY_TOKEN_MIXING_H_
#define ELASTOR_CORE_THEORY_TOKEN_MIXING_H_

#include <cstdint>
#include <vector>

#include "core/theory/claim.h"
#include "core/theory/matrix.h"

namespace elastor {

// The statements of RankElastor's Theorems 2.1 and 3.1 about token mixing, as functions of the
// representation X [T, D] before it. docs/results/reproduce_theory.md proves the statements that
// replace theirs here.

// Y = T(X): block (i, j) of the T x T grid of 1 x (D/T) blocks goes to (j, i). Computed by the
// kernel. REQUIRES: T divides D.
Matrix BlockTransposed(const Matrix& x);

// Ranks and correlations of X, Y = T(X) and M = X + Y.
struct BlockTransposeFigures {
  MatrixRanks x;
  MatrixRanks y;
  MatrixRanks sum;
  double cosine = 0;       // <X, Y>_F / ||X||_F^2; alignment of X and Y; Theorem 2.1 assumes 0
  double incoherence = 0;  // ||M||_2^2 / max(||X||_2^2, ||Y||_2^2); it assumes 1
};
BlockTransposeFigures MeasureBlockTranspose(const Matrix& x);

// Theorem 2.1, k = erank(X), mu = erank(Y):
//   2 k mu / (sqrt k + sqrt mu)^2 <= erank(M) <= 2 (k + mu).
double BlockTransposeLowerBound(double k, double mu);
double BlockTransposeUpperBound(double k, double mu);
// erank(M) = 2 (1 + cosine) / incoherence * min(k, mu), whatever X is: under the theorem's own
// assumptions erank(M) = 2 min(k, mu).
double BlockTransposeRank(const BlockTransposeFigures& figures);

// The blocks b_1, ..., b_K of vec(X), K = T D / block_width, as rows. The residual outputs that
// block mixing (W (x) I) can reach from X are X plus all matrices whose blocks lie in their span:
// a space of K times the rank of this matrix. REQUIRES: block_width divides T D.
Matrix BlocksOf(const Matrix& x, int64_t block_width);
// Divisors d* > 1 of T D with d*^2 <= T D, ascending. A larger d* has K < d* blocks, which never
// span R^{d*}: Theorem 3.1 (ii) is in doubt for these alone.
std::vector<int64_t> BlockWidthsInDoubt(int64_t tokens, int64_t width);

// Returns ||W - W' (x) I||_F / ||W||_F for the nearest W'. It is 0 iff the linear map W [N, N] is a
// block mixing of that width. REQUIRES: block_width divides N.
double DistanceToBlockMixing(const Matrix& w, int64_t block_width);

// Returns the theorems' claims about a representation before mixing, and the findings of one
// representation, in the same order. Claims of Theorem 2.1 are left out if T does not divide D.
std::vector<Claim> MixingClaims(int64_t tokens, int64_t width);
std::vector<Finding> MixingFindings(const Matrix& x);

}  // namespace elastor

#endif  // ELASTOR_CORE_THEORY_TOKEN_MIXING_H_
