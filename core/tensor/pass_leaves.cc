#include "core/tensor/pass_leaves.h"

#include "core/base/leaf_stack.h"
#include "core/base/log.h"

namespace elastor {

PassLeaves::PassLeaves(int64_t rows) : size_(1) {
  CHECK_GT(rows, 0);
  leaves_[0].rows = rows;
}

PassLeaves::PassLeaves(int64_t first_leaf, std::span<const int64_t> offsets) {
  CHECK_LE(static_cast<int64_t>(offsets.size()) - 1, kMaxPassLeaves);
  LeafStack<int64_t> stack;
  int64_t panels = 0;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const int64_t rows = offsets[i + 1] - offsets[i];
    if (rows == 0) continue;
    const int64_t leaf = first_leaf + static_cast<int64_t>(i);
    while (stack.MergesBefore(leaf)) ++leaves_[size_ - 1].merges;
    stack.Push(leaf);
    leaves_[size_++] = {
        .rows = rows, .first_row = offsets[i] - offsets[0], .first_panel = panels, .merges = 0};
    panels += (rows + kPanelRows - 1) / kPanelRows;
  }
  while (stack.MergesAtEnd()) ++leaves_[size_ - 1].merges;
}

}  // namespace elastor
