#include "launcher/comparison/loss_and_gap.h"

#include <algorithm>
#include <string_view>

#include "core/base/file.h"
#include "core/base/json_entry.h"
#include "nlohmann/json.hpp"

namespace elastor {
namespace {

constexpr int64_t kMostSteps = int64_t{1} << 53;

StatusOr<std::string> ReadName(const std::string& folder) {
  const std::string path = folder + "/summary.json";
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  try {
    const Json json = ParseJson(text);
    return JsonEntry(json).Member("name").Text();
  } catch (const std::string& reason) {
    return UserError(path + ": " + reason);
  }
}

StatusOr<LossAndGapRun> ReadRun(const std::string& folder, int64_t from_step) {
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
          run.push_back({mean, entry.Member("logloss").Number() - mean});
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

}  // namespace

StatusOr<std::vector<LossAndGapArm>> ReadLossAndGap(std::span<const std::string> folders,
                                                    int64_t from_step) {
  std::vector<LossAndGapArm> arms;
  for (const std::string& folder : folders) {
    ELASTOR_ASSIGN_OR_RETURN(const std::string name, ReadName(folder));
    ELASTOR_ASSIGN_OR_RETURN(LossAndGapRun run, ReadRun(folder, from_step));
    auto arm = std::ranges::find(arms, name, &LossAndGapArm::name);
    if (arm == arms.end()) arm = arms.insert(arms.end(), {.name = name, .runs = {}});
    arm->runs.push_back(std::move(run));
  }
  return arms;
}

}  // namespace elastor
