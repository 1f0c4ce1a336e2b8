#ifndef ELASTOR_TESTS_CORE_KERNELS_CUDA_DEVICE_VIEWS_H_
#define ELASTOR_TESTS_CORE_KERNELS_CUDA_DEVICE_VIEWS_H_

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/tensor/panels.h"
#include "tests/core/cuda/device_arrays.h"

namespace elastor::cuda {

struct Shape {
  int64_t rows;
  int64_t tokens;
  int64_t features;
  int64_t size() const { return rows * tokens * features; }
};

// How a test's activations lie in memory. kSpread: row-major with gaps between tokens and rows, not
// aligned to anything.
enum class Layout { kRowMajor, kTokenMajor, kSpread };
inline constexpr Layout kLayouts[] = {Layout::kRowMajor, Layout::kTokenMajor, Layout::kSpread};

// Numbers in [-scale, scale), some of them zeros of either sign, as A holds them.
template <typename A>
std::vector<float> RandomValues(int64_t count, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(count);
  for (float& value : values) {
    const bool zero = random() % 64 == 0;
    value = static_cast<float>(
        static_cast<A>(zero ? (random() % 2 == 0 ? 0.0f : -0.0f) : uniform(random)));
  }
  return values;
}

// Activations in device memory. On the host they are vectors [row][token][feature] of float.
template <typename A>
class DeviceView {
 public:
  DeviceView(Stream& stream, const Shape& shape, Layout layout)
      : stream_(&stream), shape_(shape), buffer_(&stream) {
    switch (layout) {
      case Layout::kRowMajor:
        view_ = Activations<A>::RowMajor(nullptr, shape.rows, shape.tokens, shape.features);
        break;
      case Layout::kTokenMajor:
        view_ = Activations<A>::TokenMajor(nullptr, shape.rows, shape.tokens, shape.features);
        break;
      case Layout::kSpread: {
        const int64_t token_stride = shape.features + 1;
        view_ = {
            nullptr,     shape.rows, shape.tokens, shape.features, shape.tokens * token_stride + 2,
            token_stride};
        begin_ = 1;
        break;
      }
    }
    const int64_t last =
        (shape.rows - 1) * view_.row_stride + (shape.tokens - 1) * view_.token_stride;
    host_.assign(begin_ + last + shape.features + kBehind, static_cast<A>(kUntouched));
    buffer_.Resize(static_cast<int64_t>(host_.size()));
    view_.data = buffer_.data() + begin_;
    Upload();
  }
  DeviceView(Stream& stream, const Shape& shape, Layout layout, const std::vector<float>& values)
      : DeviceView(stream, shape, layout) {
    ForEach([&](int64_t i, A& element) { element = static_cast<A>(values[i]); });
    Upload();
  }

  Activations<A> view() const { return view_; }
  Activations<const A> read() const { return view_; }

  // Fails the test when something between or behind the elements has changed.
  std::vector<float> Read() {
    Copy(*stream_, host_.data(), static_cast<const A*>(buffer_.data()), buffer_.size());
    stream_->Synchronize();
    std::vector<float> values(shape_.size());
    ForEach([&](int64_t i, A& element) {
      values[i] = static_cast<float>(element);
      element = static_cast<A>(kUntouched);
    });
    for (const A& element : host_) EXPECT_EQ(static_cast<float>(element), kUntouched);
    return values;
  }

 private:
  static constexpr float kUntouched = 12288;
  static constexpr int64_t kBehind = 8;

  void Upload() { Copy(*stream_, buffer_.data(), host_.data(), buffer_.size()); }

  // body(index [row][token][feature], element) for every element of the host's copy.
  template <typename Body>
  void ForEach(Body body) {
    int64_t i = 0;
    for (int64_t r = 0; r < shape_.rows; ++r) {
      for (int64_t t = 0; t < shape_.tokens; ++t) {
        const int64_t first = begin_ + r * view_.row_stride + t * view_.token_stride;
        for (int64_t f = 0; f < shape_.features; ++f) body(i++, host_[first + f]);
      }
    }
  }

  Stream* stream_;
  Shape shape_;
  int64_t begin_ = 0;
  Activations<A> view_;
  std::vector<A> host_;
  Buffer<A> buffer_;
};

// The same values as panels [rows, columns], for the CPU's ops.
class HostPanels {
 public:
  HostPanels(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), data_(PanelElements(rows, columns)) {}
  HostPanels(int64_t rows, int64_t columns, const std::vector<float>& values)
      : HostPanels(rows, columns) {
    for (int64_t i = 0; i < rows * columns; ++i) view().At(i / columns, i % columns) = values[i];
  }
  Panels<float> view() { return {data_.data(), rows_, columns_, PanelStride(columns_)}; }
  Panels<const float> read() { return view(); }
  std::vector<float> Read() {
    std::vector<float> values(rows_ * columns_);
    for (int64_t i = 0; i < rows_ * columns_; ++i)
      values[i] = view().At(i / columns_, i % columns_);
    return values;
  }

 private:
  int64_t rows_;
  int64_t columns_;
  std::vector<float> data_;
};

// What A holds of the values.
template <typename A>
std::vector<float> Rounded(std::vector<float> values) {
  for (float& value : values) value = static_cast<float>(static_cast<A>(value));
  return values;
}

// Bit for bit: -0 is not +0.
inline void ExpectSameBits(const std::vector<float>& values, const std::vector<float>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(expected[i]))
        << "element " << i << ": " << values[i] << " instead of " << expected[i];
  }
}

// Every test runs with floats and with BFloat16.
template <typename A>
class DeviceOpTest : public testing::Test {
 protected:
  void SetUp() override { SetCanonicalFloatingPoint(); }  // for the CPU's ops
  Stream stream_;
};
using ElementTypes = testing::Types<float, BFloat16>;

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_CORE_KERNELS_CUDA_DEVICE_VIEWS_H_
