#ifndef ELASTOR_LAUNCHER_SCALING_LAW_REPORT_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_REPORT_H_

#include <string>
#include <vector>

#include "launcher/scaling_law/analysis.h"
#include "launcher/scaling_law/runs.h"

namespace elastor {

// Comparison of two models at equal sizes of one name.
struct ModelComparison {
  std::string first;
  std::string second;
  std::string size_name;
  std::vector<ComparedPrediction> predictions;  // empty: see why_not
  std::string why_not;
};

// Compares two models by their laws of the size, as one of so many comparisons.
ModelComparison CompareModels(const Analysis& first, const Analysis& second,
                              const std::string& size_name, int comparisons = 1);

struct ScalingReport {
  Metric metric = Metric::kLogloss;
  AnalysisOptions options;
  std::vector<Analysis> analyses;  // one a model
  std::vector<ModelComparison> comparisons;
};

// Returns A_k r_k^alpha_k, the coefficient of the size itself.
double PlainCoefficient(const Law& law, size_t k);

// Returns the report for people: the fit, its intervals, the hold-out and the verdict of every
// model, then the comparisons.
std::string ToText(const ScalingReport& report);
// Returns the report and all predictions for programs (docs/use/analysis.md).
std::string ToJson(const ScalingReport& report);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_REPORT_H_
