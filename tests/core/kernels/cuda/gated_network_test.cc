#include "core/kernels/cuda/gated_network.h"

#include <cmath>
#include <string>
#include <type_traits>

#include "core/kernels/matmul.h"
#include "tests/core/kernels/cuda/device_views.h"

namespace elastor::cuda {
namespace {

// Shared memory of an H100's or H200's blocks.
constexpr int kMostBytes = 227 << 10;

enum class Numbers {
  kAny,
  kBarelyNormal,  // p and h, or flushed to a zero of their sign
  kIntegers,  // so small that all of it is exact in 8 bits of mantissa but z, dx and the gradients
};

struct Case {
  GatedNetwork network;
  LeafShape leaves;
  Numbers numbers = Numbers::kAny;
};

// Numbers of the case's kind that A holds.
template <typename A>
std::vector<float> Draw(const Case& c, int64_t count, uint32_t seed, float scale = 1) {
  std::vector<float> values = RandomValues<A>(count, seed, scale);
  if (c.numbers != Numbers::kIntegers) return values;
  for (float& value : values) value = std::trunc(1.2f * value);  // of six numbers one is not 0
  return values;
}

// Inputs of a case, and what the CPU's kernels make of them: z and dx [row][token][feature],
// gradients [token][leaf][weight].
template <typename A>
struct Expected {
  explicit Expected(const Case& c)
      : n(c.network),
        leaves(c.leaves),
        shape{leaves.rows(), n.tokens, n.width},
        x(Draw<A>(c, shape.size(), 1, 3)),
        dz(Draw<A>(c, shape.size(), 2)),
        up(Draw<A>(c, n.tokens * 2 * n.hidden * n.width, 3)),
        down(Draw<A>(c, n.tokens * n.width * n.hidden, 4)),
        residual(Draw<A>(c, n.tokens * n.width * n.width, 5)),
        z(shape.size()),
        dx(shape.size()),
        dup(up.size() * leaves.leaves),
        ddown(down.size() * leaves.leaves),
        dresidual(residual.size() * leaves.leaves) {
    if (c.numbers == Numbers::kBarelyNormal) {
      const auto half = static_cast<size_t>(n.hidden * n.width);
      for (size_t i = 0; i < up.size(); ++i) {
        if (i / half % 2 == 0) up[i] *= 2e-38f;
      }
    }
    for (int64_t token = 0; token < n.tokens; ++token) {
      for (int64_t leaf = 0; leaf < leaves.leaves; ++leaf) Compute(token, leaf);
    }
  }

  void Compute(int64_t token, int64_t leaf) {
    const int64_t d = n.width;
    const int64_t h = n.hidden;
    const auto w1 = MatrixView<float>::RowMajor(&up[token * 2 * h * d], h, d);
    const auto w2 = MatrixView<float>::RowMajor(w1.data + h * d, h, d);
    const auto w3 = MatrixView<float>::RowMajor(&down[token * d * h], d, h);
    const auto wr = MatrixView<float>::RowMajor(&residual[token * d * d], d, d);
    PackedMatrix<float> packed_up, packed_down, packed_down_back, packed_back;
    packed_up.PackPair(w1, w2);
    packed_down.Pack({{w3, wr}});
    packed_down_back.Pack({{w3.Transposed()}});
    packed_back.Pack({{w1.Transposed(), w2.Transposed(), wr.Transposed()}});

    HostPanels in = Of(x, token, leaf);
    HostPanels dout = Of(dz, token, leaf);
    HostPanels hidden(leaves.leaf_rows, h), factors(leaves.leaf_rows, 2 * h);
    HostPanels out(leaves.leaf_rows, d), din(leaves.leaf_rows, d);
    const Panels<float> dp = factors.view().Slice(0, h);
    const Panels<float> dq = factors.view().Slice(h, h);
    GatedUpProjection<float>(packed_up, in.read(), nullptr, nullptr, n.activation, hidden.view(),
                             dp, dq);
    MatMul<float>(packed_down, {{hidden.read(), in.read()}}, out.view(), {});
    Epilogue<float> gate;
    gate.multiplier = dp;
    gate.second_output = dq;
    gate.second_multiplier = dq;
    MatMul<float>(packed_down_back, {{dout.read()}}, dp, gate);
    MatMul<float>(packed_back, {{factors.read(), dout.read()}}, din.view(), {});
    Keep(out.Read(), token, leaf, &z);
    Keep(din.Read(), token, leaf, &dx);

    const int64_t problem = token * leaves.leaves + leaf;
    WeightGradient<float>(factors.read(), in.read(), &dup[problem * 2 * h * d], d,
                          Store::kOverwrite);
    WeightGradient<float>(dout.read(), hidden.read(), &ddown[problem * d * h], h,
                          Store::kOverwrite);
    WeightGradient<float>(dout.read(), in.read(), &dresidual[problem * d * d], d,
                          Store::kOverwrite);
  }

  int64_t First(int64_t token, int64_t leaf, int64_t row) const {
    return ((leaf * leaves.leaf_rows + row) * n.tokens + token) * n.width;
  }
  // A token of a leaf's rows.
  HostPanels Of(const std::vector<float>& from, int64_t token, int64_t leaf) const {
    std::vector<float> values;
    for (int64_t row = 0; row < leaves.leaf_rows; ++row) {
      const auto first = from.begin() + First(token, leaf, row);
      values.insert(values.end(), first, first + n.width);
    }
    return HostPanels(leaves.leaf_rows, n.width, values);
  }
  void Keep(const std::vector<float>& values, int64_t token, int64_t leaf,
            std::vector<float>* to) const {
    for (int64_t row = 0; row < leaves.leaf_rows; ++row) {
      std::copy_n(values.begin() + row * n.width, n.width, to->begin() + First(token, leaf, row));
    }
  }

  GatedNetwork n;
  LeafShape leaves;
  Shape shape;
  std::vector<float> x, dz, up, down, residual, z, dx, dup, ddown, dresidual;
};

// What the device's kernels make of a case, in Expected's order.
struct Computed {
  std::vector<float> z, dx, dup, ddown, dresidual;
};

class GatedNetworkTest : public DeviceOpTest<float> {
 protected:
  // canonical_leaves 0: the case's.
  template <typename A>
  Computed Compute(const Case& c, const Expected<A>& e, Layout layout,
                   int64_t canonical_leaves = 0) {
    const GatedNetwork& n = c.network;
    const auto up = Weights<A>(e.up);
    const auto down = Weights<A>(e.down);
    const auto residual = Weights<A>(e.residual);
    const GatedWeights<A> weights = {up.data(), down.data(), residual.data()};
    const DeviceView<A> x(stream_, e.shape, layout, e.x);
    const DeviceView<A> dz(stream_, e.shape, layout, e.dz);
    DeviceView<A> z(stream_, e.shape, layout);
    DeviceView<A> dx(stream_, e.shape, layout);
    GatedNetworkForward<A>(stream_, n, weights, x.read(), z.view());
    const auto sized = [&](const std::vector<float>& values) {
      return Buffer<float>(&stream_, static_cast<int64_t>(values.size()));
    };
    const auto target = [&](const Buffer<float>& buffer) -> LeafTarget {
      const int64_t of_token = buffer.size() / n.tokens;
      return {buffer.data(), of_token, of_token / c.leaves.leaves};
    };
    Buffer<float> dup = sized(e.dup);
    Buffer<float> ddown = sized(e.ddown);
    Buffer<float> dresidual = sized(e.dresidual);
    Buffer<float> scratch(&stream_, GatedScratchFloats(n));
    GatedNetworkBackward<A>(stream_, n, weights, c.leaves,
                            canonical_leaves > 0 ? canonical_leaves : c.leaves.leaves, x.read(),
                            dz.read(), dx.view(), {target(dup), target(ddown), target(dresidual)},
                            scratch.data());
    return {z.Read(), dx.Read(), Download(stream_, dup), Download(stream_, ddown),
            Download(stream_, dresidual)};
  }

  void ExpectTheCpusBits(const Case& c, Layout layout) {
    SCOPED_TRACE(Name(c));
    ASSERT_TRUE(FitsMultiprocessor(c.network, kMostBytes));
    if (!FitsMultiprocessor(c.network)) GTEST_SKIP() << Name(c) << " does not fit this device";
    const Expected<float> e(c);
    const Computed computed = Compute<float>(c, e, layout);
    ExpectSameBits(computed.z, e.z);
    ExpectSameBits(computed.dx, e.dx);
    ExpectSameBits(computed.dup, e.dup);
    ExpectSameBits(computed.ddown, e.ddown);
    ExpectSameBits(computed.dresidual, e.dresidual);
  }

  // compare(computed, expected) of z, dx and each gradient, with tensor cores.
  template <typename A, typename Compare>
  void ByTensorCores(Case c, Layout layout, const Compare& compare) {
    c.network.precision = std::is_same_v<A, float> ? Precision::kTf32 : Precision::kBFloat16;
    SCOPED_TRACE(Name(c) + (std::is_same_v<A, float> ? ", TF32" : ", BFLOAT16"));
    ASSERT_TRUE(FitsMultiprocessor(c.network, kMostBytes));
    if (!FitsMultiprocessor(c.network)) GTEST_SKIP() << Name(c) << " does not fit this device";
    const Expected<A> e(c);
    const Computed computed = Compute<A>(c, e, layout);
    compare("z", computed.z, Rounded<A>(e.z));
    compare("dx", computed.dx, Rounded<A>(e.dx));
    compare("dW1, dW2", computed.dup, e.dup);
    compare("dW3", computed.ddown, e.ddown);
    compare("dWr", computed.dresidual, e.dresidual);
  }

  // Where every product and sum is exact, their order does not matter.
  template <typename A>
  void ExpectExact(Case c, Layout layout) {
    c.numbers = Numbers::kIntegers;
    ByTensorCores<A>(c, layout,
                     [](const char* name, const std::vector<float>& computed,
                        const std::vector<float>& expected) {
                       ASSERT_EQ(computed.size(), expected.size());
                       int64_t others = 0;
                       for (size_t i = 0; i < expected.size(); ++i) {
                         ASSERT_EQ(computed[i], expected[i]) << name << ", element " << i;
                         others += expected[i] != 0;
                       }
                       EXPECT_GT(others, 0) << name;
                     });
  }
  template <typename A>
  void ExpectClose(const Case& c, Layout layout, double tolerance) {
    ByTensorCores<A>(c, layout,
                     [&](const char* name, const std::vector<float>& computed,
                         const std::vector<float>& expected) {
                       ASSERT_EQ(computed.size(), expected.size());
                       double square = 0;
                       double off = 0;
                       for (size_t i = 0; i < expected.size(); ++i) {
                         square += double{expected[i]} * expected[i];
                         off += std::pow(double{computed[i]} - expected[i], 2);
                       }
                       EXPECT_LT(std::sqrt(off / square), tolerance) << name;
                       // And not in float; in BFLOAT16 all factors of dWr are exact.
                       if (std::is_same_v<A, float> || std::string(name) != "dWr") {
                         EXPECT_GT(std::sqrt(off / square), tolerance / 100) << name;
                       }
                     });
  }

 private:
  static std::string Name(const Case& c) {
    return "D = " + std::to_string(c.network.width) + ", H = " + std::to_string(c.network.hidden) +
           ", leaves of " + std::to_string(c.leaves.leaf_rows);
  }
  template <typename A>
  Buffer<A> Weights(const std::vector<float>& values) {
    return elastor::cuda::Upload(stream_, std::vector<A>(values.begin(), values.end()));
  }
};

TEST_F(GatedNetworkTest, TheCpusBits) {
  // The Criteo model's widths; leaves that end within a chain, with one, and with the rows that are
  // computed at once.
  ExpectTheCpusBits({{2, 26, 78, Activation::kGelu}, {2, 65}}, Layout::kTokenMajor);
  ExpectTheCpusBits({{1, 26, 78, Activation::kSwish}, {3, 1}}, Layout::kRowMajor);
  ExpectTheCpusBits({{3, 10, 20, Activation::kGelu}, {1, 64}}, Layout::kSpread);
  ExpectTheCpusBits({{2, 32, 72, Activation::kRelu}, {2, 37}}, Layout::kTokenMajor);
  ExpectTheCpusBits({{2, 28, 80, Activation::kTanh}, {2, 16}}, Layout::kRowMajor);
  ExpectTheCpusBits({{4, 1, 3, Activation::kSigmoid}, {2, 5}}, Layout::kRowMajor);
  ExpectTheCpusBits({{1, 5, 40, Activation::kRelu}, {2, 40}, Numbers::kBarelyNormal},
                    Layout::kRowMajor);
  // Without a row of padding to make +0 of a -0.
  ExpectTheCpusBits({{1, 5, 40, Activation::kRelu}, {1, 16}, Numbers::kBarelyNormal},
                    Layout::kRowMajor);
  // More rows than a block takes forward.
  ExpectTheCpusBits({{1, 5, 7, Activation::kIdentity}, {1, 600}}, Layout::kSpread);
}

TEST_F(GatedNetworkTest, BlocksThatShareALeaf) {
  // Two, four and eight of them, and two where blocks are enough.
  ExpectTheCpusBits({{3, 9, 11, Activation::kGelu}, {2, 130}}, Layout::kTokenMajor);
  ExpectTheCpusBits({{2, 26, 10, Activation::kSwish}, {1, 250}}, Layout::kRowMajor);
  ExpectTheCpusBits({{2, 5, 7, Activation::kRelu}, {2, 528}, Numbers::kBarelyNormal},
                    Layout::kSpread);
  ExpectTheCpusBits({{43, 2, 3, Activation::kTanh}, {2, 260}}, Layout::kTokenMajor);
}

// Widths and hidden units that fill fragments or do not; leaves that end within a fragment, with
// one and with the rows that are computed at once; one, two and four parts; more rows than a block
// has forward.
TEST_F(GatedNetworkTest, TensorCoresAreExactWhereAllIs) {
  const auto expect = [&](const Case& c, Layout layout) {
    ExpectExact<float>(c, layout);
    ExpectExact<BFloat16>(c, layout);
  };
  expect({{2, 26, 78, Activation::kIdentity}, {2, 65}}, Layout::kTokenMajor);
  expect({{1, 16, 80, Activation::kRelu}, {3, 16}}, Layout::kRowMajor);
  expect({{3, 5, 7, Activation::kIdentity}, {1, 128}}, Layout::kSpread);
  expect({{1, 17, 33, Activation::kRelu}, {2, 1}}, Layout::kRowMajor);
  expect({{2, 32, 72, Activation::kRelu}, {1, 131}}, Layout::kSpread);
  expect({{3, 3, 4, Activation::kIdentity}, {2, 300}}, Layout::kTokenMajor);
  expect({{3, 9, 11, Activation::kIdentity}, {2, 530}}, Layout::kRowMajor);
  expect({{1, 5, 7, Activation::kIdentity}, {1, 1060}}, Layout::kRowMajor);
}

TEST_F(GatedNetworkTest, TensorCoresRound) {
  const Case criteo = {{2, 26, 78, Activation::kGelu}, {2, 100}};
  const Case small = {{2, 13, 40, Activation::kSwish}, {1, 70}};
  for (const Case& c : {criteo, small}) {
    ExpectClose<float>(c, Layout::kTokenMajor, 1e-3);
    ExpectClose<BFloat16>(c, Layout::kTokenMajor, 8e-3);
  }
}

// A row's z and dx and a leaf's gradients do not depend on what else is computed: the last leaf of
// three, and by itself, of a job of so many that a leaf is not cut into parts.
TEST_F(GatedNetworkTest, TensorCoresBitsOfALeaf) {
  const auto check = [&]<typename A>(A, Precision precision) {
    constexpr int64_t kTokens = 2;
    constexpr int64_t kJob = 65;
    const Case whole = {{kTokens, 5, 6, Activation::kGelu, precision}, {3, 260}};
    if (!FitsMultiprocessor(whole.network)) GTEST_SKIP() << "does not fit this device";
    const Expected<A> e(whole);
    const Computed all = Compute<A>(whole, e, Layout::kRowMajor, kJob);
    Case last = whole;
    last.leaves.leaves = 1;
    Expected<A> of_last(last);
    const int64_t values = of_last.shape.size();
    std::copy(e.x.end() - values, e.x.end(), of_last.x.begin());
    std::copy(e.dz.end() - values, e.dz.end(), of_last.dz.begin());
    const Computed alone = Compute<A>(last, of_last, Layout::kRowMajor, kJob);
    const auto end_of = [&](const std::vector<float>& from) {
      return std::vector<float>(from.end() - values, from.end());
    };
    ExpectSameBits(alone.z, end_of(all.z));
    ExpectSameBits(alone.dx, end_of(all.dx));
    const auto leaf_of = [&](const std::vector<float>& from) {
      const auto size = static_cast<int64_t>(from.size()) / (kTokens * 3);
      std::vector<float> found;
      for (int64_t token = 0; token < kTokens; ++token) {
        const auto first = from.begin() + (3 * token + 2) * size;
        found.insert(found.end(), first, first + size);
      }
      return found;
    };
    ExpectSameBits(alone.dup, leaf_of(all.dup));
    ExpectSameBits(alone.ddown, leaf_of(all.ddown));
    ExpectSameBits(alone.dresidual, leaf_of(all.dresidual));
    // Were it all of the job, it would be.
    EXPECT_NE(Compute<A>(last, of_last, Layout::kRowMajor).dup, alone.dup);
  };
  check(float{}, Precision::kTf32);
  check(BFloat16{}, Precision::kBFloat16);
}

// What is no number in a row changes no other row.
TEST_F(GatedNetworkTest, TensorCoresKeepRowsApart) {
  const Case c = {{1, 13, 20, Activation::kGelu, Precision::kBFloat16}, {1, 150}};
  if (!FitsMultiprocessor(c.network)) GTEST_SKIP() << "does not fit this device";
  Expected<BFloat16> e(c);
  const Computed clean = Compute<BFloat16>(c, e, Layout::kRowMajor);
  constexpr int64_t kRow = 20;
  e.x[kRow * 13 + 3] = NAN;
  e.dz[(kRow + 1) * 13] = INFINITY;
  Computed struck = Compute<BFloat16>(c, e, Layout::kRowMajor);
  EXPECT_TRUE(std::isnan(struck.z[kRow * 13]));
  EXPECT_TRUE(std::isnan(struck.dx[kRow * 13]));
  EXPECT_FALSE(std::isfinite(struck.dx[(kRow + 1) * 13]));
  const auto restore = [&](std::vector<float>* values, const std::vector<float>& from) {
    std::copy_n(from.begin() + kRow * 13, 2 * 13, values->begin() + kRow * 13);
  };
  restore(&struck.z, clean.z);
  restore(&struck.dx, clean.dx);
  ExpectSameBits(struck.z, clean.z);
  ExpectSameBits(struck.dx, clean.dx);
}

TEST_F(GatedNetworkTest, WhatFits) {
  EXPECT_FALSE(FitsMultiprocessor({1, 33, 30}, kMostBytes));
  EXPECT_FALSE(FitsMultiprocessor({1, 16, 97}, kMostBytes));
  // More tiles of gradients than threads.
  EXPECT_TRUE(FitsMultiprocessor({1, 32, 72}, kMostBytes));
  EXPECT_FALSE(FitsMultiprocessor({1, 32, 73}, kMostBytes));
  // GPUs of 8.6 and 8.9 give a block 99 KiB.
  EXPECT_TRUE(FitsMultiprocessor({1, 26, 78}, 107 << 10));
  EXPECT_FALSE(FitsMultiprocessor({1, 26, 78}, 99 << 10));
  EXPECT_TRUE(FitsMultiprocessor({1, 16, 48}, 99 << 10));
  const auto by = [](Precision precision) {
    return GatedNetwork{1, 26, 78, Activation::kGelu, precision};
  };
  EXPECT_TRUE(FitsMultiprocessor(by(Precision::kTf32), 195 << 10));
  EXPECT_FALSE(FitsMultiprocessor(by(Precision::kTf32), 163 << 10));  // an A100's
  EXPECT_TRUE(FitsMultiprocessor(by(Precision::kBFloat16), 102 << 10));
  EXPECT_FALSE(FitsMultiprocessor(by(Precision::kBFloat16), 99 << 10));
  // The largest of all.
  EXPECT_TRUE(FitsMultiprocessor({1, 32, 96, Activation::kGelu, Precision::kTf32}, kMostBytes));
  EXPECT_FALSE(FitsMultiprocessor({1, 33, 30, Activation::kGelu, Precision::kTf32}, kMostBytes));
  EXPECT_FALSE(FitsMultiprocessor({1, 16, 97, Activation::kGelu, Precision::kTf32}, kMostBytes));
}

}  // namespace
}  // namespace elastor::cuda
