#ifndef ELASTOR_CORE_TENSOR_WORKSPACE_H_
#define ELASTOR_CORE_TENSOR_WORKSPACE_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/tensor/panels.h"

namespace elastor {

// What a model needs between its forward and backward pass, declared once while it is built.
class WorkspacePlan {
 public:
  // A matrix of activations [rows, features]; returns its slot.
  int Activations(int64_t features) {
    features_.push_back(features);
    return static_cast<int>(features_.size()) - 1;
  }
  // Plain elements whatever the number of rows (scratch for a parameter's gradient).
  int Flat(int64_t elements) {
    flat_.push_back(elements);
    return static_cast<int>(flat_.size()) - 1;
  }
  const std::vector<int64_t>& features() const { return features_; }
  const std::vector<int64_t>& flat() const { return flat_; }

 private:
  std::vector<int64_t> features_;
  std::vector<int64_t> flat_;
};

// The memory of a plan for up to `max_rows` rows: one allocation, 64-byte aligned, zeroed (padded
// rows must be finite). One per computing thread.
template <typename T>
class Workspace {
 public:
  Workspace(const WorkspacePlan& plan, int64_t max_rows) : max_rows_(max_rows) {
    int64_t size = 0;
    for (int64_t features : plan.features()) {
      slots_.push_back({size, features});
      size += PanelElements(max_rows, features);
    }
    for (int64_t elements : plan.flat()) {
      flat_.push_back(size);
      size += (elements + kPanelRows - 1) / kPanelRows * kPanelRows;
    }
    const size_t bytes = static_cast<size_t>(size) * sizeof(T);
    memory_.reset(static_cast<T*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64)));
    CHECK(memory_ != nullptr) << "workspace of " << bytes << " bytes";
    std::fill(memory_.get(), memory_.get() + size, T{0});
  }

  // REQUIRES: rows <= max_rows.
  Panels<T> Activations(int slot, int64_t rows) const {
    CHECK_LE(rows, max_rows_);
    const auto& [offset, features] = slots_[slot];
    return {memory_.get() + offset, rows, features, PanelStride(features)};
  }
  T* Flat(int slot) const { return memory_.get() + flat_[slot]; }

 private:
  struct Slot {
    int64_t offset;
    int64_t features;
  };
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  int64_t max_rows_;
  std::vector<Slot> slots_;
  std::vector<int64_t> flat_;
  std::unique_ptr<T, Free> memory_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_TENSOR_WORKSPACE_H_
