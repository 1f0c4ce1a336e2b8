#ifndef ELASTOR_TESTS_CORE_KERNELS_PANEL_TESTING_H_
#define ELASTOR_TESTS_CORE_KERNELS_PANEL_TESTING_H_

#include <cstdint>
#include <random>
#include <vector>

#include "core/tensor/panels.h"

namespace elastor {

// Panels with memory of their own, filled with numbers in [-1, 1); padded rows too.
template <typename T>
class PanelBuffer {
 public:
  PanelBuffer(int64_t rows, int64_t features, uint32_t seed)
      : data_(PanelElements(rows, features)), rows_(rows), features_(features) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (T& value : data_) value = uniform(random);
  }

  Panels<T> view() { return {data_.data(), rows_, features_, PanelStride(features_)}; }
  Panels<const T> read() { return view(); }

  // Gradients of padded rows are zero by contract.
  PanelBuffer& ZeroPadding() {
    for (int64_t row = rows_; row < view().panels() * kPanelRows; ++row) {
      for (int64_t f = 0; f < features_; ++f) view().At(row, f) = 0;
    }
    return *this;
  }

 private:
  std::vector<T> data_;
  int64_t rows_;
  int64_t features_;
};

template <typename T>
std::vector<T> RandomNumbers(int64_t count, uint32_t seed) {
  std::vector<T> numbers(count);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (T& value : numbers) value = uniform(random);
  return numbers;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_CORE_KERNELS_PANEL_TESTING_H_
