#include "trainer/data/weighted_rows.h"

#include <limits>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/text.h"

namespace elastor {

Status CheckWeightedRows(const std::string& path, const DatasetInfo& info) {
  if (!info.has_weights) return OkStatus();
  const StatusOr<std::string> text = ReadFile(path + "/stats.json");
  if (!text.ok() || NestsTooDeep(*text)) return OkStatus();
  try {
    const Json json = ParseJson(*text);
    const JsonEntry splits = JsonEntry(json).Member("splits");
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

}  // namespace elastor
