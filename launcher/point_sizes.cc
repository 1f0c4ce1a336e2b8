#include "launcher/point_sizes.h"

#include <algorithm>
#include <cstdint>
#include <regex>

#include "core/base/text.h"
#include "launcher/run_sizes.h"
#include "launcher/sweep_file.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/make_options.h"

namespace elastor {
namespace {

constexpr int64_t kMostSize = int64_t{1} << 20;

// "{size}" or "{FACTOR*size}", FACTOR of one to three digits.
const std::regex& SizePattern() {
  static const auto& pattern = *new std::regex(R"(\{(?:([1-9][0-9]{0,2})\*)?size\})");
  return pattern;
}

bool HasSize(const Point& point) {
  return std::ranges::any_of(point.set(), [](const std::string& assignment) {
    return std::regex_search(assignment, SizePattern());
  });
}

Point WithSize(const Point& point, int64_t size) {
  Point with = point;
  for (std::string& assignment : *with.mutable_set()) {
    for (std::smatch match; std::regex_search(assignment, match, SizePattern());) {
      const int64_t factor = match[1].matched ? std::stoi(match[1]) : 1;
      assignment = match.prefix().str() + std::to_string(factor * size) + match.suffix().str();
    }
  }
  return with;
}

// The sizes of the base with one point.
class PointSizes {
 public:
  explicit PointSizes(const Sweep& sweep) : base_(sweep) { base_.clear_axis(); }

  // Returns the number that the match is about.
  StatusOr<double> Measure(const Point& point) {
    ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, MakeExperiment(base_, {{&point}}));
    ResolveDefaults(&experiment);
    ELASTOR_RETURN_IF_ERROR(ValidateExperiment(WithAbsolutePaths(experiment)));
    ELASTOR_ASSIGN_OR_RETURN(const RunSizes::Data* const data, sizes_.Open(experiment));
    PlannedRun run;
    run.ranks = std::max(1, base_.resources().ranks());
    ELASTOR_RETURN_IF_ERROR(sizes_.Measure(experiment, *data, &run));
    return static_cast<double>(base_.match().has_multiply_adds() ? run.multiply_adds
                                                                 : run.dense_parameters);
  }

  // Returns the size from 1 on that comes nearest to the target; the number grows with the size.
  StatusOr<int64_t> Nearest(const Point& point) {
    const SizeMatch& match = base_.match();
    const auto target = static_cast<double>(match.has_multiply_adds() ? match.multiply_adds()
                                                                      : match.dense_parameters());
    int64_t below = 0, above = 1;  // sizes whose numbers are below the target, and not
    double at_below = 0;
    ELASTOR_ASSIGN_OR_RETURN(double at_above, Measure(WithSize(point, above)));
    while (at_above < target) {
      below = above;
      at_below = at_above;
      above *= 2;
      if (above > kMostSize) {
        return UserError(StrCat("{size}: the model has ", Format("%.0f", at_below), " with ", below,
                                "; expected a number that reaches ", Format("%.0f", target)));
      }
      ELASTOR_ASSIGN_OR_RETURN(at_above, Measure(WithSize(point, above)));
    }
    while (above - below > 1) {
      const int64_t middle = below + (above - below) / 2;
      ELASTOR_ASSIGN_OR_RETURN(const double at_middle, Measure(WithSize(point, middle)));
      (at_middle < target ? below : above) = middle;
      (at_middle < target ? at_below : at_above) = at_middle;
    }
    return below > 0 && target - at_below < at_above - target ? below : above;
  }

 private:
  Sweep base_;  // without axes
  RunSizes sizes_{/*tuned=*/false};
};

}  // namespace

Status SetPointSizes(const std::string& source, Sweep* sweep) {
  int found = 0;
  PointSizes sizes(*sweep);
  for (Axis& axis : *sweep->mutable_axis()) {
    for (Point& point : *axis.mutable_point()) {
      if (!HasSize(point)) continue;
      const std::string who = source + ": axis '" + axis.name() + "': " + point.label() + ": ";
      ++found;
      if (sweep->match().target_case() == SizeMatch::TARGET_NOT_SET) {
        return UserError(who +
                         "has {size}; expected match { dense_parameters: N } or match { "
                         "multiply_adds: N } in the sweep");
      }
      if (!axis.field().empty()) {
        return UserError(who + "has {size}; expected it in points alone");
      }
      const StatusOr<int64_t> size = sizes.Nearest(point);
      if (!size.ok()) return Status(size.status().code(), who + size.status().message());
      point = WithSize(point, *size);
    }
  }
  if (sweep->has_match() && found == 0) {
    return UserError(source + ": match: no point has {size}");
  }
  sweep->clear_match();
  return OkStatus();
}

}  // namespace elastor
