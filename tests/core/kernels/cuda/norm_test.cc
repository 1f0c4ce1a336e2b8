#include "core/kernels/cuda/norm.h"

#include <algorithm>

#include "tests/core/kernels/cuda/device_views.h"

namespace elastor::cuda {
namespace {

// Sums of a warp, as the header has them: lane i takes features i, i + 32, ..., then by halves.
template <typename Add>
float WarpSum(int64_t width, Add add) {
  float lanes[32] = {};
  for (int64_t f = 0; f < width; ++f) add(f, lanes[f % 32]);
  for (int half = 16; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

struct Forward {
  std::vector<float> sum, y, normalized, scale;
};
struct Backward {
  std::vector<float> dx, dgain, dbias;
};

// Everything of one call on the host, [row][token][feature].
template <typename A>
struct NormCase {
  NormShape norm;
  LeafShape leaves;
  Shape shape;
  bool with_residual;
  std::vector<float> x, residual, dy, gain, bias;

  NormCase(NormKind kind, const LeafShape& leaves, int64_t tokens, int64_t width,
           bool with_residual)
      : norm{kind, width, 1e-5},
        leaves(leaves),
        shape{leaves.rows(), tokens, width},
        with_residual(with_residual),
        x(RandomValues<A>(shape.size(), 1, 3)),
        residual(RandomValues<A>(shape.size(), 2)),
        dy(RandomValues<A>(shape.size(), 3)),
        gain(RandomValues<float>(width, 4)),
        bias(RandomValues<float>(width, 5)) {}

  bool layer() const { return norm.kind == NormKind::kLayer; }
  int64_t runs() const { return shape.rows * shape.tokens; }

  Forward ExpectedForward() const {
    Forward out;
    const int64_t width = norm.width;
    const float share = 1.0f / static_cast<float>(width);
    for (int64_t run = 0; run < runs(); ++run) {
      std::vector<float> in(width);
      for (int64_t f = 0; f < width; ++f) {
        in[f] = x[run * width + f];
        if (with_residual) in[f] += residual[run * width + f];
      }
      in = Rounded<A>(in);
      const float mean =
          layer() ? WarpSum(width, [&](int64_t f, float& s) { s += in[f]; }) * share : 0;
      const float square_sum =
          WarpSum(width, [&](int64_t f, float& s) { s = std::fma(in[f] - mean, in[f] - mean, s); });
      const float scale = 1.0f / std::sqrt(std::fma(square_sum, share, 1e-5f));
      out.scale.push_back(scale);
      for (int64_t f = 0; f < width; ++f) {
        const float n = (in[f] - mean) * scale;
        out.sum.push_back(in[f]);
        out.normalized.push_back(n);
        out.y.push_back(layer() ? std::fma(n, gain[f], bias[f]) : n * gain[f]);
      }
    }
    out.sum = Rounded<A>(out.sum);
    out.normalized = Rounded<A>(out.normalized);
    out.y = Rounded<A>(out.y);
    return out;
  }

  Backward ExpectedBackward(const Forward& forward) const {
    Backward out;
    const int64_t width = norm.width;
    const float share = 1.0f / static_cast<float>(width);
    for (int64_t run = 0; run < runs(); ++run) {
      const float* const n = &forward.normalized[run * width];
      const auto scaled = [&](int64_t f) { return dy[run * width + f] * gain[f]; };
      const float along =
          WarpSum(width, [&](int64_t f, float& s) { s = std::fma(scaled(f), n[f], s); }) * share;
      const float mean =
          layer() ? WarpSum(width, [&](int64_t f, float& s) { s += scaled(f); }) * share : 0;
      for (int64_t f = 0; f < width; ++f) {
        float dx = std::fma(-n[f], along, scaled(f) - mean) * forward.scale[run];
        if (with_residual) dx += residual[run * width + f];
        out.dx.push_back(dx);
      }
    }
    out.dx = Rounded<A>(out.dx);
    for (int64_t l = 0; l < leaves.leaves; ++l) {
      for (int64_t f = 0; f < width; ++f) {
        float dgain = 0;
        float dbias = 0;
        for (int64_t begin = 0; begin < leaves.leaf_rows; begin += kSumRows) {
          const int64_t rows = std::min(kSumRows, leaves.leaf_rows - begin);
          const int64_t first = (l * leaves.leaf_rows + begin) * shape.tokens;
          float gain_chains[8] = {};
          float bias_chains[8] = {};
          for (int64_t r = 0; r < rows * shape.tokens; ++r) {
            const int64_t at = (first + r) * width + f;
            gain_chains[r % 8] = std::fma(dy[at], forward.normalized[at], gain_chains[r % 8]);
            bias_chains[r % 8] += dy[at];
          }
          for (int chain = 1; chain < 8; ++chain) {
            gain_chains[0] += gain_chains[chain];
            bias_chains[0] += bias_chains[chain];
          }
          dgain += gain_chains[0];
          dbias += bias_chains[0];
        }
        out.dgain.push_back(dgain);
        out.dbias.push_back(dbias);
      }
    }
    return out;
  }
};

template <typename A>
class NormTest : public DeviceOpTest<A> {
 protected:
  // The sum in x's place.
  Forward RunForward(const NormCase<A>& c, Layout layout) {
    Stream& stream = this->stream_;
    DeviceView<A> x(stream, c.shape, layout, c.x);
    const DeviceView<A> residual(stream, c.shape, Layout::kRowMajor, c.residual);
    DeviceView<A> y(stream, c.shape, layout);
    DeviceView<A> normalized(stream, c.shape, layout);
    const Buffer<float> gain = Upload(stream, c.gain);
    const Buffer<float> bias = Upload(stream, c.bias);
    const Buffer<float> scale(&stream, c.runs());
    NormForward<A>(stream, c.norm, x.read(),
                   c.with_residual ? residual.read() : Activations<const A>{}, x.view(),
                   gain.data(), c.layer() ? bias.data() : nullptr, y.view(), normalized.view(),
                   scale.data());
    return {x.Read(), y.Read(), normalized.Read(), Download(stream, scale)};
  }

  // dx in dy's place.
  Backward RunBackward(const NormCase<A>& c, const Forward& forward, Layout layout) {
    Stream& stream = this->stream_;
    const DeviceView<A> normalized(stream, c.shape, layout, forward.normalized);
    const DeviceView<A> residual(stream, c.shape, Layout::kRowMajor, c.residual);
    DeviceView<A> d(stream, c.shape, layout, c.dy);
    const Buffer<float> gain = Upload(stream, c.gain);
    const Buffer<float> scale = Upload(stream, forward.scale);
    const int64_t width = c.norm.width;
    const Buffer<float> dgain(&stream, c.leaves.leaves * width);
    const Buffer<float> dbias(&stream, c.leaves.leaves * width);
    const Buffer<float> scratch(&stream, 2 * ColumnSumScratch(c.leaves, width));
    NormBackward<A>(stream, c.norm, c.leaves, normalized.read(), scale.data(), gain.data(),
                    d.read(), c.with_residual ? residual.read() : Activations<const A>{}, d.view(),
                    dgain.data(), dbias.data(), width, scratch.data());
    return {d.Read(), Download(stream, dgain), Download(stream, dbias)};
  }

  void ExpectStatedOrder(const NormCase<A>& c, Layout layout) {
    SCOPED_TRACE(testing::Message()
                 << (c.layer() ? "layer" : "RMS") << " norm, " << c.leaves.leaves << " leaves of "
                 << c.leaves.leaf_rows << " rows, tokens " << c.shape.tokens << ", width "
                 << c.norm.width << ", layout " << static_cast<int>(layout));
    const Forward expected = c.ExpectedForward();
    const Forward forward = RunForward(c, layout);
    ExpectSameBits(forward.sum, expected.sum);
    ExpectSameBits(forward.scale, expected.scale);
    ExpectSameBits(forward.normalized, expected.normalized);
    ExpectSameBits(forward.y, expected.y);
    const Backward expected_back = c.ExpectedBackward(expected);
    const Backward backward = RunBackward(c, expected, layout);
    ExpectSameBits(backward.dx, expected_back.dx);
    ExpectSameBits(backward.dgain, expected_back.dgain);
    ExpectSameBits(backward.dbias, expected_back.dbias);
  }
};
TYPED_TEST_SUITE(NormTest, ElementTypes);

// All widths of registers, and beyond them.
TYPED_TEST(NormTest, StatedOrder) {
  for (const int64_t width : {1, 3, 26, 33, 64, 100, 200, 480, 676, 780, 1024, 1100}) {
    for (const NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
      const NormCase<TypeParam> c(kind, {2, 5}, 2, width, width % 2 == 0);
      for (const Layout layout : kLayouts) this->ExpectStatedOrder(c, layout);
    }
  }
}

// Several chunks, the last one short; chains of different length.
TYPED_TEST(NormTest, Chunks) {
  for (const LeafShape& leaves : {LeafShape{1, 1}, {3, 65}, {1, 200}}) {
    for (const int64_t tokens : {1, 5}) {
      this->ExpectStatedOrder({NormKind::kLayer, leaves, tokens, 26, true}, Layout::kTokenMajor);
    }
  }
}

// What a leaf gets does not depend on the leaves beside it; padding gives nothing.
TYPED_TEST(NormTest, LeavesOneByOne) {
  using A = TypeParam;
  const LeafShape leaves{4, 70};
  NormCase<A> all(NormKind::kLayer, leaves, 3, 33, false);
  const int64_t leaf_size = leaves.leaf_rows * 3 * 33;
  const int64_t padding = 20 * 3 * 33;  // the last rows of leaf 1
  std::fill(all.dy.begin() + 2 * leaf_size - padding, all.dy.begin() + 2 * leaf_size, 0.0f);
  const Forward forward = all.ExpectedForward();
  const Backward together = this->RunBackward(all, forward, Layout::kTokenMajor);
  for (int64_t i = 2 * leaf_size - padding; i < 2 * leaf_size; ++i) ASSERT_EQ(together.dx[i], 0);
  const auto part = [](const std::vector<float>& v, int64_t leaf, int64_t size) {
    return std::vector<float>(v.begin() + leaf * size, v.begin() + (leaf + 1) * size);
  };
  for (int64_t l = 0; l < leaves.leaves; ++l) {
    NormCase<A> one(NormKind::kLayer, {1, leaves.leaf_rows}, 3, 33, false);
    one.dy = part(all.dy, l, leaf_size);
    Forward saved;
    saved.normalized = part(forward.normalized, l, leaf_size);
    saved.scale = part(forward.scale, l, leaves.leaf_rows * 3);
    const Backward alone = this->RunBackward(one, saved, Layout::kRowMajor);
    ExpectSameBits(alone.dx, part(together.dx, l, leaf_size));
    ExpectSameBits(alone.dgain, part(together.dgain, l, 33));
    ExpectSameBits(alone.dbias, part(together.dbias, l, 33));
  }
}

// Against the CPU's op in double: the formula is the same, only the order of sums differs. Results
// are below 8 in size, where a rounding is up to 2^-22: eight of them. Seen: two.
TEST(NormAgainstCpuTest, CloseToDouble) {
  constexpr double kTolerance = 2e-6;
  SetCanonicalFloatingPoint();
  Stream stream;
  for (const NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
    const NormCase<float> c(kind, {1, 16}, 1, 780, false);
    const Forward forward = c.ExpectedForward();
    const Backward backward = c.ExpectedBackward(forward);
    const int64_t rows = c.shape.rows;
    const int64_t width = c.norm.width;
    std::vector<double> memory[6];
    Panels<double> panels[6];
    for (int i = 0; i < 6; ++i) {
      memory[i].resize(PanelElements(rows, width));
      panels[i] = {memory[i].data(), rows, width, PanelStride(width)};
    }
    const auto& [x, y, normalized, scale, dy, dx] = panels;
    for (int64_t i = 0; i < rows * width; ++i) {
      x.At(i / width, i % width) = c.x[i];
      dy.At(i / width, i % width) = c.dy[i];
    }
    const std::vector<double> gain(c.gain.begin(), c.gain.end());
    const std::vector<double> bias(c.bias.begin(), c.bias.end());
    std::vector<double> dgain(width);
    std::vector<double> dbias(width);
    const Panels<double> scales = scale.Slice(0, 1);
    elastor::NormForward<double>(c.norm, x, gain.data(), c.layer() ? bias.data() : nullptr, y,
                                 normalized, scales);
    elastor::NormBackward<double>(c.norm, normalized, scales, gain.data(), dy, {}, dx, dgain.data(),
                                  dbias.data(), Store::kOverwrite);
    for (int64_t i = 0; i < rows * width; ++i) {
      ASSERT_NEAR(forward.y[i], y.At(i / width, i % width), kTolerance);
      ASSERT_NEAR(backward.dx[i], dx.At(i / width, i % width), kTolerance);
    }
    for (int64_t f = 0; f < width; ++f) {
      ASSERT_NEAR(backward.dgain[f], dgain[f], kTolerance);
      ASSERT_NEAR(backward.dbias[f], dbias[f], kTolerance);
    }
  }
}

}  // namespace
}  // namespace elastor::cuda
