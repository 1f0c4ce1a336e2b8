#include "core/spectrum/low_rank.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/log.h"

namespace elastor {
namespace {

// Convergence is quadratic: a handful of sweeps suffices. Not-a-number never converges.
constexpr int kMostSweeps = 60;

double Dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

LowRank::LowRank(int64_t tokens, int64_t width)
    : tokens_(tokens),
      width_(width),
      short_side_(std::min(tokens, width)),
      long_side_(std::max(tokens, width)),
      products_(short_side_ * long_side_),
      vectors_(short_side_ * short_side_),
      order_(short_side_) {}

void LowRank::Decompose(std::span<const double> x) {
  CHECK_EQ(static_cast<int64_t>(x.size()), tokens_ * width_);
  const bool wide = width_ > tokens_;
  for (int64_t i = 0; i < short_side_; ++i) {
    for (int64_t j = 0; j < long_side_; ++j) {
      products_[i * long_side_ + j] = wide ? x[i * width_ + j] : x[j * width_ + i];
    }
  }
  std::ranges::fill(vectors_, 0);
  for (int64_t i = 0; i < short_side_; ++i) vectors_[i * (short_side_ + 1)] = 1;
  bool rotated = true;
  for (int sweep = 0; sweep < kMostSweeps && rotated; ++sweep) {
    rotated = false;
    for (int64_t p = 0; p < short_side_; ++p) {
      for (int64_t q = p + 1; q < short_side_; ++q) rotated = Rotate(p, q) || rotated;
    }
  }
  std::vector<double> squares(short_side_);
  for (int64_t i = 0; i < short_side_; ++i) {
    const auto column = std::span(products_).subspan(i * long_side_, long_side_);
    squares[i] = Dot(column, column);
  }
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::stable_sort(order_, [&](int64_t a, int64_t b) { return squares[a] > squares[b]; });
}

bool LowRank::Rotate(int64_t p, int64_t q) {
  const auto columns = [&](std::vector<double>& of, int64_t size) {
    return std::pair(std::span(of).subspan(p * size, size), std::span(of).subspan(q * size, size));
  };
  const auto [a, b] = columns(products_, long_side_);
  const double aa = Dot(a, a), bb = Dot(b, b), ab = Dot(a, b);
  if (std::abs(ab) <= std::numeric_limits<double>::epsilon() * std::sqrt(aa * bb)) return false;
  const double zeta = (bb - aa) / (2 * ab);
  const double tangent = std::copysign(1.0, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
  const double cosine = 1 / std::sqrt(1 + tangent * tangent);
  const double sine = cosine * tangent;
  for (const auto& [first, second] : {std::pair(a, b), columns(vectors_, short_side_)}) {
    for (size_t i = 0; i < first.size(); ++i) {
      const double x = first[i], y = second[i];
      first[i] = cosine * x - sine * y;
      second[i] = sine * x + cosine * y;
    }
  }
  return true;
}

void LowRank::AddTerm(int64_t i, std::span<double> x) const {
  CHECK_LT(i, short_side_);
  const double* const product = &products_[order_[i] * long_side_];
  const double* const vector = &vectors_[order_[i] * short_side_];
  const bool wide = width_ > tokens_;
  for (int64_t t = 0; t < tokens_; ++t) {
    for (int64_t d = 0; d < width_; ++d) {
      x[t * width_ + d] += wide ? vector[t] * product[d] : product[t] * vector[d];
    }
  }
}

}  // namespace elastor
