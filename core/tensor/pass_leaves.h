#ifndef ELASTOR_CORE_TENSOR_PASS_LEAVES_H_
#define ELASTOR_CORE_TENSOR_PASS_LEAVES_H_

#include <array>
#include <cstdint>
#include <span>

#include "core/tensor/panels.h"

namespace elastor {

// The most leaves of one pass, and the most sums over them that are kept at once: one for every
// level of their tree, and the newest.
inline constexpr int64_t kMaxPassLeaves = 32;
inline constexpr int kMaxLeafSums = 6;
static_assert(kMaxPassLeaves == 1 << (kMaxLeafSums - 1));

// The rows of one leaf in a pass. Every leaf starts on a panel of its own, so its last panel is
// padded. A gradient's sum over the leaves of a pass follows the leaf tree: each leaf's own sum
// becomes the newest of the sums, and then the two newest are added, the older + the newer,
// `merges` times. After the last leaf one sum is left.
struct LeafRows {
  int64_t rows = 0;         // > 0
  int64_t first_row = 0;    // index among the pass's rows, without padded rows
  int64_t first_panel = 0;  // index among the pass's panels
  int merges = 0;

  // Returns this leaf's rows of a view of the pass. An empty view stays empty.
  template <typename T>
  [[gnu::always_inline]] Panels<T> Of(Panels<T> view) const {
    return view.data == nullptr ? view : view.Rows(first_panel * kPanelRows, rows);
  }
};

// The leaves of a pass: one, or several neighbours that form a node of the leaf tree
// (docs/inside/design.md, "Leaves and the tree").
class PassLeaves {
 public:
  PassLeaves() = default;
  // One leaf, or some rows of it.
  explicit PassLeaves(int64_t rows);
  // The node of offsets.size() - 1 leaves that begins with `first_leaf`: its i-th leaf has the rows
  // from offsets[i] to offsets[i + 1], and is absent if there are none.
  PassLeaves(int64_t first_leaf, std::span<const int64_t> offsets);

  // Returns the present leaves, ascending.
  std::span<const LeafRows> leaves() const { return {leaves_.data(), static_cast<size_t>(size_)}; }
  // Returns the number of rows of the pass's views. Padded rows count, except those of the last
  // leaf.
  int64_t rows() const {
    return size_ == 0 ? 0 : leaves_[size_ - 1].first_panel * kPanelRows + leaves_[size_ - 1].rows;
  }

 private:
  std::array<LeafRows, kMaxPassLeaves> leaves_;
  int64_t size_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_TENSOR_PASS_LEAVES_H_
