#include "launcher/conditioning/studies.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/student_t.h"
#include "core/base/text.h"
#include "core/conditioning/approximations.h"
#include "core/conditioning/dynamics.h"
#include "core/conditioning/two_layer.h"
#include "core/report/chart.h"
#include "core/theory/claim.h"

namespace elastor {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Inputs kBothInputs[] = {Inputs::kGaussian, Inputs::kNormalised};
// Seeds of labels are these beyond those of their inputs.
constexpr uint64_t kLabels = 1000;

std::string NameOf(Inputs inputs) {
  return inputs == Inputs::kGaussian ? "gaussian" : "normalised";
}

struct Pair {
  Activation activation;
  const char* plain;
  const char* gated;
};
constexpr Pair kPairs[] = {{Activation::kRelu, "ReLU", "ReGLU"},
                           {Activation::kGelu, "GELU", "GEGLU"},
                           {Activation::kSwish, "SiLU", "SwiGLU"}};

// "%.9g", empty for what is not a number.
std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return std::isfinite(value) ? text : "";
}
std::string Number(int64_t value) { return std::to_string(value); }
std::string Number(const std::string& text) { return text; }

template <typename... Values>
std::string Line(const Values&... values) {
  std::string line;
  ((line += (line.empty() ? "" : ",") + Number(values)), ...);
  return line + "\n";
}

// Mean and 95 % interval of the finite values.
ChartPoint PointOf(double x, const std::vector<double>& values) {
  double sum = 0, squares = 0;
  int64_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  const double mean = sum / static_cast<double>(count);
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - mean) * (value - mean);
  }
  if (count < 2) return {.x = x, .y = mean};
  const double half = MeanHalfWidth(std::sqrt(squares / static_cast<double>(count - 1)), count);
  return {.x = x, .y = mean, .low = mean - half, .high = mean + half};
}

KernelPair Kernels(Inputs inputs, int64_t n, int64_t d, double m, uint64_t seed,
                   Activation activation = Activation::kRelu) {
  return ExpectedKernels(ExpectPairs(DrawInputs(inputs, n, d, seed), activation), d, m);
}

// Figure 2: condition numbers over the dimension, m = 100 d.
std::vector<StudyFile> ConditionNumbers(const StudyOptions& options) {
  const int64_t n = options.condition_rows;
  constexpr int64_t kDimensions[] = {10, 20, 40, 80, 160, 320};
  std::string table = Line(std::string(
      "inputs,activation,n,d,m,seed,plain_max,plain_min,plain_kappa,gated_max,gated_min,gated_"
      "kappa,"
      "printed_plain_kappa,printed_gated_kappa,corrected_plain_kappa,linearised_plain_kappa"));
  std::vector<StudyFile> files;
  for (const Inputs inputs : kBothInputs) {
    LineChart estimates = {.title = "Condition numbers, " + NameOf(inputs) + " inputs",
                           .subtitle = StrCat("n = ", n,
                                              ", m = 100 d; means and 95 % intervals over draws of "
                                              "inputs. B.6 and B.9 are the paper's estimates."),
                           .x = {.title = "dimension d of the inputs", .logarithmic = true},
                           .y = {.title = "condition number", .logarithmic = true},
                           .series = {{"ReLU", {}},
                                      {"ReLU, B.6 and B.9", {}},
                                      {"ReLU, B.9 corrected", {}},
                                      {"ReLU, linearised (10)", {}},
                                      {"ReGLU", {}},
                                      {"ReGLU, B.6 and B.9", {}}}};
    LineChart activations = estimates;
    activations.title = "Condition numbers by activation, " + NameOf(inputs) + " inputs";
    activations.subtitle =
        StrCat("n = ", n, ", m = 100 d; means and 95 % intervals over draws of inputs.");
    activations.series.clear();
    for (const Pair& pair : kPairs) {
      ChartSeries plain_series = {pair.plain, {}}, gated_series = {pair.gated, {}};
      for (const int64_t d : kDimensions) {
        const auto x = static_cast<double>(d), m = 100 * x;
        const bool relu = pair.activation == Activation::kRelu;
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const EigenvalueEstimates printed = PrintedEstimates(n, d, m);
        const EigenvalueEstimates corrected = CorrectedEstimates(n, d, m);
        std::vector<double> plains, gateds, linears;
        for (int64_t seed = 1; seed <= options.seeds; ++seed) {
          const MatrixXd rows = DrawInputs(inputs, n, d, static_cast<uint64_t>(seed));
          const KernelPair kernels = ExpectedKernels(ExpectPairs(rows, pair.activation), d, m);
          const Conditioning plain = ConditioningOf(kernels.plain);
          const Conditioning gated = ConditioningOf(kernels.gated);
          const double linear =
              relu ? ConditioningOf(LinearisedPlainKernel(rows, m)).condition_number() : nan;
          plains.push_back(plain.condition_number());
          gateds.push_back(gated.condition_number());
          linears.push_back(linear);
          table +=
              Line(NameOf(inputs), std::string(pair.plain), n, d, m, seed, plain.lambda_max,
                   plain.lambda_min, plain.condition_number(), gated.lambda_max, gated.lambda_min,
                   gated.condition_number(), relu ? printed.plain_condition_number() : nan,
                   relu ? printed.gated_condition_number() : nan,
                   relu ? corrected.plain_condition_number() : nan, linear);
        }
        plain_series.points.push_back(PointOf(x, plains));
        gated_series.points.push_back(PointOf(x, gateds));
        if (!relu) continue;
        const ChartPoint points[] = {plain_series.points.back(),
                                     {.x = x, .y = printed.plain_condition_number()},
                                     {.x = x, .y = corrected.plain_condition_number()},
                                     PointOf(x, linears),
                                     gated_series.points.back(),
                                     {.x = x, .y = printed.gated_condition_number()}};
        for (size_t i = 0; i < std::size(points); ++i) {
          estimates.series[i].points.push_back(points[i]);
        }
      }
      activations.series.push_back(plain_series);
      activations.series.push_back(gated_series);
    }
    files.push_back({"fig2_" + NameOf(inputs) + ".svg", ToSvg(estimates)});
    files.push_back({"fig2_activations_" + NameOf(inputs) + ".svg", ToSvg(activations)});
  }
  files.push_back({"condition_numbers.csv", table});
  return files;
}

// Kernels of finite networks against their expectation, n = 200, d = 100, Gaussian inputs.
std::vector<StudyFile> FiniteWidths(const StudyOptions& options) {
  constexpr int64_t kN = 200, kD = 100;
  std::string table = Line(
      std::string("activation,n,d,m,seed,plain_kappa,plain_expected,gated_kappa,gated_expected"));
  for (const Pair& pair : kPairs) {
    for (const int64_t m : {1024, 4096, 16384}) {
      for (int64_t seed = 1; seed <= options.seeds; ++seed) {
        const auto stream = static_cast<uint64_t>(seed);
        const MatrixXd x = DrawInputs(Inputs::kGaussian, kN, kD, stream);
        const KernelPair finite = FiniteKernels(x, pair.activation, m, stream);
        const KernelPair expected =
            ExpectedKernels(ExpectPairs(x, pair.activation), kD, static_cast<double>(m));
        table += Line(std::string(pair.plain), kN, kD, m, seed,
                      ConditioningOf(finite.plain).condition_number(),
                      ConditioningOf(expected.plain).condition_number(),
                      ConditioningOf(finite.gated).condition_number(),
                      ConditioningOf(expected.gated).condition_number());
      }
    }
  }
  return {{"finite_widths.csv", table}};
}

// Figure 4: the kernels themselves.
std::vector<StudyFile> HeatMaps(const StudyOptions&) {
  constexpr int64_t kN = 32, kD = 20;
  std::vector<StudyFile> files;
  for (const Inputs inputs : kBothInputs) {
    const KernelPair kernels = Kernels(inputs, kN, kD, 100.0 * kD, /*seed=*/1);
    HeatMap map = {.title = "Kernels of 32 inputs, " + NameOf(inputs),
                   .subtitle = "d = 20, m = 2,000; elements over m.",
                   .columns = kN,
                   .matrices = {{"ReLU", {}}, {"ReGLU", {}}}};
    for (int64_t i = 0; i < kN; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        map.matrices[0].values.push_back(kernels.plain(i, j) / (100.0 * kD));
        map.matrices[1].values.push_back(kernels.gated(i, j) / (100.0 * kD));
      }
    }
    files.push_back({"fig4_" + NameOf(inputs) + ".svg", ToSvg(map)});
  }
  return files;
}

// Figure 5: outputs of two samples of cosine 0.8, m to infinity (kernels over m), |x|^2 = d.
std::vector<StudyFile> TwoSamples(const StudyOptions&) {
  constexpr double kEta = 0.02;
  constexpr int64_t kSteps[] = {30, 70, 150, 1000};
  MatrixXd x(2, 2);
  x << 1, 0, 0.8, 0.6;
  x *= std::sqrt(2.0);
  const KernelPair kernels = OutputCovariances(ExpectPairs(x, Activation::kRelu));
  const VectorXd y = Eigen::Vector2d(1, 0.6);
  const MatrixXd outputs[] = {OutputTrajectory(kernels.plain, y, kEta, 1000),
                              OutputTrajectory(kernels.gated, y, kEta, 1000)};
  std::string table = Line(std::string("network,step,z1,z2,distance"));
  std::vector<StudyFile> files;
  for (const int64_t steps : kSteps) {
    LineChart chart = {
        .title = StrCat("Outputs of two samples, ", steps, " steps"),
        .subtitle = "Cosine 0.8, y = (1, 0.6), step size 0.02 in the kernel regime.",
        .x = {.title = "output of the first"},
        .y = {.title = "output of the second"},
        .series = {{"ReLU", {}}, {"ReGLU", {}}, {"labels", {{.x = y[0], .y = y[1]}}}}};
    for (int network = 0; network < 2; ++network) {
      // About 30 markers.
      const int64_t stride = std::max<int64_t>(1, steps / 30);
      for (int64_t k = 0; k <= steps; k += stride) {
        chart.series[network].points.push_back(
            {.x = outputs[network](0, k), .y = outputs[network](1, k)});
      }
      table += Line(chart.series[network].name, steps, outputs[network](0, steps),
                    outputs[network](1, steps), (outputs[network].col(steps) - y).norm());
    }
    files.push_back({StrCat("fig5_", steps, ".svg"), ToSvg(chart)});
  }
  files.push_back({"two_samples.csv", table});
  return files;
}

// Inputs, labels and what section 4 says of them.
struct Descent {
  Descent(MatrixXd inputs, VectorXd labels, int64_t m, Activation activation = Activation::kRelu)
      : m(m),
        x(std::move(inputs)),
        y(std::move(labels)),
        pairs(ExpectPairs(x, activation)),
        kernels(ExpectedKernels(pairs, x.cols(), static_cast<double>(m))),
        plain_parts(Decompose(kernels.plain)),
        gated_parts(Decompose(kernels.gated)),
        plain(plain_parts, OutputCovariances(pairs).plain, y),
        gated(gated_parts, OutputCovariances(pairs).gated, y) {}
  // A draw with labels of N(0, 1), m = 100 d.
  Descent(Inputs inputs, int64_t n, int64_t d, uint64_t seed,
          Activation activation = Activation::kRelu)
      : Descent(DrawInputs(inputs, n, d, seed), DrawInputs(Inputs::kGaussian, n, 1, kLabels + seed),
                100 * d, activation) {}

  // Mean losses over `draws` draws of weights.
  std::vector<double> Measure(Network network, Activation activation, double eta, int64_t steps,
                              int64_t draws) const {
    std::vector<double> mean(steps + 1, 0);
    for (int64_t draw = 1; draw <= draws; ++draw) {
      const std::vector<double> losses =
          TrainingLosses(x, y, network, activation, m, eta, steps, static_cast<uint64_t>(draw));
      for (int64_t k = 0; k <= steps; ++k) mean[k] += losses[k] / static_cast<double>(draws);
    }
    return mean;
  }

  int64_t m;
  MatrixXd x;
  VectorXd y;
  PairExpectations pairs;
  KernelPair kernels;
  Eigendecomposition plain_parts, gated_parts;
  ExpectedLoss plain, gated;
};

// Losses of descent and their expectation, as lines of a table and a picture.
StudyFile DrawLosses(const Descent& descent, const Pair& pair, double fraction, int64_t steps,
                     int64_t draws, const std::string& what, const std::string& file,
                     std::string* table) {
  const double eta = 2 * fraction / descent.plain.lambda_max();
  const std::vector<double> plain =
      descent.Measure(Network::kPlain, pair.activation, eta, steps, draws);
  const std::vector<double> gated =
      descent.Measure(Network::kGated, pair.activation, eta, steps, draws);
  constexpr int64_t kMost = 1'000'000;
  const std::vector<int64_t> crossings = Crossings(descent.plain, descent.gated, eta, kMost);
  LineChart chart = {
      .title = StrCat(pair.plain, " and ", pair.gated, ": losses"),
      .subtitle =
          StrCat(what, ", step ", fraction == 0.5 ? "1" : "1/2",
                 " / lambda_max(K); means over draws of weights, and Prop. 4.1 corrected, by "
                 "which they cross ",
                 crossings.empty() ? "in none of a million steps."
                                   : StrCat("at step ", crossings[0], ".")),
      .x = {.title = "step"},
      .y = {.title = "loss", .logarithmic = true},
      .series = {{pair.plain, {}},
                 {pair.gated, {}},
                 {std::string(pair.plain) + ", expected", {}},
                 {std::string(pair.gated) + ", expected", {}}}};
  for (int64_t k = 0; k <= steps; ++k) {
    const double losses[] = {plain[k], gated[k], descent.plain.At(eta, k),
                             descent.gated.At(eta, k)};
    *table += Line(std::string(pair.plain), descent.x.rows(), descent.x.cols(), descent.m, fraction,
                   k, losses[0], losses[2], losses[1], losses[3]);
    for (size_t i = 0; k % 2 == 0 && i < std::size(losses); ++i) {
      chart.series[i].points.push_back({.x = static_cast<double>(k), .y = losses[i]});
    }
  }
  return {file + std::string(pair.plain) + (fraction == 0.5 ? "_high.svg" : "_low.svg"),
          ToSvg(chart)};
}

constexpr double kFractions[] = {0.25, 0.5};  // of 2 / lambda_max(K)
constexpr char kLossColumns[] =
    "activation,n,d,m,fraction,step,plain,plain_expected,gated,gated_expected";
constexpr int64_t kLossSteps = 60;

// Figure 6, Gaussian inputs and labels, n = 300, d = 20.
std::vector<StudyFile> Losses(const StudyOptions& options) {
  std::string table = Line(std::string(kLossColumns));
  std::vector<StudyFile> files;
  for (const Pair& pair : kPairs) {
    const Descent descent(Inputs::kGaussian, 300, 20, /*seed=*/1, pair.activation);
    for (const double fraction : kFractions) {
      files.push_back(DrawLosses(descent, pair, fraction, kLossSteps, options.seeds,
                                 "n = 300, d = 20, m = 2,000, Gaussian inputs and labels", "fig6_",
                                 &table));
    }
  }
  files.push_back({"losses.csv", table});
  return files;
}

// Figure 6, images scaled to |x|^2 = d; labels are their classes, of mean 0 and variance 1.
std::vector<StudyFile> ImageLosses(const StudyOptions& options) {
  if (options.images.rows() == 0) return {};
  constexpr int64_t kUnits = 2048;
  const double root = std::sqrt(static_cast<double>(options.images.cols()));
  MatrixXd x = options.images;
  for (int64_t i = 0; i < x.rows(); ++i) x.row(i) *= root / x.row(i).norm();
  VectorXd y = options.classes.array() - options.classes.mean();
  y *= std::sqrt(static_cast<double>(y.size())) / y.norm();
  std::string table = Line(std::string(kLossColumns));
  std::vector<StudyFile> files;
  for (const Pair& pair : kPairs) {
    const Descent descent(x, y, kUnits, pair.activation);
    for (const double fraction : kFractions) {
      files.push_back(DrawLosses(descent, pair, fraction, kLossSteps, options.seeds,
                                 "Images, m = 2,048", "fig6_images_", &table));
    }
  }
  files.push_back({"image_losses.csv", table});
  return files;
}

// The steps at which the losses cross, predicted and measured, Gaussian inputs and labels.
std::vector<StudyFile> LossCrossings(const StudyOptions& options) {
  struct Setting {
    int64_t n, d;
    double fraction;  // of 2 / lambda_max(K)
  };
  std::vector<Setting> settings = {
      {300, 10, 0.25}, {300, 10, 0.5}, {300, 10, 0.9}, {300, 20, 0.5}, {300, 40, 0.5}};
  if (options.large) settings.push_back({1000, 20, 0.5});
  constexpr int64_t kMost = 1'000'000, kMostMeasured = 400, kWeights = 3;
  std::string table = Line(
      std::string("n,d,m,fraction,seed,expected,second_expected,measured,printed,second_printed"));
  for (const Setting& setting : settings) {
    for (int64_t seed = 1; seed <= options.seeds; ++seed) {
      const Descent descent(Inputs::kGaussian, setting.n, setting.d, static_cast<uint64_t>(seed));
      const double eta = 2 * setting.fraction / descent.plain.lambda_max();
      const std::vector<int64_t> expected = Crossings(descent.plain, descent.gated, eta, kMost);
      const std::vector<int64_t> printed =
          Crossings({descent.plain_parts, descent.kernels.plain, descent.y},
                    {descent.gated_parts, descent.kernels.gated, descent.y}, eta, kMost);
      const int64_t steps =
          std::min(kMostMeasured, expected.empty() ? kMostMeasured : 2 * expected[0] + 10);
      const std::vector<double> plain =
          descent.Measure(Network::kPlain, Activation::kRelu, eta, steps, kWeights);
      const std::vector<double> gated =
          descent.Measure(Network::kGated, Activation::kRelu, eta, steps, kWeights);
      // From the first step on at which the plain network leads: at initialisation draws differ.
      int64_t step = 0;
      while (step <= steps && plain[step] >= gated[step]) ++step;
      while (step <= steps && plain[step] < gated[step]) ++step;
      const auto at = [](const std::vector<int64_t>& crossings, size_t i) {
        return i < crossings.size() ? Number(crossings[i]) : std::string();
      };
      table += Line(setting.n, setting.d, descent.m, setting.fraction, seed, at(expected, 0),
                    at(expected, 1), step <= steps ? Number(step) : std::string(), at(printed, 0),
                    at(printed, 1));
    }
  }
  return {{"crossings.csv", table}};
}

// What one draw of inputs and labels says of all claims.
struct ClaimOfDraw {
  Claim claim;
  Finding finding;
};

// |measured / estimate - 1| <= 0.1.
ClaimOfDraw Near(const std::string& name, const std::string& statement, double measured,
                 double estimate) {
  return {{name, statement, "", Relation::kAtMost},
          {.bound = 0.1, .measured = std::abs(measured / estimate - 1)}};
}

std::vector<ClaimOfDraw> ClaimsOf(Inputs inputs, int64_t n, int64_t d, uint64_t seed) {
  const Descent descent(inputs, n, d, seed);
  const auto m = static_cast<double>(descent.m);
  const KernelPair& k = descent.kernels;
  const Conditioning plain = ConditioningOf(descent.plain_parts.values);
  const Conditioning gated = ConditioningOf(descent.gated_parts.values);
  const EigenvalueEstimates printed = PrintedEstimates(n, d, m);
  const EigenvalueEstimates corrected = CorrectedEstimates(n, d, m);
  const auto cosines = [](const MatrixXd& a) {
    const VectorXd r = a.diagonal().cwiseSqrt();
    return MatrixXd(a.cwiseQuotient(r * r.transpose()));
  };
  const MatrixXd identity =
      k.plain.cwiseProduct(descent.pairs.gram) +
      static_cast<double>(d) * descent.pairs.gram.cwiseProduct(descent.pairs.values);
  const double traces = k.plain.squaredNorm() - k.gated.squaredNorm();
  const double eta = 1 / plain.lambda_max;
  const auto first_drop = [&](const ExpectedLoss& loss) {
    return loss.At(eta / 100, 0) - loss.At(eta / 100, 1);
  };
  const auto late = static_cast<int64_t>(
      10 * std::max(plain.lambda_max / plain.lambda_min, plain.lambda_max / gated.lambda_min));
  return {
      {{"eq. 5, exact", "max |K~ - (K * G + G * E[phi phi])| <= 1e-14 max |K~|, G = X X^T / d", "",
        Relation::kAtMost},
       {.bound = 1e-14,
        .measured = (k.gated - identity).cwiseAbs().maxCoeff() / k.gated.cwiseAbs().maxCoeff()}},
      {{"eq. 8", "max |cos~ - cos cos(x, x')| <= 1e-4", "", Relation::kAtMost},
       {.bound = 1e-4,
        .measured = (cosines(k.gated) - cosines(k.plain).cwiseProduct(cosines(descent.pairs.gram)))
                        .cwiseAbs()
                        .maxCoeff()}},
      {{"3.1 (2)", "lambda_min(K~) >= lambda_min(K)", "", Relation::kAtLeast},
       {plain.lambda_min / m, gated.lambda_min / m, 0}},
      Near("B.6 plain", "|lambda_max(K) / B.6 - 1| <= 0.1", plain.lambda_max, printed.plain_max),
      {{"B.6 lower", "lambda_max(K~) / m >= B.6's lower bound", "", Relation::kAtLeast},
       {printed.gated_max_lower / m, gated.lambda_max / m, 0}},
      {{"B.6 upper", "lambda_max(K~) / m <= B.6's upper bound", "", Relation::kAtMost},
       {printed.gated_max_upper / m, gated.lambda_max / m, 0}},
      {{"B.6 upper, corrected", "lambda_max(K~) / m <= it with 2 sqrt(n d)", "", Relation::kAtMost},
       {corrected.gated_max_upper / m, gated.lambda_max / m, 0}},
      Near("B.9 plain", "|lambda_min(K) / B.9 - 1| <= 0.1", plain.lambda_min, printed.plain_min),
      Near("B.9 plain, corrected", "|lambda_min(K) / corrected B.9 - 1| <= 0.1", plain.lambda_min,
           corrected.plain_min),
      Near("B.9 gated", "|lambda_min(K~) / B.9 - 1| <= 0.1", gated.lambda_min, printed.gated_min),
      Near("4.2 trace", "|Tr(K^2 - K~^2) / the proof's - 1| <= 0.1", traces,
           PrintedTraceDifference(n, d, m)),
      Near("4.2 trace, corrected", "|Tr(K^2 - K~^2) / without the 1/d - 1| <= 0.1", traces,
           CorrectedTraceDifference(n, d, m)),
      {{"4.2 (1)", "E[L_0 - L_1] > E[L~_0 - L~_1] at eta = 0.01 / lambda_max(K)",
        "y^T (K - K~) y / m", Relation::kAbove},
       {first_drop(descent.gated), first_drop(descent.plain),
        descent.y.dot((k.plain - k.gated) * descent.y) / m}},
      {{"4.2 (2)", "log E[L_k] > log E[L~_k] at k = 10 kappa", "", Relation::kAbove},
       {std::log(descent.gated.At(eta, late)), std::log(descent.plain.At(eta, late)), 0}},
  };
}

// Every claim over draws of inputs.
std::vector<StudyFile> Claims(const StudyOptions& options) {
  struct Size {
    int64_t n, d;
  };
  std::vector<Size> sizes = {{300, 10}, {400, 100}, {200, 100}, {300, 300}};
  if (options.large) sizes.insert(sizes.end(), {{800, 10}, {1000, 16}, {1000, 100}});
  std::string table = Line(std::string(
      "inputs,n,d,claim,samples,holds,assumption_holds,bound,measured,statement,assumes"));
  for (const Inputs inputs : kBothInputs) {
    for (const Size& size : sizes) {
      std::vector<std::vector<ClaimOfDraw>> draws;
      for (int64_t seed = 1; seed <= options.seeds; ++seed) {
        draws.push_back(ClaimsOf(inputs, size.n, size.d, static_cast<uint64_t>(seed)));
      }
      for (size_t i = 0; i < draws[0].size(); ++i) {
        const Claim& claim = draws[0][i].claim;
        int64_t holds = 0, assumed = 0;
        double bound = 0, measured = 0;
        for (const std::vector<ClaimOfDraw>& draw : draws) {
          const Finding& finding = draw[i].finding;
          holds += Holds(claim, finding);
          assumed += finding.assumption >= 0;
          bound += finding.bound / static_cast<double>(draws.size());
          measured += finding.measured / static_cast<double>(draws.size());
        }
        table += Line(NameOf(inputs), size.n, size.d, "\"" + claim.name + "\"",
                      static_cast<int64_t>(draws.size()), holds,
                      claim.assumption.empty() ? std::string() : Number(assumed), bound, measured,
                      "\"" + claim.statement + "\"", "\"" + claim.assumption + "\"");
      }
    }
  }
  return {{"claims.csv", table}};
}

}  // namespace

const std::vector<Study>& Studies() {
  static const std::vector<Study> studies = {
      {"condition_numbers", "figure 2: condition numbers over d, exact and estimated",
       ConditionNumbers},
      {"finite_widths", "kernels of finite networks against their expectation", FiniteWidths},
      {"heat_maps", "figure 4: the kernels of 32 inputs", HeatMaps},
      {"two_samples", "figure 5: outputs of two samples", TwoSamples},
      {"losses", "figure 6: losses of descent against Proposition 4.1", Losses},
      {"image_losses", "the same of images, with --images", ImageLosses},
      {"crossings", "the steps at which losses cross, predicted and measured", LossCrossings},
      {"claims", "every claim of the theory over draws of inputs", Claims},
  };
  return studies;
}

}  // namespace elastor
