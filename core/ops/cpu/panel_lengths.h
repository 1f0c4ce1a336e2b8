#ifndef ELASTOR_CORE_OPS_CPU_PANEL_LENGTHS_H_
#define ELASTOR_CORE_OPS_CPU_PANEL_LENGTHS_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/kernels/cpu/vec_math.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {

// The number of positions of a sequence that each row of one panel has; padded rows have 0.
template <typename T>
struct PanelLengths {
  // Reads the lengths of one panel of a leaf for sequence `sequence` of `sequences`, which has at
  // most `positions` positions.
  PanelLengths(const Pass<T>& pass, int64_t sequence, int64_t sequences, int64_t positions,
               const LeafRows& leaf, int64_t panel) {
    const int64_t first = panel * kPanelRows;
    for (int64_t i = 0; i < std::min(kPanelRows, leaf.rows - first); ++i) {
      const int32_t length = pass.lengths[(leaf.first_row + first + i) * sequences + sequence];
      CHECK(length >= 0 && length <= positions) << length;
      lengths[i] = static_cast<T>(length);
      longest = std::max<int64_t>(longest, length);
    }
  }
  // Returns `inside` in the lanes that have position t, `outside` in the others.
  Vec<T> Select(int64_t lane, int64_t t, Vec<T> inside, Vec<T> outside) const {
    return Broadcast(static_cast<T>(t)) < Load(lengths.data() + lane) ? inside : outside;
  }

  std::array<T, kPanelRows> lengths = {};
  int64_t longest = 0;
};

// Returns one panel of a leaf's view.
template <typename U>
Panels<U> PanelOf(Panels<U> view, int64_t panel) {
  return {view.Panel(panel), kPanelRows, view.features, view.panel_stride, view.feature_stride};
}

// Calls body(lane) for the first lane of every vector of a panel.
template <typename T, typename Body>
void ForEachVector(const Body& body) {
  for (int64_t lane = 0; lane < kPanelRows; lane += kLanes<T>) body(lane);
}

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_CPU_PANEL_LENGTHS_H_
