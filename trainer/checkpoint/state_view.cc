#include "trainer/checkpoint/state_view.h"

namespace elastor {
namespace {

const char* WeightsName(RowFormat format) {
  switch (format) {
    case RowFormat::kFloat32:
      return "rows";
    case RowFormat::kInt8:
      return "rows_int8";
    case RowFormat::kInt4:
      return "rows_int4";
  }
  return "";
}

}  // namespace

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
  std::vector<Column> columns = {WeightsColumn(RowFormat::kFloat32, table.width)};
  if (contents == Contents::kWeights) return columns;
  const std::vector<std::string> slots =
      table.counts() ? std::vector<std::string>() : SlotNames(kind);
  for (const std::string& slot : slots) {
    columns.push_back({slot, SlotElements(kind, table.width) / static_cast<int64_t>(slots.size())});
  }
  if (table.keeps_use) columns.push_back({kUseColumn, kUseElements});
  return columns;
}

Column WeightsColumn(RowFormat format, int64_t width) {
  return {WeightsName(format), RowWords(format, width)};
}

std::optional<RowFormat> FormatOfWeights(const Column& column) {
  for (const RowFormat format : kRowFormats) {
    if (column.name == WeightsName(format)) return format;
  }
  return std::nullopt;
}

}  // namespace elastor
