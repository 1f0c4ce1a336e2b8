#include "core/ntk/kernel_tile.h"

#include <algorithm>
#include <cmath>

#include "core/base/log.h"
#include "core/kernels/elementwise.h"

namespace elastor {
namespace {

// Numbers of a row that are multiplied at once, so that what they are packed into stays in the
// cache.
constexpr int64_t kWidth = 1024;

}  // namespace

void KernelTile::Begin(const Range& rows_j, const Range& rows_i) {
  CHECK_LE(std::max(rows_j.size(), rows_i.size()), kNtkTile);
  rows_j_ = rows_j;
  rows_i_ = rows_i;
  std::ranges::fill(values_, 0.0);
}

void KernelTile::Gram(const double* at_j, const double* at_i, int64_t stride, int64_t width,
                      const Epilogue<double>& epilogue, Panels<double> y) {
  packed_.Pack(
      {{MatrixView<double>{at_i + rows_i_.begin * stride, rows_i_.size(), width, stride}}});
  const double* rows[kNtkTile];
  for (int64_t j = 0; j < rows_j_.size(); ++j) rows[j] = at_j + (rows_j_.begin + j) * stride;
  panels_.resize(PanelElements(kNtkTile, width));
  const Panels<double> x = {panels_.data(), rows_j_.size(), width, PanelStride(width)};
  RowsToPanels<double>(rows, x);
  MatMul<double>(packed_, {{x}}, y, epilogue);
}

void KernelTile::Add(std::span<const NtkFactor> factors, const double* all, int64_t stride) {
  const Panels<double> sum = View(values_.data());
  inputs_.resize(values_.size());
  for (const NtkFactor& factor : factors) {
    const double* const at = all + factor.offset;
    if (factor.in == 0) {
      for (int64_t begin = 0; begin < factor.out; begin += kWidth) {
        Epilogue<double> add;
        add.residual = sum;
        Gram(at + begin, at + begin, stride, std::min(kWidth, factor.out - begin), add, sum);
      }
      continue;
    }
    Epilogue<double> multiply_add;
    multiply_add.multiplier = View(inputs_.data());
    multiply_add.residual = sum;
    const double* const end = at + factor.size();
    for (const double* j = at; j < end; j += factor.in + factor.out) {
      for (const double* i = at; i < end; i += factor.in + factor.out) {
        Gram(j, i, stride, factor.in, {}, View(inputs_.data()));
        Gram(j + factor.in, i + factor.in, stride, factor.out, multiply_add, sum);
      }
    }
  }
}

void KernelTile::Add(const NtkTableGradients& gradients) {
  const int64_t width = gradients.width;
  const Panels<double> sum = View(values_.data());
  for (int64_t j = 0; j < rows_j_.size(); ++j) {
    const int64_t end_j = gradients.begin[rows_j_.begin + j + 1];
    for (int64_t i = 0; i < rows_i_.size(); ++i) {
      const int64_t end_i = gradients.begin[rows_i_.begin + i + 1];
      int64_t a = gradients.begin[rows_j_.begin + j];
      int64_t b = gradients.begin[rows_i_.begin + i];
      double total = 0;
      while (a < end_j && b < end_i) {
        const auto order = gradients.keys[a] <=> gradients.keys[b];
        if (order == 0) {
          for (int64_t c = 0; c < width; ++c) {
            total =
                std::fma(gradients.values[a * width + c], gradients.values[b * width + c], total);
          }
        }
        a += order <= 0;
        b += order >= 0;
      }
      sum.At(j, i) += total;
    }
  }
}

}  // namespace elastor
