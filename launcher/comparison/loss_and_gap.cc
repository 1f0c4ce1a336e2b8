#include "launcher/comparison/loss_and_gap.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/base/file.h"
#include "core/base/json_entry.h"
#include "nlohmann/json.hpp"

namespace elastor {
namespace {

constexpr int64_t kMostSteps = int64_t{1} << 53;

}  // namespace

StatusOr<LossAndGapRun> ReadLossAndGap(const std::string& folder, int64_t from_step) {
  const std::string path = folder + "/metrics.jsonl";
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  LossAndGapRun run;
  double loss = 0;
  int records = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1);
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    try {
      const Json json = ParseJson(line);
      const JsonEntry entry(json);
      const std::string event = entry.Member("event").Text();
      if (event == "train") {
        loss += entry.Member("loss").Number();
        ++records;
      } else if (event == "eval" && entry.Member("split").Text() == "validation" &&
                 entry.Member("scheduled").Bool() && records > 0) {
        const double mean = loss / records;
        if (entry.Member("step").Integer(0, kMostSteps) >= from_step) {
          const double gap = entry.Member("logloss").Number() - mean;
          if (!std::isfinite(gap))
            entry.Member("logloss").Wrong("a gap to the loss that is finite");
          run.push_back({mean, gap});
        }
        loss = records = 0;
      }
    } catch (const std::string& reason) {
      return UserError(path + ": " + reason);
    }
  }
  if (!run.empty()) return run;
  return UserError(path + ": no scheduled evaluation of the validation split from step " +
                   std::to_string(from_step) +
                   " on, after a training record; expected one (training.eval_every_steps, "
                   "training.log_every_steps)");
}

}  // namespace elastor
