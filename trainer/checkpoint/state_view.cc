#include "trainer/checkpoint/state_view.h"

namespace elastor {

std::vector<std::string> SlotNames(SparseOptimizerKind kind) {
  switch (kind) {
    case SparseOptimizerKind::kSgd:
      return {};
    case SparseOptimizerKind::kAdagrad:
    case SparseOptimizerKind::kRowWiseAdagrad:
      return {"a"};
    case SparseOptimizerKind::kLazyAdam:
    case SparseOptimizerKind::kDenseAdam:
      return {"m", "v"};
  }
  return {};
}

std::vector<Column> ColumnsOf(const TableSpec& table, SparseOptimizerKind kind, Contents contents) {
  std::vector<Column> columns = {{"rows", table.width}};
  if (contents == Contents::kWeights) return columns;
  const std::vector<std::string> slots = SlotNames(kind);
  for (const std::string& slot : slots) {
    columns.push_back({slot, SlotElements(kind, table.width) / static_cast<int64_t>(slots.size())});
  }
  return columns;
}

}  // namespace elastor
