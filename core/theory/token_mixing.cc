#include "core/theory/token_mixing.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/log.h"
#include "core/kernels/elementwise.h"

namespace elastor {
namespace {

void AddBlockTransposeFindings(const Matrix& x, std::vector<Finding>* findings) {
  const BlockTransposeFigures figures = MeasureBlockTranspose(x);
  const double k = figures.x.stable;
  const double mu = figures.y.stable;
  const double found = figures.sum.stable;
  const double lower = BlockTransposeLowerBound(k, mu);
  const auto rank_bound =
      static_cast<double>(std::min(x.rows, figures.x.algebraic * (x.columns / x.rows)));
  findings->push_back({lower, found, figures.cosine});
  findings->push_back({BlockTransposeUpperBound(k, mu), found, figures.incoherence});
  findings->push_back({rank_bound, static_cast<double>(figures.y.algebraic)});
  findings->push_back({k, found, mu / k});
  findings->push_back({k, lower, mu / k});
  findings->push_back({2 * std::min(k, mu), found, figures.incoherence});
  findings->push_back({BlockTransposeRank(figures), found});
}

}  // namespace

Matrix BlockTransposed(const Matrix& x) {
  const int64_t features = x.rows * x.columns;
  std::vector<double> memory(2 * PanelElements(1, features));
  const Panels<double> from = {memory.data(), 1, features, PanelStride(features)};
  const Panels<double> to = {memory.data() + PanelElements(1, features), 1, features,
                             PanelStride(features)};
  for (int64_t f = 0; f < features; ++f) from.At(0, f) = x.values[f];
  BlockTranspose<double>(x.rows, x.columns, from, to);
  Matrix y(x.rows, x.columns);
  for (int64_t f = 0; f < features; ++f) y.values[f] = to.At(0, f);
  return y;
}

BlockTransposeFigures MeasureBlockTranspose(const Matrix& x) {
  const Matrix y = BlockTransposed(x);
  BlockTransposeFigures figures = {RanksOf(x), RanksOf(y), RanksOf(Sum(x, y))};
  const double norm = std::max(figures.x.norm, figures.y.norm);
  figures.cosine = InnerProduct(x, y) / InnerProduct(x, x);
  figures.incoherence = figures.sum.norm * figures.sum.norm / (norm * norm);
  return figures;
}

double BlockTransposeLowerBound(double k, double mu) {
  const double roots = std::sqrt(k) + std::sqrt(mu);
  return 2 * k * mu / (roots * roots);
}

double BlockTransposeUpperBound(double k, double mu) { return 2 * (k + mu); }

double BlockTransposeRank(const BlockTransposeFigures& figures) {
  return 2 * (1 + figures.cosine) / figures.incoherence *
         std::min(figures.x.stable, figures.y.stable);
}

Matrix BlocksOf(const Matrix& x, int64_t block_width) {
  const int64_t features = x.rows * x.columns;
  CHECK_EQ(features % block_width, 0);
  Matrix blocks(features / block_width, block_width);
  blocks.values = x.values;
  return blocks;
}

std::vector<int64_t> BlockWidthsInDoubt(int64_t tokens, int64_t width) {
  std::vector<int64_t> widths;
  for (int64_t d = 2; d * d <= tokens * width; ++d) {
    if (tokens * width % d == 0) widths.push_back(d);
  }
  return widths;
}

// The nearest W'_ij is the mean of the diagonal of block (i, j).
double DistanceToBlockMixing(const Matrix& w, int64_t block_width) {
  CHECK_EQ(w.rows, w.columns);
  CHECK_EQ(w.rows % block_width, 0);
  Matrix rest = w;
  for (int64_t i = 0; i < w.rows; i += block_width) {
    for (int64_t j = 0; j < w.columns; j += block_width) {
      double sum = 0;
      for (int64_t c = 0; c < block_width; ++c) sum += w(i + c, j + c);
      for (int64_t c = 0; c < block_width; ++c) {
        rest(i + c, j + c) -= sum / static_cast<double>(block_width);
      }
    }
  }
  return std::sqrt(InnerProduct(rest, rest) / InnerProduct(w, w));
}

std::vector<Claim> MixingClaims(int64_t tokens, int64_t width) {
  std::vector<Claim> claims;
  if (width % tokens == 0) {
    claims = {
        {"2.1 lower bound", "erank(X+Y) >= 2 k mu / (sqrt k + sqrt mu)^2", "<X, Y> / |X|_F^2 is 0",
         Relation::kAtLeast},
        {"2.1 upper bound", "erank(X+Y) <= 2 (k + mu)", "|X+Y|_2^2 / max(|X|_2^2, |Y|_2^2) is 1",
         Relation::kAtMost},
        {"2.1 rank", "rank(Y) <= min(T, r d)", "", Relation::kAtMost},
        {"2.1 expansion", "erank(X+Y) > k", "mu / k", Relation::kAbove},
        {"2.1 proves expansion", "its lower bound > k", "mu / k is above 5.83", Relation::kAbove},
        {"2.1 as assumed", "erank(X+Y) >= 2 min(k, mu)", "|X+Y|_2^2 / max(|X|_2^2, |Y|_2^2) is 1",
         Relation::kAtLeast},
        {"2.1 instead", "erank(X+Y) = 2 (1 + cosine) / incoherence min(k, mu)", "",
         Relation::kEqual},
    };
  }
  for (const int64_t d : BlockWidthsInDoubt(tokens, width)) {
    claims.push_back({"3.1 (ii) d*=" + std::to_string(d),
                      "the blocks of vec(X) span less than R^d*", "erank(X) / min(T, D)",
                      Relation::kBelow});
  }
  return claims;
}

std::vector<Finding> MixingFindings(const Matrix& x) {
  std::vector<Finding> findings;
  if (x.columns % x.rows == 0) AddBlockTransposeFindings(x, &findings);
  const double share = RanksOf(x).stable / static_cast<double>(std::min(x.rows, x.columns));
  for (const int64_t d : BlockWidthsInDoubt(x.rows, x.columns)) {
    const auto span = static_cast<double>(RanksOf(BlocksOf(x, d)).algebraic);
    findings.push_back({static_cast<double>(d), span, share});
  }
  return findings;
}

}  // namespace elastor
