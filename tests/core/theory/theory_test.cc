// The claims of RankElastor's theory (docs/results/reproduce_theory.md): those that hold over
// random draws, those that fail by a counterexample with its name.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/theory/feed_forward.h"
#include "core/theory/matrix.h"
#include "core/theory/token_mixing.h"
#include "tests/core/models/test_model.h"
#include "tests/core/spectrum/decompositions.h"

namespace elastor {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kTolerance = 1e-12;  // of identities in double
constexpr uint64_t kDraws = 200;
constexpr int64_t kTokens = 15, kWidth = 26, kHidden = 3 * kWidth;  // the paper's on Criteo

Matrix Gaussian(int64_t rows, int64_t columns, uint64_t draw) {
  return NormalMatrix(rows, columns, 1, /*key=*/1, draw);
}
Matrix OfRank(int64_t rank, int64_t rows, int64_t columns, uint64_t draw) {
  return Product(Gaussian(rows, rank, 2 * draw), Gaussian(rank, columns, 2 * draw + 1));
}
FeedForwardWeights Weights(uint64_t draw, int64_t hidden = kHidden, int64_t width = kWidth) {
  return DrawFeedForward(width, hidden, /*key=*/2, draw);
}

MatrixXd ToEigen(const Matrix& x) {
  MatrixXd result(x.rows, x.columns);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.columns; ++j) result(i, j) = x(i, j);
  }
  return result;
}
Matrix FromEigen(const MatrixXd& x) {
  Matrix result(x.rows(), x.cols());
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < x.cols(); ++j) result(i, j) = x(i, j);
  }
  return result;
}
// vec(X^T): row after row.
VectorXd Vec(const Matrix& x) {
  return Eigen::Map<const VectorXd>(x.values.data(), static_cast<int64_t>(x.values.size()));
}
MatrixXd Kronecker(const MatrixXd& a, const MatrixXd& b) {
  MatrixXd result(a.rows() * b.rows(), a.cols() * b.cols());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) {
      result.block(i * b.rows(), j * b.cols(), b.rows(), b.cols()) = a(i, j) * b;
    }
  }
  return result;
}
MatrixXd Identity(int64_t n) { return MatrixXd::Identity(n, n); }
// `columns` orthonormal columns.
MatrixXd Orthonormal(int64_t rows, int64_t columns, uint64_t draw) {
  return OrthogonalFactorByEigen(ToEigen(Gaussian(rows, rows, draw))).leftCols(columns);
}

// How many of kDraws draws agree with what is claimed.
int64_t Count(const std::function<bool(uint64_t draw)>& holds) {
  int64_t count = 0;
  for (uint64_t draw = 0; draw < kDraws; ++draw) count += holds(draw);
  return count;
}

TEST(MatrixTest, AgreesWithEigen) {
  const Matrix a = Gaussian(15, 26, 1), b = Gaussian(26, 40, 2);
  EXPECT_LT((ToEigen(Product(a, b)) - ToEigen(a) * ToEigen(b)).norm(), kTolerance * 100);
  const Matrix low = OfRank(4, 15, 26, 3);
  const VectorXd values = SingularValuesByEigen(ToEigen(low));
  const MatrixRanks ranks = RanksOf(low);
  EXPECT_EQ(ranks.algebraic, 4);
  EXPECT_NEAR(ranks.norm, values[0], kTolerance * values[0]);
  EXPECT_NEAR(ranks.stable, values.squaredNorm() / (values[0] * values[0]), kTolerance * 15);
}

TEST(ClaimTest, HoldsUpToRounding) {
  const auto holds = [](Relation relation, double measured) {
    return Holds({"", "", "", relation}, {.bound = 2, .measured = measured});
  };
  for (const auto& [relation, below, equal, above] :
       {std::tuple{Relation::kAtLeast, false, true, true},
        {Relation::kAtMost, true, true, false},
        {Relation::kAbove, false, false, true},
        {Relation::kBelow, true, false, false},
        {Relation::kEqual, false, true, false}}) {
    EXPECT_EQ(holds(relation, 1.99), below);
    EXPECT_EQ(holds(relation, 2 + 1e-10), equal);
    EXPECT_EQ(holds(relation, 2.01), above);
    EXPECT_FALSE(holds(relation, std::nan("")));
  }
}

// --- Equations 2 and 3 ---

// P of eq. 2, T^2 x T^2: entry i T + j of P x is entry j T + i of x.
MatrixXd CommutationMatrix(int64_t tokens) {
  MatrixXd p = MatrixXd::Zero(tokens * tokens, tokens * tokens);
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j < tokens; ++j) p(i * tokens + j, j * tokens + i) = 1;
  }
  return p;
}

TEST(Equation2Test, BlockTransposeIsPKroneckerIdentityBitForBit) {
  for (const auto& [tokens, width] :
       {std::pair{13, 26}, std::pair{4, 12}, std::pair{6, 6}, std::pair{1, 3}}) {
    const Matrix x = Gaussian(tokens, width, 5);
    const MatrixXd p = CommutationMatrix(tokens);
    const MatrixXd identity = Identity(width / tokens);
    EXPECT_EQ(Vec(BlockTransposed(x)), Kronecker(p, identity) * Vec(x));
    if (tokens > 1 && width > tokens) {
      EXPECT_NE(Vec(BlockTransposed(x)), Kronecker(identity, p) * Vec(x));
    }
  }
}

// The probes "tokens" and "block0.mixing" of one row, and the weights.
struct ModelRun {
  Matrix x;
  Matrix mixed;
  Graph graph;
  std::vector<double> weights;

  VectorXd Parameter(const std::string& name) const {
    const ParameterInfo& info = graph.parameters()[graph.parameters().Find(name)];
    return Eigen::Map<const VectorXd>(weights.data() + info.offset, info.size);
  }
};

ModelRun RunModel(int64_t tokens, int64_t width, const std::string& text) {
  const TestModel model =
      MakeTestModel({.categorical_fields = 4, .embedding_width = 10},
                    text + " { convention: PAPER tokens: " + std::to_string(tokens) +
                        " token_width: " + std::to_string(width) + " blocks: 1 }");
  ModelRun run = {Matrix(tokens, width), Matrix(tokens, width), model.graph(), {}};
  // All parameters random: biases and norms matter, too.
  run.weights = Gaussian(1, run.graph.parameters().flat_size(), 6).values;
  CpuExecutor<double> executor(run.graph);
  executor.Prepare(run.weights.data());
  Workspace<double> workspace(executor.workspace_plan(), 1);
  Pass<double> pass;
  pass.workspace = &workspace;
  pass.leaves = PassLeaves(1);
  const Matrix e = Gaussian(1, run.graph.features().inputs(), 7);
  for (int64_t f = 0; f < e.columns; ++f) executor.Embeddings(pass).At(0, f) = e(0, f);
  executor.Forward(pass);
  for (int64_t f = 0; f < tokens * width; ++f) {
    run.x.values[f] = executor.ProbeOutput(pass, 1).At(0, f);
    run.mixed.values[f] = executor.ProbeOutput(pass, 2).At(0, f);
  }
  return run;
}

// LN over each token, with the gain and bias of the model's norm.
VectorXd LayerNormOf(const ModelRun& run, const VectorXd& sum) {
  const VectorXd gain = run.Parameter("block0.mixing.norm.gain");
  const VectorXd bias = run.Parameter("block0.mixing.norm.bias");
  VectorXd result(sum.size());
  for (int64_t begin = 0; begin < sum.size(); begin += gain.size()) {
    const Eigen::ArrayXd token = sum.segment(begin, gain.size());
    const double variance = (token - token.mean()).square().mean();
    result.segment(begin, gain.size()) =
        (token - token.mean()) / std::sqrt(variance + 1e-5) * gain.array() + bias.array();
  }
  return result;
}

TEST(Equation2Test, IsRankMixersMixing) {
  const ModelRun run = RunModel(13, 26, "rank_mixer");
  const MatrixXd map = Kronecker(CommutationMatrix(13), Identity(2));
  const VectorXd expected = LayerNormOf(run, map * Vec(run.x) + Vec(run.x));
  EXPECT_LT((Vec(run.mixed) - expected).lpNorm<Eigen::Infinity>(), kTolerance);
}

TEST(Equation3Test, IsRankElastorsMixing) {
  const ModelRun run = RunModel(kTokens, kWidth, "rank_elastor");
  const int64_t features = kTokens * kWidth;
  const MatrixXd w =
      Eigen::Map<const MatrixXd>(run.Parameter("block0.mixing.weight").data(), features, features)
          .transpose();
  const VectorXd sum = (w + Identity(features)) * Vec(run.x) + run.Parameter("block0.mixing.bias");
  EXPECT_LT((Vec(run.mixed) - LayerNormOf(run, sum)).lpNorm<Eigen::Infinity>(), kTolerance);
}

// --- Theorem 2.1 ---

// X with blocks in the upper right quarter of the grid alone: X and Y = T(X) share neither rows
// nor columns, so that <X, Y> = 0 and ||X + Y||_2 = max(||X||_2, ||Y||_2) exactly.
Matrix IncoherentWithItsTranspose(uint64_t draw) {
  constexpr int64_t kEven = 6, kColumns = 18;
  Matrix x = Gaussian(kEven, kColumns, draw);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.columns; ++j) {
      if (i >= kEven / 2 || j < kColumns / 2) x(i, j) = 0;
    }
  }
  return x;
}

TEST(Theorem21Test, UnderItsAssumptionsTheRankIsTwiceTheSmallerOne) {
  const auto exact = [](const Matrix& x) {
    const BlockTransposeFigures f = MeasureBlockTranspose(x);
    return std::abs(f.sum.stable - 2 * std::min(f.x.stable, f.y.stable)) < kTolerance * 100;
  };
  EXPECT_EQ(Count([&](uint64_t draw) { return exact(IncoherentWithItsTranspose(draw)); }),
            static_cast<int64_t>(kDraws));
  EXPECT_EQ(Count([&](uint64_t draw) { return exact(Gaussian(6, 18, draw)); }), 0);
}

TEST(Theorem21Test, WithoutAssumptionsTheRankFollowsFromCosineAndIncoherence) {
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    for (const Matrix& x :
         {Gaussian(13, 26, draw), OfRank(2, 13, 26, draw), Gaussian(6, 6, draw)}) {
      const BlockTransposeFigures f = MeasureBlockTranspose(x);
      EXPECT_NEAR(f.sum.stable, BlockTransposeRank(f), kTolerance * 100);
      EXPECT_GE(f.sum.stable,
                (1 + f.cosine) * BlockTransposeLowerBound(f.x.stable, f.y.stable) - kTolerance);
    }
  }
}

TEST(Theorem21Test, AlgebraicRankOfTheTranspose) {
  for (int64_t rank = 1; rank <= 8; ++rank) {
    for (const auto& [tokens, width] : {std::pair{13, 26}, std::pair{6, 24}, std::pair{9, 9}}) {
      const BlockTransposeFigures f = MeasureBlockTranspose(OfRank(rank, tokens, width, rank));
      // Attained, so that no smaller bound would hold.
      EXPECT_EQ(f.y.algebraic, std::min<int64_t>(tokens, f.x.algebraic * (width / tokens)));
    }
  }
}

// <X, Y> is far from 0: X = A + e1 e1^T / 100 with A orthogonal and T(A) = -A (d = 1), so that M =
// e1 e1^T / 50 has rank one.
TEST(Theorem21Test, CounterexampleLowerBoundWithoutOrthogonality) {
  Matrix x(4, 4);
  x(0, 1) = x(2, 3) = 1;
  x(1, 0) = x(3, 2) = -1;
  x(0, 0) = 0.01;
  const BlockTransposeFigures f = MeasureBlockTranspose(x);
  EXPECT_LT(f.cosine, -0.99);
  EXPECT_NEAR(f.sum.stable, 1, kTolerance);
  EXPECT_GT(BlockTransposeLowerBound(f.x.stable, f.y.stable), 1.9);
}

// Frobenius orthogonality alone does not give the upper bound: X = a A + I, A = e1 e2^T - e2 e1^T,
// a^2 = T / 2. M = 2 I has rank T, but k = mu = 4 T / (T + 2) < 4.
TEST(Theorem21Test, CounterexampleUpperBoundWithoutIncoherence) {
  const int64_t tokens = 26;
  Matrix x = FromEigen(Identity(tokens));
  x(0, 1) = std::sqrt(tokens / 2.0);
  x(1, 0) = -x(0, 1);
  const BlockTransposeFigures f = MeasureBlockTranspose(x);
  EXPECT_NEAR(f.cosine, 0, kTolerance);
  EXPECT_NEAR(f.incoherence, 4 / (1 + tokens / 2.0), kTolerance);
  EXPECT_NEAR(f.sum.stable, tokens, kTolerance * 100);
  EXPECT_NEAR(BlockTransposeUpperBound(f.x.stable, f.y.stable), 14.857, 1e-3);
}

// With d = 1, as in the public code on Criteo, mu = k, and the bound is k / 2.
TEST(Theorem21Test, LowerBoundExceedsTheRankOnlyIfMuIsSixTimesAsLarge) {
  const double turning = 3 + 2 * std::sqrt(2.0);
  for (const double k : {1.0, 2.5, 7.0}) {
    EXPECT_LT(BlockTransposeLowerBound(k, 0.999 * turning * k), k);
    EXPECT_GT(BlockTransposeLowerBound(k, 1.001 * turning * k), k);
  }
  const BlockTransposeFigures f = MeasureBlockTranspose(Gaussian(26, 26, 1));
  EXPECT_NEAR(f.y.stable, f.x.stable, kTolerance * 100);
  EXPECT_NEAR(BlockTransposeLowerBound(f.x.stable, f.y.stable), f.x.stable / 2, kTolerance * 100);
}

TEST(Theorem21Test, GaussiansAreNotIncoherent) {
  EXPECT_EQ(Count([](uint64_t draw) {
              return MeasureBlockTranspose(Gaussian(13, 26, draw)).incoherence < 1.3;
            }),
            0);
}

// --- Theorems 2.2 and B.1 ---

TEST(Theorem22Test, SharedHomogeneousNetworksKeepRankOneBelowThree) {
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    Matrix x = OfRank(1, kTokens, kWidth, draw);
    EXPECT_LE(RanksOf(FeedForward(x, Weights(draw), Activation::kRelu)).algebraic, 2);
    // Rows of one sign: rank 1.
    const Matrix c = Gaussian(kTokens, 1, draw), v = Gaussian(1, kWidth, draw + kDraws);
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t j = 0; j < kWidth; ++j) x(t, j) = std::abs(c(t, 0)) * v(0, j);
    }
    EXPECT_EQ(RanksOf(FeedForward(x, Weights(draw), Activation::kRelu)).algebraic, 1);
    // The precondition matters.
    const Matrix two = OfRank(2, kTokens, kWidth, draw);
    EXPECT_GT(RanksOf(FeedForward(two, Weights(draw), Activation::kRelu)).algebraic, 2);
  }
}

TEST(Theorem22Test, CounterexampleGeluIsNotHomogeneous) {
  const Matrix x = OfRank(1, kTokens, kWidth, 1);
  EXPECT_GE(RanksOf(FeedForward(x, Weights(1), Activation::kGelu)).algebraic, 6);
}

// A network for every token.
Matrix PerToken(const Matrix& x, uint64_t draw,
                const std::function<Matrix(const Matrix&, const FeedForwardWeights&)>& network) {
  Matrix y(x.rows, x.columns);
  for (int64_t t = 0; t < x.rows; ++t) {
    Matrix row(1, x.columns);
    std::copy_n(x.values.begin() + t * x.columns, x.columns, row.values.begin());
    const Matrix out = network(row, Weights(draw * x.rows + t));
    std::ranges::copy(out.values, y.values.begin() + t * x.columns);
  }
  return y;
}
Matrix PerTokenRelu(const Matrix& x, uint64_t draw) {
  return PerToken(x, draw, [](const Matrix& row, const FeedForwardWeights& weights) {
    return FeedForward(row, weights, Activation::kRelu);
  });
}

TEST(Theorem22Test, CounterexamplePerTokenWeightsRaiseRankOneToFull) {
  const Matrix x = OfRank(1, kTokens, kWidth, 1);
  EXPECT_EQ(RanksOf(PerTokenRelu(x, 1)).algebraic, kTokens);
}

// No matrix has an effective rank below 1: erank(F(X)) <= alpha erank(X) with alpha < 1 is
// impossible for X of rank one, with any probability.
TEST(Theorem22Test, CounterexampleContractionOfRankOne) {
  EXPECT_EQ(Count([](uint64_t draw) {
              const Matrix x = OfRank(1, kTokens, kWidth, draw);
              return RanksOf(FeedForward(x, Weights(draw), Activation::kRelu)).stable < 1 - 1e-12;
            }),
            0);
}

// Of Gaussian X almost all draws contract, but so do those without an activation: of the products
// with random matrices, not of a response gap, which the identity does not have.
TEST(Theorem22Test, RandomLinearMapsContractGaussians) {
  for (const Activation activation : {Activation::kRelu, Activation::kIdentity}) {
    EXPECT_GT(Count([&](uint64_t draw) {
                const Matrix x = Gaussian(kTokens, kWidth, draw);
                return RanksOf(FeedForward(x, Weights(draw), activation)).stable <
                       RanksOf(x).stable;
              }),
              0.95 * kDraws);
  }
}

double Relu(double z) { return std::max(z, 0.0); }

// Step (iv) of the proof, E ||phi(H)||_F^2 = T sum_j rho(u_j) lambda_j over an eigenbasis of H^T H
// / T, for H with all rows (1, -1): lambda = (2, 0), u_1 = +-(1, -1) / sqrt 2. The left side is T;
// the right side is 2 T or 0, by the sign of an eigenvector.
TEST(Theorem22Test, CounterexampleStepFourOfTheProof) {
  const double h[] = {1, -1};
  const double left = Relu(h[0]) * Relu(h[0]) + Relu(h[1]) * Relu(h[1]);
  EXPECT_EQ(left, 1);
  for (const auto& [sign, right] : {std::pair{1, 2.0}, std::pair{-1, 0.0}}) {
    const double along = sign * (h[0] - h[1]) / std::sqrt(2.0);
    EXPECT_NEAR(Relu(along) * Relu(along), right, kTolerance);  // rho(u_1) lambda_1
  }
}

// phi(z)^2 + phi(-z)^2 = z^2: where <u, h> is as often z as -z, as with Gaussian A, rho(u) = 1/2 in
// every direction u, and there is no gap.
TEST(Theorem22Test, CounterexampleResponseGapOfReluForSymmetricInputs) {
  const Matrix h = Gaussian(40, kWidth, 3);
  const auto response = [&](const Matrix& products, bool symmetric) {
    double after = 0, before = 0;
    for (const double z : products.values) {
      after += Relu(z) * Relu(z) + (symmetric ? Relu(-z) * Relu(-z) : 0);
      before += z * z * (symmetric ? 2 : 1);
    }
    return after / before;
  };
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const Matrix products = Product(h, Gaussian(kWidth, 1, draw));
    EXPECT_NEAR(response(products, /*symmetric=*/true), 0.5, kTolerance);
    EXPECT_GT(std::abs(response(products, /*symmetric=*/false) - 0.5), kTolerance);
  }
}

// --- Theorems 3.1 and C.1 ---

// How much of ||Z||_F is left when X is mixed in blocks of that width as near to Z as possible.
double DistanceFromReach(const Matrix& x, const Matrix& z, int64_t block_width) {
  const MatrixXd blocks = ToEigen(BlocksOf(x, block_width)).transpose();  // [d*, K]
  const MatrixXd wanted =
      (ToEigen(BlocksOf(z, block_width)) - ToEigen(BlocksOf(x, block_width))).transpose();
  const MatrixXd w = LeastSquaresByEigen(blocks, wanted, kRankTolerance);
  return (blocks * w - wanted).norm() / Vec(z).norm();
}

TEST(Theorem31Test, FullMixingReachesEverything) {
  for (uint64_t draw = 0; draw < 10; ++draw) {
    const Matrix x = OfRank(1 + draw, kTokens, kWidth, draw), z = Gaussian(kTokens, kWidth, draw);
    const MatrixXd w = (Vec(z) - Vec(x)) * Vec(x).transpose() / Vec(x).squaredNorm();
    EXPECT_LT((Vec(x) + w * Vec(x) - Vec(z)).norm(), kTolerance * Vec(z).norm());
    EXPECT_LT(DistanceFromReach(x, z, 1), kTolerance);
  }
}

// (ii) says "for every d* > 1".
TEST(Theorem31Test, CounterexampleBlocksThatSpanReachEverything) {
  const Matrix x = Gaussian(kTokens, kWidth, 1), z = Gaussian(kTokens, kWidth, 2);
  for (const int64_t d : {2, 13}) {
    EXPECT_EQ(RanksOf(BlocksOf(x, d)).algebraic, d);
    EXPECT_LT(DistanceFromReach(x, z, d), 1e-10) << d;
  }
  // 15 blocks of width 26 span at most 15 dimensions: d*^2 > T D is always deficient.
  EXPECT_EQ(RanksOf(BlocksOf(x, 26)).algebraic, 15);
  EXPECT_GT(DistanceFromReach(x, z, 26), 0.5);
}

// Nor does a low effective rank confine the blocks: those of width 15 of an X of rank one do not
// respect the rows of width 26, and span R^15.
TEST(Theorem31Test, CounterexampleRankOneWhoseBlocksSpan) {
  const Matrix x = OfRank(1, kTokens, kWidth, 1), z = Gaussian(kTokens, kWidth, 2000);
  EXPECT_NEAR(RanksOf(x).stable, 1, kTolerance * 100);
  EXPECT_EQ(RanksOf(BlocksOf(x, 15)).algebraic, 15);
  EXPECT_LT(DistanceFromReach(x, z, 15), 1e-10);
}

TEST(Theorem31Test, BlockMixingReachesExactlyTheSpanOfItsBlocks) {
  const int64_t d = 13;
  for (int64_t rank = 1; rank <= 5; ++rank) {
    // d* divides D: blocks span at most rank * D / d* dimensions, here all of these.
    const Matrix x = OfRank(rank, kTokens, kWidth, rank);
    const MatrixXd blocks = ToEigen(BlocksOf(x, d));
    EXPECT_EQ(RanksOf(BlocksOf(x, d)).algebraic, 2 * rank);
    Matrix inside = x;
    inside.values = FromEigen(ToEigen(Gaussian(30, 30, rank)) * blocks).values;
    EXPECT_LT(DistanceFromReach(x, inside, d), 1e-10);
    // Of a random Z the share sqrt(1 - 2 rank / 13) is outside of the span, about.
    const double outside = DistanceFromReach(x, Gaussian(kTokens, kWidth, 1000 + rank), d);
    EXPECT_NEAR(outside, std::sqrt(1 - 2 * rank / 13.0), 0.05);
  }
}

// What remains true of the title: as sets of linear maps they are strictly contained.
TEST(Theorem31Test, LinearMapsOfBlockMixingAreStrictlyContained) {
  const int64_t features = 24;
  for (const int64_t d : {2, 4, 12}) {
    const Matrix w = Gaussian(features / d, features / d, d);
    const Matrix block = FromEigen(Kronecker(ToEigen(w), Identity(d)));
    EXPECT_LT(DistanceToBlockMixing(block, d), kTolerance);
    // It is the same map in finer blocks.
    EXPECT_LT(DistanceToBlockMixing(block, 2), kTolerance);
    // A random map: 1 of d^2 numbers of a block is left after the mean over its diagonal.
    EXPECT_NEAR(DistanceToBlockMixing(Gaussian(features, features, d), d),
                std::sqrt(1 - 1.0 / (d * d)), 0.06);
  }
  EXPECT_EQ(BlockWidthsInDoubt(kTokens, kWidth), (std::vector<int64_t>{2, 3, 5, 6, 10, 13, 15}));
  EXPECT_EQ(BlockWidthsInDoubt(13, 26), (std::vector<int64_t>{2, 13}));
}

// --- Theorem 3.2 ---

TEST(Theorem32Test, CounterexampleLiftingBeyondTheNumberOfTokens) {
  const Matrix x = FromEigen(Orthonormal(kWidth, kTokens, 1).transpose());
  EXPECT_NEAR(RanksOf(x).stable, 15, kTolerance * 100);
  EXPECT_EQ(LiftingBound(15, kWidth), 26);
  EXPECT_EQ(RanksOf(GatedFeatures(x, Weights(1), Activation::kGelu)).algebraic, 15);
  EXPECT_NEAR(LiftingBound(5, kWidth), 15, 0);  // from k = 5 on it asks for all tokens
}

// m >= k log D, yet the rank is at most m < min(D, k (k + 1) / 2): 12 equal singular values, T = D
// = 64, m = 50.
TEST(Theorem32Test, CounterexampleWidthOfOrderKLogD) {
  const int64_t k = 12, size = 64, hidden = 50;
  EXPECT_GT(static_cast<double>(hidden), k * std::log(size));
  const Matrix x = FromEigen(Orthonormal(size, k, 1) * Orthonormal(size, k, 2).transpose());
  EXPECT_NEAR(RanksOf(x).stable, k, kTolerance * 100);
  EXPECT_EQ(LiftingBound(RanksOf(x).stable, size), size);
  EXPECT_EQ(RanksOf(GatedFeatures(x, Weights(1, hidden, size), Activation::kGelu)).algebraic,
            hidden);
}

// What the proof lifts by: without an activation the rank is min(T, m, q), q = r (r + 1) / 2.
TEST(Theorem32Test, ProductsOfLinearMapsHaveTheRankOfTheQuadraticMonomials) {
  for (int64_t rank = 1; rank <= 8; ++rank) {
    for (const int64_t hidden : {4, 12, 78}) {
      const Matrix x = OfRank(rank, kTokens, kWidth, rank);
      EXPECT_EQ(RanksOf(GatedFeatures(x, Weights(rank, hidden), Activation::kIdentity)).algebraic,
                std::min({kTokens, hidden, rank * (rank + 1) / 2}))
          << rank << " " << hidden;
    }
  }
}

TEST(Theorem32Test, CounterexampleOrthonormalRowsCannotGain) {
  const Matrix x = FromEigen(Orthonormal(kWidth, kTokens, 1).transpose());
  EXPECT_EQ(Count([&](uint64_t draw) {
              return RanksOf(GatedFeedForward(x, Weights(draw), Activation::kGelu)).stable >=
                     RanksOf(x).stable;
            }),
            0);
}

// Gaussian X, k about 5: most draws lose rank, as they do by the random residual map alone.
TEST(Theorem32Test, CounterexampleGatedNetworksContractGaussians) {
  EXPECT_LT(Count([](uint64_t draw) {
              const Matrix x = Gaussian(kTokens, kWidth, draw);
              return RanksOf(GatedFeedForward(x, Weights(draw), Activation::kGelu)).stable >
                     RanksOf(x).stable;
            }),
            0.1 * kDraws);
  EXPECT_LT(Count([](uint64_t draw) {
              const Matrix x = Gaussian(kTokens, kWidth, draw);
              return RanksOf(Product(x, Weights(draw).residual)).stable > RanksOf(x).stable;
            }),
            0.1 * kDraws);
}

TEST(Theorem32Test, GatedNetworksRaiseRankOne) {
  EXPECT_EQ(Count([](uint64_t draw) {
              const Matrix x = OfRank(1, kTokens, kWidth, draw);
              return RanksOf(GatedFeedForward(x, Weights(draw), Activation::kGelu)).stable > 1.001;
            }),
            static_cast<int64_t>(kDraws));
}

// With weights for every token, as the models have them, either network raises a low rank: means of
// erank after the networks, for X of rank one and for products of rank 8.
TEST(Theorem32Test, PerTokenNetworksOfBothKindsRaiseALowRank) {
  const auto gated = [](const Matrix& row, const FeedForwardWeights& weights) {
    return GatedFeedForward(row, weights, Activation::kGelu);
  };
  const auto plain = [](const Matrix& row, const FeedForwardWeights& weights) {
    return FeedForward(row, weights, Activation::kGelu);
  };
  for (const auto& [rank, before, after_plain, after_gated] :
       {std::tuple{1, 1.0, 2.74, 2.17}, std::tuple{8, 2.82, 4.29, 3.13}}) {
    double means[3] = {};
    for (uint64_t draw = 0; draw < kDraws; ++draw) {
      const Matrix x = OfRank(rank, kTokens, kWidth, draw);
      means[0] += RanksOf(x).stable / kDraws;
      means[1] += RanksOf(PerToken(x, draw, plain)).stable / kDraws;
      means[2] += RanksOf(PerToken(x, draw, gated)).stable / kDraws;
    }
    EXPECT_NEAR(means[0], before, 0.1);
    EXPECT_NEAR(means[1], after_plain, 0.1);
    EXPECT_NEAR(means[2], after_gated, 0.1);
  }
}

}  // namespace
}  // namespace elastor
