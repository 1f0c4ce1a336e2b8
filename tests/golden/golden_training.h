#ifndef ELASTOR_TESTS_GOLDEN_GOLDEN_TRAINING_H_
#define ELASTOR_TESTS_GOLDEN_GOLDEN_TRAINING_H_

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "embedding/table.h"
#include "tests/core/models/test_model.h"
#include "trainer/data/dataset.h"
#include "trainer/step/train_step.h"

namespace elastor {

// Twenty steps of a small model, which golden.py trains too. Chosen so that a mistake in a formula
// shows: missing numeric values, repeated ids, a shared table, multi-hot and empty bags, batches of
// several sizes (one with fewer rows than leaves), L2, and clipping at some steps only. Then an
// evaluation of the batch that would come next.
struct GoldenCase {
  std::string name;
  TestModel model;
  double clip_norm = 0;
  int64_t leaves = 4;
  bool sample_weights = false;
  Task task = {};
  // Of float, relative; rounding grows over twenty steps of Adam (2e-6 is seen). 0: it grows so
  // much that float is not compared.
  double float_tolerance = 2e-5;
};
inline void PrintTo(const GoldenCase& golden, std::ostream* out) { *out << golden.name; }
const std::vector<GoldenCase>& GoldenCases();

inline constexpr int kGoldenSteps = 20;
inline constexpr uint64_t kGoldenSeed = 2026;
inline constexpr double kGoldenLearningRate = 0.005;
inline constexpr double kGoldenDenseL2 = 2e-3;
inline constexpr double kGoldenEmbeddingL2 = 5e-3;

std::vector<TableSpec> GoldenTables(const GoldenCase& golden);
const std::vector<FieldSpec>& GoldenFields();
int64_t GoldenBatchRows(int step);
// Rows [begin, end) of the batch of `step`, which counts from 0. labels: of a row, 1 or 2, of which
// the second is missing where the first is 0 and here and there besides.
Rows GoldenRows(int step, int64_t begin, int64_t end, int64_t labels);

// Values by name: the dense parameters and "embedding/<table>", row after row.
using GoldenWeights = std::map<std::string, std::vector<double>>;

struct GoldenOutcome {
  std::vector<StepResult> steps;
  GoldenWeights initial;
  GoldenWeights final;
  double evaluation_logloss = 0;
};
// On ranks, at most the case's leaves, that are threads of this process; one rank runs alone.
// steps: how many to take.
template <typename T>
GoldenOutcome TrainGolden(const GoldenCase& golden, int ranks, int steps);

}  // namespace elastor

#endif  // ELASTOR_TESTS_GOLDEN_GOLDEN_TRAINING_H_
