#ifndef ELASTOR_CORE_TENSOR_WORKSPACE_H_
#define ELASTOR_CORE_TENSOR_WORKSPACE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/tensor/panels.h"

namespace elastor {

// The places of a pass's activations, made once by the executor. Sizes and offsets are in panels'
// features: a buffer of f features takes ActivationsPerPanel(f) elements for every panel of rows,
// one cache line more than its values. The extra line shifts the buffers' first elements against
// each other: at equal offsets within a page, a kernel's loads may wait for its stores.
inline constexpr int64_t ActivationsPerPanel(int64_t features) {
  return PanelStride(features) + kPanelRows;
}
struct WorkspacePlan {
  struct Activations {
    int64_t features = 0;
    int64_t offset = 0;  // elements per panel
  };
  std::vector<Activations> activations;
  int64_t elements_per_panel = 0;
  // Elements whose number does not depend on the rows: their offsets by slot, and the scratch
  // memory for one call of a kernel.
  std::vector<int64_t> flat_offsets;
  int64_t flat_elements = 0;
  int64_t scratch_elements = 0;
};
inline int64_t WorkspacePanels(int64_t max_rows) {
  return max_rows / kPanelRows + (max_rows % kPanelRows != 0);
}

// The memory of a plan for up to `max_rows` rows: one allocation, 64-byte aligned, zeroed (padded
// rows must be finite). One per computing thread.
template <typename T>
class Workspace {
 public:
  Workspace(const WorkspacePlan& plan, int64_t max_rows) : plan_(plan), max_rows_(max_rows) {
    panels_ = WorkspacePanels(max_rows);
    flat_ = plan.elements_per_panel * panels_;
    scratch_ = flat_ + plan.flat_elements;
    const int64_t size = scratch_ + plan.scratch_elements;
    memory_.reset(static_cast<T*>(::operator new(size * sizeof(T) + kLine, kAlignment)));
    std::fill(memory_.get(), memory_.get() + size, T{0});
  }

  // REQUIRES: rows <= max_rows.
  Panels<T> Activations(int slot, int64_t rows) const {
    CHECK_LE(rows, max_rows_);
    const auto& [features, offset] = plan_.activations[slot];
    return {memory_.get() + offset * panels_ + slot % panels_ * kPanelRows, rows, features,
            PanelStride(features)};
  }
  T* Flat(int slot) const { return memory_.get() + flat_ + plan_.flat_offsets[slot]; }
  T* scratch() const { return memory_.get() + scratch_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  static constexpr size_t kLine = 64;  // bytes kept beyond the end

  struct Free {
    void operator()(T* p) const { ::operator delete(p, kAlignment); }
  };
  WorkspacePlan plan_;
  int64_t max_rows_;
  int64_t panels_ = 0;
  int64_t flat_ = 0;
  int64_t scratch_ = 0;
  std::unique_ptr<T, Free> memory_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_TENSOR_WORKSPACE_H_
