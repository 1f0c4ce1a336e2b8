#include "trainer/checkpoint/state_view.h"

namespace elastor {

std::vector<std::string> SlotNames(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return {};
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kRowWiseAdagrad:
      return {"a"};
    case OptimizerKind::kLazyAdam:
    case OptimizerKind::kDenseAdam:
      return {"m", "v"};
  }
  return {};
}

std::vector<Column> ColumnsOf(const TableSpec& table, OptimizerKind kind, Contents contents) {
  std::vector<Column> columns = {{"rows", table.width}};
  if (contents == Contents::kWeights) return columns;
  const std::vector<std::string> slots =
      table.counts() ? std::vector<std::string>() : SlotNames(kind);
  for (const std::string& slot : slots) {
    columns.push_back({slot, SlotElements(kind, table.width) / static_cast<int64_t>(slots.size())});
  }
  if (table.keeps_use) columns.push_back({kUseColumn, kUseElements});
  return columns;
}

}  // namespace elastor
