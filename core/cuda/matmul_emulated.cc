#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/cuda/emulation/queue.h"
#include "core/cuda/matmul.h"
#include "core/cuda/matmul_checks.h"

// Matrix products of the emulation: plain loops when the stream comes to them. Sums are one chain
// of fused multiply-adds, ascending in k.

namespace elastor::cuda {

struct Matmul::State {
  Stream* stream = nullptr;
  Precision precision = Precision::kFloat32;
};

namespace {

// What the multipliers see of a float: 10 bits of mantissa in TF32.
float Operand(float value, Precision precision) {
  if (precision != Precision::kTf32) return value;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffffe000u);
}

float Operand(BFloat16 value, Precision) { return static_cast<float>(value); }

// matrix (o, b) as floats [rows, columns], packed.
template <typename In>
std::vector<float> Pack(const Matrices<const In>& matrices, int64_t o, int64_t b, int64_t rows,
                        int64_t columns, Precision precision) {
  const In* data = matrices.data + o * matrices.outer_stride + b * matrices.batch_stride;
  const int64_t row_step = matrices.transposed ? 1 : matrices.row_stride;
  const int64_t column_step = matrices.transposed ? matrices.row_stride : 1;
  std::vector<float> packed(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      packed[i * columns + j] = Operand(data[i * row_step + j * column_step], precision);
    }
  }
  return packed;
}

// c[0..n) = sums, + what was there, + bias, rectified.
template <typename In, typename Out>
void Store(const Product<In, Out>& product, const std::vector<float>& sums, Out* c) {
  for (int64_t j = 0; j < product.n; ++j) {
    float value = sums[j];
    if (product.accumulate) value += static_cast<float>(c[j]);
    if (product.bias != nullptr) {
      const float bias = product.bias[j];
      value += std::is_same_v<Out, BFloat16> ? static_cast<float>(BFloat16(bias)) : bias;
    }
    if (product.relu) value = value > 0 ? value : 0;
    c[j] = Out(value);
  }
}

template <typename In, typename Out>
void Multiply(const Product<In, Out>& product, Precision precision, int64_t o, int64_t b) {
  const std::vector<float> left = Pack(product.a, o, b, product.m, product.k, precision);
  const std::vector<float> right = Pack(product.b, o, b, product.k, product.n, precision);
  std::vector<float> sums(product.n);
  for (int64_t i = 0; i < product.m; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (int64_t k = 0; k < product.k; ++k) {
      const float factor = left[i * product.k + k];
      const float* row = &right[k * product.n];
      for (int64_t j = 0; j < product.n; ++j) sums[j] = std::fma(factor, row[j], sums[j]);
    }
    Store(product, sums,
          product.c.data + o * product.c.outer_stride + b * product.c.batch_stride +
              i * product.c.row_stride);
  }
}

}  // namespace

// Every SumOrder is the one chain.
Matmul::Matmul(Stream* stream, Precision precision, SumOrder)
    : state_(std::make_unique<State>(State{stream, precision})) {}

Matmul::~Matmul() = default;

template <typename In, typename Out>
void Matmul::Run(const Product<In, Out>& product) {
  if (!CheckProduct(product)) return;
  emulation::CheckReachable(product.a.data);
  emulation::CheckReachable(product.b.data);
  emulation::CheckReachable(product.c.data);
  emulation::CheckReachable(product.bias);
  emulation::Enqueue(*state_->stream, [product, precision = state_->precision] {
    for (int64_t o = 0; o < product.outer; ++o) {
      for (int64_t b = 0; b < product.batch; ++b) Multiply(product, precision, o, b);
    }
  });
}

template void Matmul::Run(const Product<float, float>&);
template void Matmul::Run(const Product<BFloat16, BFloat16>&);
template void Matmul::Run(const Product<BFloat16, float>&);

}  // namespace elastor::cuda
