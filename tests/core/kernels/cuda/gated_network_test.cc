#include "core/kernels/cuda/gated_network.h"

#include "core/kernels/matmul.h"
#include "tests/core/kernels/cuda/device_views.h"

namespace elastor::cuda {
namespace {

// Shared memory of an H100's or H200's blocks.
constexpr int kMostBytes = 227 << 10;

struct Case {
  GatedNetwork network;
  LeafShape leaves;
  bool underflow = false;  // p and h are barely normal, or flushed to a zero of their sign
};

// Inputs of a case, and what the CPU's kernels make of them: z and dx [row][token][feature],
// gradients [token][leaf][weight].
struct Expected {
  explicit Expected(const Case& c)
      : n(c.network),
        leaves(c.leaves),
        shape{leaves.rows(), n.tokens, n.width},
        x(RandomValues<float>(shape.size(), 1, 3)),
        dz(RandomValues<float>(shape.size(), 2)),
        up(RandomValues<float>(n.tokens * 2 * n.hidden * n.width, 3)),
        down(RandomValues<float>(n.tokens * n.width * n.hidden, 4)),
        residual(RandomValues<float>(n.tokens * n.width * n.width, 5)),
        z(shape.size()),
        dx(shape.size()),
        dup(up.size() * leaves.leaves),
        ddown(down.size() * leaves.leaves),
        dresidual(residual.size() * leaves.leaves) {
    if (c.underflow) {
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

class GatedNetworkTest : public DeviceOpTest<float> {
 protected:
  void ExpectTheCpusBits(const Case& c, Layout layout) {
    SCOPED_TRACE(testing::Message() << "D = " << c.network.width << ", H = " << c.network.hidden
                                    << ", leaves of " << c.leaves.leaf_rows);
    const Expected e(c);
    const GatedNetwork& n = c.network;
    ASSERT_TRUE(FitsMultiprocessor(n, kMostBytes));
    if (!FitsMultiprocessor(n)) {
      GTEST_SKIP() << "D = " << n.width << ", H = " << n.hidden << " do not fit this device";
    }
    const auto up = elastor::cuda::Upload(stream_, e.up);
    const auto down = elastor::cuda::Upload(stream_, e.down);
    const auto residual = elastor::cuda::Upload(stream_, e.residual);
    const GatedWeights weights = {up.data(), down.data(), residual.data()};
    const DeviceView<float> x(stream_, e.shape, layout, e.x);
    const DeviceView<float> dz(stream_, e.shape, layout, e.dz);
    DeviceView<float> z(stream_, e.shape, layout);
    DeviceView<float> dx(stream_, e.shape, layout);
    GatedNetworkForward(stream_, n, weights, x.read(), z.view());
    ExpectSameBits(z.Read(), e.z);
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
    GatedNetworkBackward(stream_, n, weights, c.leaves, x.read(), dz.read(), dx.view(),
                         {target(dup), target(ddown), target(dresidual)}, scratch.data());
    ExpectSameBits(dx.Read(), e.dx);
    ExpectSameBits(Download(stream_, dup), e.dup);
    ExpectSameBits(Download(stream_, ddown), e.ddown);
    ExpectSameBits(Download(stream_, dresidual), e.dresidual);
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
  ExpectTheCpusBits({{1, 5, 40, Activation::kRelu}, {2, 40}, true}, Layout::kRowMajor);
  // Without a row of padding to make +0 of a -0.
  ExpectTheCpusBits({{1, 5, 40, Activation::kRelu}, {1, 16}, true}, Layout::kRowMajor);
  // More rows than a block takes forward.
  ExpectTheCpusBits({{1, 5, 7, Activation::kIdentity}, {1, 600}}, Layout::kSpread);
}

TEST_F(GatedNetworkTest, BlocksThatShareALeaf) {
  // Two, four and eight of them, and two where blocks are enough.
  ExpectTheCpusBits({{3, 9, 11, Activation::kGelu}, {2, 130}}, Layout::kTokenMajor);
  ExpectTheCpusBits({{2, 26, 10, Activation::kSwish}, {1, 250}}, Layout::kRowMajor);
  ExpectTheCpusBits({{2, 5, 7, Activation::kRelu}, {2, 528}, true}, Layout::kSpread);
  ExpectTheCpusBits({{43, 2, 3, Activation::kTanh}, {2, 260}}, Layout::kTokenMajor);
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
}

}  // namespace
}  // namespace elastor::cuda
