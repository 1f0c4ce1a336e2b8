#ifndef ELASTOR_CORE_THEORY_FEED_FORWARD_H_
#define ELASTOR_CORE_THEORY_FEED_FORWARD_H_

#include <cstdint>
#include <vector>

#include "core/theory/claim.h"
#include "core/theory/matrix.h"

namespace elastor {

// The statements of RankElastor's Theorems 2.2 (B.1) and 3.2 about a feed-forward network that all
// rows of a representation X [T, D] share, as functions of X and a draw of its weights. The models'
// own P-FFNs have weights for every token, about which these theorems say nothing.

// Weights drawn independently from N(0, 1/D), as both theorems assume; m is the hidden width.
struct FeedForwardWeights {
  Matrix a;         // [D, m]
  Matrix b;         // [m, D]
  Matrix c;         // [D, m]
  Matrix residual;  // [D, D], the theorem's D
};
FeedForwardWeights DrawFeedForward(int64_t width, int64_t hidden, uint64_t key, uint64_t stream);

// F(X) = act(X A) B.
Matrix FeedForward(const Matrix& x, const FeedForwardWeights& weights, Activation activation);
// Returns act(X A) * (X C) [T, m], element by element.
Matrix GatedFeatures(const Matrix& x, const FeedForwardWeights& weights, Activation activation);
// G(X) = (act(X A) * (X C)) B + X D.
Matrix GatedFeedForward(const Matrix& x, const FeedForwardWeights& weights, Activation activation);

// Returns c v^T, with v the first row of X and c_t v the part of row t along it: a rank-one matrix
// with signs as in X. It is a zero matrix if the first row is zero.
Matrix RankOnePart(const Matrix& x);

// Theorem 3.2: rank(act(X A) * (X C)) >= min(D, k (k + 1) / 2), k = erank(X).
double LiftingBound(double k, int64_t width);

// Returns the theorems' claims about a representation before a P-FFN of that hidden width, and the
// findings of one representation, in the same order. The gate is GELU.
std::vector<Claim> FeedForwardClaims();
std::vector<Finding> FeedForwardFindings(const Matrix& x, const FeedForwardWeights& weights);

}  // namespace elastor

#endif  // ELASTOR_CORE_THEORY_FEED_FORWARD_H_
