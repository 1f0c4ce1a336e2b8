#ifndef ELASTOR_TESTS_CORE_CUDA_MATMUL_TESTING_H_
#define ELASTOR_TESTS_CORE_CUDA_MATMUL_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "core/cuda/matmul.h"
#include "core/cuda/runtime.h"
#include "tests/core/cuda/device_arrays.h"

// Products with their operands on the host, and what they should give.

namespace elastor::cuda {

struct MatmulShape {
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  int64_t batch = 1;
  int64_t outer = 1;
  bool a_transposed = false;
  bool b_transposed = false;
  bool a_shared = false;  // one A for all problems
  bool b_shared = false;
  bool accumulate = false;
  bool bias = false;
  bool relu = false;
  int64_t padding = 0;           // elements between rows
  int64_t outer_gap = 0;         // elements between outer levels: nothing to merge
  bool outer_innermost = false;  // problem (o, b) is the (b * outer + o)-th in memory
  int64_t canonical_m = 0;
  int64_t canonical_problems = 0;
};

template <typename T>
struct HostMatrices {
  std::vector<T> values;
  Matrices<T> layout;  // without data

  int64_t At(int64_t o, int64_t b, int64_t i, int64_t j) const {
    const int64_t row = layout.transposed ? j : i;
    const int64_t column = layout.transposed ? i : j;
    return o * layout.outer_stride + b * layout.batch_stride + row * layout.row_stride + column;
  }
};

// Random in [-1, 1), between rows and matrices too.
template <typename T>
HostMatrices<T> RandomMatrices(const MatmulShape& shape, int64_t rows, int64_t columns,
                               bool transposed, bool shared, uint32_t seed) {
  HostMatrices<T> matrices;
  const int64_t stored_rows = transposed ? columns : rows;
  const int64_t row_stride = (transposed ? rows : columns) + shape.padding;
  const int64_t size = stored_rows * row_stride;
  Matrices<T>& layout = matrices.layout;
  layout.row_stride = row_stride;
  layout.transposed = transposed;
  if (!shared) {
    layout.batch_stride = shape.outer_innermost ? shape.outer * size : size;
    layout.outer_stride = shape.outer_innermost ? size : shape.batch * size + shape.outer_gap;
  }
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  matrices.values.resize(std::max<int64_t>(0, (shape.outer - 1) * layout.outer_stride) +
                         std::max<int64_t>(0, (shape.batch - 1) * layout.batch_stride) + size);
  for (T& value : matrices.values) value = T(uniform(generator));
  return matrices;
}

template <typename In, typename Out>
struct HostProduct {
  explicit HostProduct(const MatmulShape& shape)
      : shape(shape),
        a(RandomMatrices<In>(shape, shape.m, shape.k, shape.a_transposed, shape.a_shared, 1)),
        b(RandomMatrices<In>(shape, shape.k, shape.n, shape.b_transposed, shape.b_shared, 2)),
        c(RandomMatrices<Out>(shape, shape.m, shape.n, false, false, 3)),
        bias(shape.n) {
    std::mt19937 generator(4);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& value : bias) value = uniform(generator);
  }

  MatmulShape shape;
  HostMatrices<In> a;
  HostMatrices<In> b;
  HostMatrices<Out> c;  // before
  std::vector<float> bias;
};

template <typename T>
Matrices<const T> ConstMatrices(const Matrices<T>& layout, const T* data) {
  return {data, layout.row_stride, layout.batch_stride, layout.outer_stride, layout.transposed};
}

template <typename In, typename Out>
Product<In, Out> MakeProduct(const HostProduct<In, Out>& host, const In* a, const In* b,
                             const float* bias, Out* c) {
  const MatmulShape& shape = host.shape;
  Product<In, Out> product;
  product.m = shape.m;
  product.n = shape.n;
  product.k = shape.k;
  product.a = ConstMatrices(host.a.layout, a);
  product.b = ConstMatrices(host.b.layout, b);
  product.c = host.c.layout;
  product.c.data = c;
  product.batch = shape.batch;
  product.outer = shape.outer;
  product.accumulate = shape.accumulate;
  product.bias = shape.bias ? bias : nullptr;
  product.relu = shape.relu;
  product.canonical_m = shape.canonical_m;
  product.canonical_problems = shape.canonical_problems;
  return product;
}

// All of C's memory afterwards.
template <typename In, typename Out>
std::vector<Out> RunOnDevice(Precision precision, const HostProduct<In, Out>& host) {
  Stream stream;
  Matmul matmul(&stream, precision);
  const Buffer<In> a = Upload(stream, host.a.values);
  const Buffer<In> b = Upload(stream, host.b.values);
  const Buffer<Out> c = Upload(stream, host.c.values);
  const Buffer<float> bias = Upload(stream, host.bias);
  matmul.Run(MakeProduct<In, Out>(host, a.data(), b.data(), bias.data(), c.data()));
  return Download(stream, c);
}

// How far an element may be from the exact `value`, where the products' absolute values add up to
// `magnitude` and what else is added (bias, what was there) to `rest`.
// - Sums of k floats in any order are within k 2^-24 of the magnitude; tensor cores truncate when
//   they align addends, which two bits more allow for.
// - TF32 keeps 10 bits of mantissa: an operand is off by up to 2^-10 of itself.
// - BFloat16 operands are exact; a BFloat16 result is rounded by up to 2^-8 of itself. Results of
// an
//   H100 are as if cuBLAS also rounded the `product`, with its bias or before it, when it adds to
//   what was there (0: nothing was).
template <typename In, typename Out>
double Tolerance(Precision precision, int64_t k, double value, double product, double magnitude,
                 double rest) {
  double tolerance = (k + 2) * std::ldexp(magnitude + rest, -22);
  if (precision == Precision::kTf32 && std::is_same_v<In, float>) {
    tolerance += 2.01 * std::ldexp(magnitude, -10);
  }
  if (std::is_same_v<Out, BFloat16>) {
    tolerance += 1.01 * std::ldexp(std::abs(value) + std::abs(product), -8);
  }
  return tolerance;
}

// Every element of every C against sums in double; memory between rows and matrices is as before.
template <typename In, typename Out>
void ExpectProduct(Precision precision, const HostProduct<In, Out>& host,
                   const std::vector<Out>& result) {
  const MatmulShape& shape = host.shape;
  std::vector<Out> rest = result;
  for (int64_t o = 0; o < shape.outer; ++o) {
    for (int64_t b = 0; b < shape.batch; ++b) {
      for (int64_t i = 0; i < shape.m; ++i) {
        for (int64_t j = 0; j < shape.n; ++j) {
          const int64_t at = host.c.At(o, b, i, j);
          double sum = 0;
          double magnitude = 0;
          for (int64_t k = 0; k < shape.k; ++k) {
            const double term = double{static_cast<float>(host.a.values[host.a.At(o, b, i, k)])} *
                                static_cast<float>(host.b.values[host.b.At(o, b, k, j)]);
            sum += term;
            magnitude += std::abs(term);
          }
          const double before = shape.accumulate ? static_cast<float>(host.c.values[at]) : 0.0f;
          float bias = shape.bias ? host.bias[j] : 0.0f;
          if (std::is_same_v<Out, BFloat16>) bias = static_cast<float>(BFloat16(bias));
          const double value = before + sum + bias;
          const double expected = shape.relu ? std::max(value, 0.0) : value;
          const double tolerance = Tolerance<In, Out>(
              precision, shape.k, value, shape.accumulate ? std::abs(sum) + std::abs(bias) : 0,
              magnitude, std::abs(before) + std::abs(bias));
          const double error = std::abs(static_cast<float>(result[at]) - expected);
          ASSERT_LE(error, tolerance)
              << "C[" << o << ", " << b << "][" << i << ", " << j << "] is "
              << static_cast<float>(result[at]) << ", expected " << expected;
          rest[at] = host.c.values[at];
        }
      }
    }
  }
  for (size_t i = 0; i < rest.size(); ++i) {
    ASSERT_EQ(static_cast<float>(rest[i]), static_cast<float>(host.c.values[i]))
        << "written outside of C, at " << i;
  }
}

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_CORE_CUDA_MATMUL_TESTING_H_
