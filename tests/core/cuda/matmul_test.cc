#include "core/cuda/matmul.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "core/cuda/runtime.h"
#include "tests/core/cuda/device_arrays.h"
#include "tests/core/cuda/matmul_testing.h"

namespace elastor::cuda {
namespace {

template <typename In, typename Out>
void ExpectRight(Precision precision, const MatmulShape& shape) {
  const HostProduct<In, Out> host(shape);
  ExpectProduct(precision, host, RunOnDevice(precision, host));
}

// In every precision and type.
void ExpectRight(const MatmulShape& shape) {
  ExpectRight<float, float>(Precision::kFloat32, shape);
  ExpectRight<float, float>(Precision::kTf32, shape);
  ExpectRight<BFloat16, float>(Precision::kBFloat16, shape);
  ExpectRight<BFloat16, BFloat16>(Precision::kBFloat16, shape);
}

TEST(MatmulTest, AllTranspositionsAndStrides) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const int64_t padding : {0, 3, 16}) {
        SCOPED_TRACE(testing::Message() << a_transposed << b_transposed << " " << padding);
        MatmulShape shape{.m = 37, .n = 29, .k = 53};
        shape.a_transposed = a_transposed;
        shape.b_transposed = b_transposed;
        shape.padding = padding;
        ExpectRight(shape);
        shape.m = 64;
        shape.n = 32;
        shape.k = 128;
        ExpectRight(shape);
      }
    }
  }
}

TEST(MatmulTest, OneRowColumnOrProduct) {
  ExpectRight({.m = 1, .n = 40, .k = 64});
  ExpectRight({.m = 40, .n = 1, .k = 64});
  ExpectRight({.m = 40, .n = 24, .k = 1});
  ExpectRight({.m = 40, .n = 1, .k = 64, .b_transposed = true});
  ExpectRight({.m = 24, .n = 1, .k = 40, .a_transposed = true, .accumulate = true});
}

TEST(MatmulTest, BothLevelsOfBatches) {
  for (const int64_t outer : {1, 2, 5}) {
    for (const int64_t batch : {1, 3, 4}) {
      SCOPED_TRACE(testing::Message() << outer << " x " << batch);
      MatmulShape shape{.m = 16, .n = 24, .k = 32, .batch = batch, .outer = outer};
      ExpectRight(shape);
      shape.outer_gap = 40;
      ExpectRight(shape);
      shape.outer_gap = 0;
      shape.outer_innermost = true;
      ExpectRight(shape);
      shape.a_transposed = true;
      shape.accumulate = true;
      ExpectRight(shape);
    }
  }
}

TEST(MatmulTest, SharedOperands) {
  for (const bool a_shared : {false, true}) {
    for (const bool outer_innermost : {false, true}) {
      MatmulShape shape{.m = 16, .n = 24, .k = 32, .batch = 3, .outer = 2};
      shape.a_shared = a_shared;
      shape.b_shared = !a_shared;
      shape.outer_innermost = outer_innermost;
      ExpectRight(shape);
    }
  }
}

TEST(MatmulTest, MoreProblemsThanAGridHolds) {
  MatmulShape shape{.m = 2, .n = 4, .k = 8, .batch = 35000, .outer = 2};
  ExpectRight<float, float>(Precision::kFloat32, shape);
  shape.outer_gap = 8;
  ExpectRight<BFloat16, BFloat16>(Precision::kBFloat16, shape);
}

TEST(MatmulTest, BiasReluAndAccumulation) {
  for (const bool accumulate : {false, true}) {
    for (const bool relu : {false, true}) {
      MatmulShape shape{.m = 48, .n = 40, .k = 24};
      shape.bias = true;
      shape.relu = relu;
      shape.accumulate = accumulate;
      ExpectRight(shape);
      shape.n = 33;
      shape.b_transposed = true;
      ExpectRight(shape);
    }
  }
}

TEST(MatmulTest, BiasOfABFloat16ResultIsRounded) {
  HostProduct<BFloat16, BFloat16> host({.m = 3, .n = 64, .k = 16, .bias = true});
  for (BFloat16& value : host.a.values) value = BFloat16(0);
  const std::vector<BFloat16> result = RunOnDevice(Precision::kBFloat16, host);
  for (int64_t i = 0; i < 3 * 64; ++i) {
    EXPECT_EQ(result[i].bits, BFloat16(host.bias[i % 64]).bits);
  }
}

TEST(MatmulTest, NothingToDo) {
  Stream stream;
  Matmul matmul(&stream, Precision::kFloat32);
  const HostProduct<float, float> host({.m = 4, .n = 4, .k = 4});
  const Buffer<float> a = Upload(stream, host.a.values);
  const Buffer<float> c = Upload(stream, host.c.values);
  const auto product = MakeProduct<float, float>(host, a.data(), a.data(), nullptr, c.data());
  for (int i = 0; i < 3; ++i) {
    auto nothing = product;
    (i == 0 ? nothing.m : i == 1 ? nothing.batch : nothing.outer) = 0;
    matmul.Run(nothing);
  }
  EXPECT_EQ(Download(stream, c), host.c.values);
}

TEST(MatmulTest, CapturedInAGraph) {
  Stream stream;
  Matmul matmul(&stream, Precision::kBFloat16);
  HostProduct<BFloat16, BFloat16> host(
      {.m = 32, .n = 16, .k = 24, .batch = 1, .accumulate = true, .bias = true});
  HostProduct<BFloat16, BFloat16> other = host;
  for (BFloat16& value : other.a.values) value = BFloat16(-static_cast<float>(value));
  for (float& value : other.bias) value = 2 * value;
  const Buffer<BFloat16> a = Upload(stream, host.a.values);
  const Buffer<BFloat16> b = Upload(stream, host.b.values);
  const Buffer<BFloat16> c = Upload(stream, host.c.values);
  const Buffer<float> bias = Upload(stream, host.bias);
  const auto product =
      MakeProduct<BFloat16, BFloat16>(host, a.data(), b.data(), bias.data(), c.data());
  matmul.Run(product);
  Graph graph;
  graph.BeginCapture(stream);
  matmul.Run(product);
  graph.EndCapture(stream);
  // What the graph reads at its launch counts, not at its capture.
  for (const auto* now : {&host, &other}) {
    Copy(stream, a.data(), now->a.values.data(), a.size());
    Copy(stream, bias.data(), now->bias.data(), bias.size());
    Copy(stream, c.data(), now->c.values.data(), c.size());
    graph.Launch(stream);
    ExpectProduct(Precision::kBFloat16, *now, Download(stream, c));
  }
}

// --- bits do not depend on the share

template <typename T>
std::vector<uint32_t> BitsOf(const std::vector<T>& values) {
  std::vector<uint32_t> bits;
  for (const T value : values) bits.push_back(std::bit_cast<uint32_t>(static_cast<float>(value)));
  return bits;
}

// cuBLAS chooses algorithms by the sizes of a product; the emulation has one, which smaller
// products show.
int64_t OnDeviceOr(int64_t size, int64_t of_emulation) {
  const StatusOr<DeviceInfo> device = OpenDevice(0);
  return device.ok() && device->emulated ? of_emulation : size;
}

// C's rows computed in shares have the bits of all at once.
template <typename In, typename Out>
void ExpectRowsOfShares(Precision precision, MatmulShape shape) {
  shape.canonical_m = shape.m;
  const HostProduct<In, Out> host(shape);
  const std::vector<Out> whole = RunOnDevice(precision, host);
  ExpectProduct(precision, host, whole);
  Stream stream;
  Matmul matmul(&stream, precision);
  const Buffer<In> a = Upload(stream, host.a.values);
  const Buffer<In> b = Upload(stream, host.b.values);
  const Buffer<Out> c = Upload(stream, host.c.values);
  const Buffer<float> bias = Upload(stream, host.bias);
  const int64_t leaf = OnDeviceOr(256, 9);
  for (const int64_t share : {leaf, 4 * leaf, 8 * leaf}) {
    FillZero(stream, c.data(), c.size());
    for (int64_t row = 0; row < shape.m; row += share) {
      auto product = MakeProduct<In, Out>(host, a.data(), b.data(), bias.data(), c.data());
      product.m = share;
      product.a.data += row * product.a.row_stride;
      product.c.data += row * product.c.row_stride;
      matmul.Run(product);
    }
    EXPECT_EQ(BitsOf(Download(stream, c)), BitsOf(whole)) << "shares of " << share;
  }
}

// Calls of 1, 4, 8 and 16 leaves.
TEST(MatmulTest, BitsOfARowDoNotDependOnTheRowsOfTheCall) {
  // The third has a k for which algorithms like to split sums; the last ones are a model's head and
  // a vector so long that algorithms for vectors choose by it.
  const int64_t rows = OnDeviceOr(4096, 144);
  for (MatmulShape shape :
       {MatmulShape{.m = rows, .n = 64, .k = 104}, MatmulShape{.m = rows, .n = 39, .k = 26},
        MatmulShape{.m = rows, .n = 16, .k = 1024}, MatmulShape{.m = rows, .n = 1, .k = 390},
        MatmulShape{.m = 4 * rows, .n = 1, .k = 192}}) {
    ExpectRowsOfShares<float, float>(Precision::kFloat32, shape);
    ExpectRowsOfShares<float, float>(Precision::kTf32, shape);
    shape.bias = true;
    ExpectRowsOfShares<BFloat16, BFloat16>(Precision::kBFloat16, shape);
    shape.b_transposed = true;
    ExpectRowsOfShares<BFloat16, float>(Precision::kBFloat16, shape);
  }
}

// Problems computed in shares have the bits of all at once.
template <typename In, typename Out>
void ExpectProblemsOfShares(Precision precision, MatmulShape shape) {
  shape.canonical_problems = shape.batch * shape.outer;
  const HostProduct<In, Out> host(shape);
  const std::vector<Out> whole = RunOnDevice(precision, host);
  ExpectProduct(precision, host, whole);
  Stream stream;
  Matmul matmul(&stream, precision);
  const Buffer<In> a = Upload(stream, host.a.values);
  const Buffer<In> b = Upload(stream, host.b.values);
  const Buffer<Out> c = Upload(stream, host.c.values);
  for (const int64_t share : {1, 2, 4}) {
    FillZero(stream, c.data(), c.size());
    for (int64_t o = 0; o < shape.outer; o += share) {
      auto product = MakeProduct<In, Out>(host, a.data(), b.data(), nullptr, c.data());
      product.outer = share;
      product.a.data += o * product.a.outer_stride;
      product.b.data += o * product.b.outer_stride;
      product.c.data += o * product.c.outer_stride;
      matmul.Run(product);
    }
    EXPECT_EQ(BitsOf(Download(stream, c)), BitsOf(whole)) << "shares of " << share;
  }
}

// As weight gradients of 16 leaves are; the last of a model's head.
TEST(MatmulTest, BitsOfAProblemDoNotDependOnTheProblemsOfTheCall) {
  const int64_t rows = OnDeviceOr(256, 25);
  for (MatmulShape shape : {MatmulShape{.m = 104, .n = 40, .k = rows},
                            MatmulShape{.m = 104, .n = 40, .k = rows, .batch = 3},
                            MatmulShape{.m = 1, .n = 390, .k = rows}}) {
    shape.outer = 16;
    shape.a_transposed = true;
    for (const bool outer_innermost : {false, true}) {
      SCOPED_TRACE(testing::Message() << shape.m << " " << shape.batch << " " << outer_innermost);
      shape.outer_innermost = outer_innermost;
      ExpectProblemsOfShares<float, float>(Precision::kFloat32, shape);
      ExpectProblemsOfShares<float, float>(Precision::kTf32, shape);
      ExpectProblemsOfShares<BFloat16, float>(Precision::kBFloat16, shape);
    }
  }
}

TEST(MatmulTest, Twice) {
  const MatmulShape shape{.m = 512, .n = 128, .k = OnDeviceOr(2048, 64)};
  const HostProduct<float, float> host(shape);
  const std::vector<float> first = RunOnDevice(Precision::kTf32, host);
  EXPECT_EQ(first, RunOnDevice(Precision::kTf32, host));
}

}  // namespace
}  // namespace elastor::cuda
