// What verdicts and intervals of scaling laws are worth: many sets of points are drawn from known
// laws, and each is analysed. By hand; the figures of docs/results/sweeps.md:
//
//   bazel run -c opt //tests/launcher/scaling_law:planted_draws -- --draws=2000
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "launcher/scaling_law/analysis.h"
#include "tests/launcher/scaling_law/drawn_points.h"

DEFINE_int32(draws, 2000, "sets of points of every plan");
DEFINE_int32(replicates, 400, "of a bootstrap");
DEFINE_int32(plan, -1, "the number of the only plan that is drawn; -1: all");

namespace elastor {
namespace {

// Widest printed interval of an identified law, as the ratio of its ends (docs/use/analysis.md).
constexpr double kWidest = 4;

struct NamedPlan {
  const char* name;
  DrawnPlan plan;
};
constexpr NamedPlan kPlans[] = {
    {"8 sizes x 100, no scatter", {}},
    {"8 sizes x 100, scatter 0.05 %", {.misfit_spread = 5e-4}},
    {"8 sizes x 100, scatter 0.1 %", {.misfit_spread = 1e-3}},
    {"8 sizes x 100, scatter 0.2 %", {.misfit_spread = 2e-3}},
    {"6 sizes x 31.6, no scatter", {.range = 31.6, .sizes = 6}},
    {"6 sizes x 31.6, scatter 0.1 %", {.range = 31.6, .sizes = 6, .misfit_spread = 1e-3}},
    {"12 sizes x 100, 2 seeds, no scatter", {.sizes = 12, .seeds = 2}},
    {"12 sizes x 100, 2 seeds, scatter 0.2 %", {.sizes = 12, .seeds = 2, .misfit_spread = 2e-3}},
    {"8 sizes x 100, 1 to 5 seeds, scatter 0.1 %", {.misfit_spread = 1e-3, .uneven = true}},
    {"8 sizes x 100, the two largest 1 % higher", {.break_of_largest = 0.01}},
    {"the same with scatter 0.1 %", {.misfit_spread = 1e-3, .break_of_largest = 0.01}},
    {"6 sizes x 31.6, one run 3 % higher", {.range = 31.6, .sizes = 6, .outlier = 0.03}},
};

class Share {
 public:
  void Add(bool holds) { held_ += holds, ++of_; }
  double value() const { return held_ / static_cast<double>(of_); }

 private:
  int held_ = 0;
  int of_ = 0;
};

bool Holds(const Interval& interval, double truth) {
  return interval.low <= truth && truth <= interval.high;
}

void Measure(const NamedPlan& named) {
  const std::vector<std::string> names = {"dense_parameters"};
  std::vector<Share> predictions;
  Share limit, exponent, profile, breaks, identified, contradictions;
  std::vector<double> widths;
  for (int draw = 0; draw < FLAGS_draws; ++draw) {
    const Analysis analysis =
        Analyse("model", names, DrawPoints(named.plan, draw),
                {.delta = {}, .replicates = FLAGS_replicates, .seed = static_cast<uint64_t>(draw)});
    predictions.resize(analysis.predictions.size());
    for (size_t i = 0; i < predictions.size(); ++i) {
      const LawPrediction& prediction = analysis.predictions[i];
      predictions[i].Add(Holds(prediction.interval, TrueLaw().At(prediction.sizes)));
    }
    const Interval limits = analysis.bootstrap.Of([](const Law& law) { return law.limit; });
    const Interval exponents =
        analysis.bootstrap.Of([](const Law& law) { return law.exponents[0]; });
    limit.Add(Holds(limits, TrueLaw().limit));
    exponent.Add(Holds(exponents, TrueLaw().exponents[0]));
    profile.Add(Holds(analysis.identification.profiles[0], TrueLaw().exponents[0]));
    if (analysis.hold_out) breaks.Add(analysis.hold_out->breaks_law());
    widths.push_back(exponents.high / exponents.low);
    const bool told = analysis.identification.identified();
    identified.Add(told);
    contradictions.Add(
        told && (exponents.high > kWidest * exponents.low || limits.high > kWidest * limits.low));
  }
  std::ranges::sort(widths);
  std::vector<double> shares;
  for (const Share& share : predictions) shares.push_back(100 * share.value());
  const auto [least, most] = std::ranges::minmax(shares);
  std::printf(
      "%s: predictions hold %.1f %% (%.1f to %.1f; two steps beyond %.1f), E %.1f, exponent %.1f, "
      "profile %.1f; BREAK %.1f; identified %.1f, beside a wider interval %.1f; median ratio of "
      "the exponent's interval %.2f\n",
      named.name,
      std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size()),
      least, most, shares.back(), 100 * limit.value(), 100 * exponent.value(),
      100 * profile.value(), 100 * breaks.value(), 100 * identified.value(),
      100 * contradictions.value(), widths[widths.size() / 2]);
  std::fflush(stdout);
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  for (int i = 0; i < static_cast<int>(std::size(elastor::kPlans)); ++i) {
    if (FLAGS_plan == -1 || FLAGS_plan == i) elastor::Measure(elastor::kPlans[i]);
  }
}
