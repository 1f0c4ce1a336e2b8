#ifndef ELASTOR_TESTS_LAUNCHER_SCALING_LAW_DRAWN_POINTS_H_
#define ELASTOR_TESTS_LAUNCHER_SCALING_LAW_DRAWN_POINTS_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "launcher/scaling_law/law_fit.h"

namespace elastor {

// A law like those of CTR models: of a logloss near 0.46 the sizes explain the last 5 %.
inline Law TrueLaw() { return {0.44, {0.02}, {0.35}, {1e6}}; }

struct DrawnPlan {
  double least = 1e5;  // smallest size
  double range = 100;  // largest / smallest
  int sizes = 8;       // in equal ratios
  int seeds = 5;
  double seed_spread = 1e-3;    // relative standard deviation of a run
  double misfit_spread = 0;     // of a configuration
  double break_of_largest = 0;  // the two largest sizes' values are this share higher
  double outlier = 0;           // a run of the third size is this share higher
  bool uneven = false;          // sizes have 1, 2, ..., `seeds`, 1, ... seeds instead
};

// Values of the true law with normal noise; draw `draw` of the plan, the same every time.
inline std::vector<Configuration> DrawPoints(const DrawnPlan& plan, uint64_t draw) {
  const int runs = plan.sizes * plan.seeds;
  std::vector<double> normals(runs + plan.sizes);
  FillNormal(MakeRandomKey(7, RandomPurpose::kSynthetic, 0), draw, 1,
             static_cast<int64_t>(normals.size()), normals.data());
  std::vector<Configuration> configurations(plan.sizes);
  for (int i = 0; i < plan.sizes; ++i) {
    Configuration& configuration = configurations[i];
    configuration.sizes = {plan.least * std::pow(plan.range, i / (plan.sizes - 1.0))};
    const double broken = i >= plan.sizes - 2 ? 1 + plan.break_of_largest : 1;
    const double mean = TrueLaw().At(configuration.sizes) * broken *
                        std::exp(plan.misfit_spread * normals[runs + i]);
    const int seeds = plan.uneven ? 1 + i % plan.seeds : plan.seeds;
    for (int seed = 0; seed < seeds; ++seed) {
      configuration.values.push_back(mean *
                                     std::exp(plan.seed_spread * normals[i * plan.seeds + seed]));
    }
  }
  configurations[2].values[0] *= 1 + plan.outlier;
  return configurations;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_LAUNCHER_SCALING_LAW_DRAWN_POINTS_H_
