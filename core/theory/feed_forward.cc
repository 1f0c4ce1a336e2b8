#include "core/theory/feed_forward.h"

#include <algorithm>
#include <cmath>

#include "core/base/canonical_math.h"

namespace elastor {

FeedForwardWeights DrawFeedForward(int64_t width, int64_t hidden, uint64_t key, uint64_t stream) {
  const double stddev = 1 / std::sqrt(static_cast<double>(width));
  const auto draw = [&](uint64_t number, int64_t rows, int64_t columns) {
    return NormalMatrix(rows, columns, stddev, key, stream * 4 + number);
  };
  return {.a = draw(0, width, hidden),
          .b = draw(1, hidden, width),
          .c = draw(2, width, hidden),
          .residual = draw(3, width, width)};
}

Matrix FeedForward(const Matrix& x, const FeedForwardWeights& weights, Activation activation) {
  return Product(Product(x, weights.a, activation), weights.b);
}

Matrix GatedFeatures(const Matrix& x, const FeedForwardWeights& weights, Activation activation) {
  return HadamardProduct(Product(x, weights.a, activation), Product(x, weights.c));
}

Matrix GatedFeedForward(const Matrix& x, const FeedForwardWeights& weights, Activation activation) {
  return Sum(Product(GatedFeatures(x, weights, activation), weights.b),
             Product(x, weights.residual));
}

Matrix RankOnePart(const Matrix& x) {
  Matrix part(x.rows, x.columns);
  double square = 0;
  for (int64_t j = 0; j < x.columns; ++j) square = std::fma(x(0, j), x(0, j), square);
  if (square == 0) return part;
  for (int64_t i = 0; i < x.rows; ++i) {
    double product = 0;
    for (int64_t j = 0; j < x.columns; ++j) product = std::fma(x(0, j), x(i, j), product);
    for (int64_t j = 0; j < x.columns; ++j) part(i, j) = product / square * x(0, j);
  }
  return part;
}

double LiftingBound(double k, int64_t width) {
  return std::min(static_cast<double>(width), k * (k + 1) / 2);
}

std::vector<Claim> FeedForwardClaims() {
  return {
      {"2.2 rank one (ReLU)", "rank(F(c v^T)) <= 2", "rank(X) is 1", Relation::kAtMost},
      {"2.2 rank one (GELU)", "rank(F(c v^T)) <= 2", "rank(X) is 1", Relation::kAtMost},
      {"2.2 contraction (linear)", "erank(F(X)) < erank(X)", "erank(X) / D is below 1",
       Relation::kBelow},
      {"2.2 contraction (ReLU)", "erank(F(X)) < erank(X)", "erank(X) / D is below 1",
       Relation::kBelow},
      {"2.2 contraction (GELU)", "erank(F(X)) < erank(X)", "erank(X) / D is below 1",
       Relation::kBelow},
      {"3.2 lifting", "rank(act(XA) * XC) >= min(D, k (k+1) / 2)", "m / (k log D) is large",
       Relation::kAtLeast},
      {"3.2 lifting instead", "rank(act(XA) * XC) <= min(T, m)", "", Relation::kAtMost},
      {"3.2 residual", "erank(X D) >= erank(X)", "", Relation::kAtLeast},
      {"3.2 increase", "erank(G(X)) > erank(X)", "erank(X) / D is below 1", Relation::kAbove},
  };
}

std::vector<Finding> FeedForwardFindings(const Matrix& x, const FeedForwardWeights& weights) {
  const MatrixRanks ranks = RanksOf(x);
  const double k = ranks.stable;
  const auto rank = static_cast<double>(ranks.algebraic);
  const auto width = static_cast<double>(x.columns);
  const Matrix rank_one = RankOnePart(x);
  std::vector<Finding> findings;
  for (const Activation activation : {Activation::kRelu, Activation::kGelu}) {
    const MatrixRanks of_rank_one = RanksOf(FeedForward(rank_one, weights, activation));
    findings.push_back({2, static_cast<double>(of_rank_one.algebraic), rank});
  }
  for (const Activation activation :
       {Activation::kIdentity, Activation::kRelu, Activation::kGelu}) {
    findings.push_back({k, RanksOf(FeedForward(x, weights, activation)).stable, k / width});
  }
  const auto lifted =
      static_cast<double>(RanksOf(GatedFeatures(x, weights, Activation::kGelu)).algebraic);
  const auto hidden = static_cast<double>(weights.a.columns);
  findings.push_back({LiftingBound(k, x.columns), lifted, hidden / (k * CanonicalLog(width))});
  findings.push_back({std::min(static_cast<double>(x.rows), hidden), lifted});
  findings.push_back({k, RanksOf(Product(x, weights.residual)).stable});
  findings.push_back(
      {k, RanksOf(GatedFeedForward(x, weights, Activation::kGelu)).stable, k / width});
  return findings;
}

}  // namespace elastor
