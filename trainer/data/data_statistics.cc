#include "trainer/data/data_statistics.h"

#include <limits>
#include <optional>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/text.h"

namespace elastor {
namespace {

// Nothing if there are no statistics, or those of another program.
std::optional<Json> StatisticsOf(const std::string& path) {
  const StatusOr<std::string> text = ReadFile(path + "/stats.json");
  if (!text.ok()) return std::nullopt;
  try {
    return ParseJson(*text);
  } catch (const std::string&) {
    return std::nullopt;
  }
}

}  // namespace

Status CheckWeightedRows(const std::string& path, const DatasetInfo& info) {
  if (!info.has_weights) return OkStatus();
  const std::optional<Json> json = StatisticsOf(path);
  if (!json) return OkStatus();
  try {
    const JsonEntry splits = JsonEntry(*json).Member("splits");
    for (const Split split : {Split::kTrain, Split::kValidation}) {
      const int64_t rows = info.rows[static_cast<int>(split)];
      const JsonEntry part = splits.Member(SplitName(split));
      if (rows == 0 || !part.Has("weighted_rows")) continue;
      const JsonEntry weighted = part.Member("weighted_rows");
      if (weighted.Integer(0, std::numeric_limits<int64_t>::max()) > 0) continue;
      return UserError(StrCat("data.path: ", path, ": the weight of all ", rows, " ",
                              SplitName(split),
                              " rows is 0; expected one above 0, or no such rows"));
    }
  } catch (const std::string&) {
    // Statistics of another program say nothing.
  }
  return OkStatus();
}

std::vector<std::string> WarningsOf(const std::string& path) {
  std::vector<std::string> lines;
  const std::optional<Json> json = StatisticsOf(path);
  try {
    if (!json || !JsonEntry(*json).Has("warnings")) return lines;
    for (const JsonEntry& line : JsonEntry(*json).Member("warnings").Elements()) {
      lines.push_back(line.Text());
    }
  } catch (const std::string&) {
    // Statistics of another program say nothing.
  }
  return lines;
}

}  // namespace elastor
