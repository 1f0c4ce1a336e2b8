#ifndef ELASTOR_CORE_TENSOR_PANELS_H_
#define ELASTOR_CORE_TENSOR_PANELS_H_

#include <cstdint>
#include <type_traits>

namespace elastor {

// Ends the program because a view reaches to `end` but only `available` rows or features exist.
[[noreturn]] void RefuseView(int64_t end, int64_t available);

// Rows (samples) in one panel. Samples are the vector lanes of the CPU kernels, so a row's result
// never depends on which other rows are computed with it.
inline constexpr int64_t kPanelRows = 16;

// A view of activations [rows, features] on the CPU, stored in panels of 16 samples,
// feature-major within a panel: element (row r, feature f) is at
//   data[(r / 16) * panel_stride + f * feature_stride + r % 16].
// A leaf's last panel (pass_leaves.h) is padded with rows whose values are finite and meaningless;
// gradients of padded rows are exactly zero. Does not own the memory. Passed by value. Its
// functions are always inlined, because kernels of several instruction sets use them
// (core/kernels/cpu/vec.h).
template <typename T>
struct Panels {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t features = 0;
  int64_t panel_stride = 0;             // elements from one panel to the next
  int64_t feature_stride = kPanelRows;  // elements from one feature to the next

  [[gnu::always_inline]] int64_t panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
  [[gnu::always_inline]] T* Panel(int64_t p) const { return data + p * panel_stride; }
  [[gnu::always_inline]] T& At(int64_t row, int64_t feature) const {
    return data[(row / kPanelRows) * panel_stride + feature * feature_stride + row % kPanelRows];
  }

  // Rows [begin, begin + count), begin a multiple of kPanelRows. An empty view stays empty.
  [[gnu::always_inline]] Panels Rows(int64_t begin, int64_t count) const {
    if (begin + count > rows) RefuseView(begin + count, rows);
    Panels part = *this;
    part.rows = count;
    if (data != nullptr) part.data = Panel(begin / kPanelRows);
    return part;
  }
  // Returns features [begin, begin + count).
  [[gnu::always_inline]] Panels Slice(int64_t begin, int64_t count) const {
    if (begin + count > features) RefuseView(begin + count, features);
    return {data + begin * feature_stride, rows, count, panel_stride, feature_stride};
  }
  // Returns `count` features begin, begin + step, ...
  [[gnu::always_inline]] Panels Every(int64_t begin, int64_t step, int64_t count) const {
    if (begin + (count - 1) * step >= features)
      RefuseView(begin + (count - 1) * step, features - 1);
    return {data + begin * feature_stride, rows, count, panel_stride, feature_stride * step};
  }

  [[gnu::always_inline]] operator Panels<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, features, panel_stride, feature_stride};
  }
};

// Returns the elements from one panel to the next for `features` features: an odd number of cache
// lines (of 16 floats), so that the same feature of successive panels does not fall on one cache
// set.
inline constexpr int64_t PanelStride(int64_t features) { return (features | 1) * kPanelRows; }

// Returns the number of elements needed for `rows` x `features`.
inline constexpr int64_t PanelElements(int64_t rows, int64_t features) {
  return (rows + kPanelRows - 1) / kPanelRows * PanelStride(features);
}

}  // namespace elastor

#endif  // ELASTOR_CORE_TENSOR_PANELS_H_
