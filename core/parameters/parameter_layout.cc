#include "core/parameters/parameter_layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/log.h"
#include "core/base/random.h"

namespace elastor {
namespace {

constexpr int64_t kAlignment = 16;  // elements: one cache line of floats
constexpr int64_t kMost = int64_t{1} << 60;

// A product of sizes; kMost if it is more.
int64_t Product(std::span<const int64_t> sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(product, size, &product) || product > kMost) return kMost;
  }
  return product;
}

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

Init Init::XavierNormal(int64_t fan_in, int64_t fan_out) {
  return {std::sqrt(2.0 / static_cast<double>(fan_in + fan_out)), 0};
}

ParameterLayout::ParameterLayout(int64_t bucket_elements) : bucket_elements_(bucket_elements) {}

int ParameterLayout::Declare(std::string name, std::vector<int64_t> shape, Init init, Decay decay) {
  if (buckets_.empty() || flat_size_ - buckets_.back().begin >= bucket_elements_) {
    flat_size_ = RoundUp(flat_size_, kParameterBlock);
    if (!buckets_.empty()) buckets_.back().end = flat_size_;
    buckets_.push_back({flat_size_, flat_size_});
  }
  ParameterInfo info;
  info.name = std::move(name);
  info.size = Product(shape);
  CHECK_GT(info.size, 0) << info.name;
  info.shape = std::move(shape);
  info.init = init;
  info.decay = decay;
  info.offset = flat_size_;
  info.bucket = static_cast<int>(buckets_.size()) - 1;
  flat_size_ = std::min(kMost, flat_size_ + RoundUp(info.size, kAlignment));
  elements_ = std::min(kMost, elements_ + info.size);
  parameters_.push_back(std::move(info));
  return static_cast<int>(parameters_.size()) - 1;
}

int ParameterLayout::DeclareStatistic(std::string name, std::vector<int64_t> shape,
                                      double initial) {
  const int index =
      Declare(std::move(name), std::move(shape), Init::Constant(initial), Decay::kNone);
  parameters_[index].statistic = true;
  elements_ -= parameters_[index].size;
  return index;
}

void ParameterLayout::Finish() {
  flat_size_ = RoundUp(flat_size_, kParameterBlock);
  if (!buckets_.empty()) buckets_.back().end = flat_size_;
}

int ParameterLayout::Find(std::string_view name) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return static_cast<int>(i);
  }
  LOG(FATAL) << "no parameter " << name;
}

template <typename T>
void ParameterLayout::Initialize(uint64_t seed, T* values) const {
  std::fill(values, values + flat_size_, T{0});
  for (const ParameterInfo& p : parameters_) {
    T* begin = values + p.offset;
    const uint64_t key = MakeRandomKey(seed, RandomPurpose::kDenseInit, HashName(p.name));
    if (p.init.stddev > 0) {
      FillNormal(key, 0, p.init.stddev, p.size, begin);
    } else if (p.init.uniform > 0) {
      for (int64_t i = 0; i < p.size; ++i) {
        const auto at = static_cast<uint64_t>(i / 4);
        const PhiloxBlock block =
            Philox(key, {static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0});
        begin[i] = static_cast<T>(p.init.uniform * UniformFromBits(block[i % 4]));
      }
    } else {
      std::fill(begin, begin + p.size, static_cast<T>(p.init.constant));
    }
    if (p.init.diagonal == 0) continue;
    CHECK_EQ(p.shape.size(), 2u) << p.name;
    for (int64_t i = 0; i < std::min(p.shape[0], p.shape[1]); ++i) {
      begin[i * (p.shape[1] + 1)] += static_cast<T>(p.init.diagonal);
    }
  }
}

template void ParameterLayout::Initialize(uint64_t, float*) const;
template void ParameterLayout::Initialize(uint64_t, double*) const;

}  // namespace elastor
