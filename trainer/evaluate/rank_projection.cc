#include "trainer/evaluate/rank_projection.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/tail.h"
#include "core/spectrum/low_rank.h"
#include "core/task/loss.h"

namespace elastor {
namespace {

// Rows that the head computes at once.
constexpr int64_t kRowsAtOnce = 64;

// What stands behind a probe of a model, by itself: X [rows, features of the probe] to the outputs.
// Thread-safe.
class Head {
 public:
  Head(const ProjectionModel& model, const Probe& probe)
      : graph_(Tail(*model.graph, probe)),
        executor_(graph_),
        weights_(graph_.parameters().flat_size()) {
    for (const ParameterInfo& own : graph_.parameters().parameters()) {
      const ParameterLayout& all = model.graph->parameters();
      const float* const values = model.weights + all[all.Find(own.name)].offset;
      std::copy(values, values + own.size, weights_.begin() + own.offset);
    }
    executor_.Prepare(weights_.data());
  }

  // fill(x) writes the rows of X; read(outputs) takes what the head makes of them.
  template <typename Fill, typename Read>
  void Run(int64_t rows, const Fill& fill, const Read& read) const {
    Workspace<float> workspace(executor_.workspace_plan(), rows);
    Pass<float> pass;
    pass.workspace = &workspace;
    pass.leaves = PassLeaves(rows);
    fill(executor_.Embeddings(pass));
    executor_.Forward(pass);
    read(executor_.Logits(pass));
  }

 private:
  const Graph graph_;
  CpuExecutor<float> executor_;
  std::vector<float> weights_;
};

// 0, then 1, 2, 4, ... and the largest.
std::vector<int64_t> Ranks(int64_t max_rank) {
  std::vector<int64_t> ranks = {0};
  for (int64_t rank = 1; rank < max_rank; rank *= 2) ranks.push_back(rank);
  ranks.push_back(max_rank);
  return ranks;
}

std::string Number(const char* format, const std::optional<double>& value) {
  if (!value) return "";
  char text[32];
  std::snprintf(text, sizeof(text), format, *value);
  return text;
}

}  // namespace

StatusOr<std::vector<RankProjection>> MeasureProjections(const ProjectionModel& model, Split split,
                                                         Evaluation* evaluation,
                                                         Communicator* communicator) {
  const Probe& last = model.graph->probes().back();
  const int last_probe = static_cast<int>(model.graph->probes().size()) - 1;
  const int64_t features = last.shape.features();
  const std::vector<int64_t> ranks = Ranks(std::min(last.shape.tokens, last.shape.width));
  const int64_t outputs = model.task.outputs();
  const int64_t labels = model.task.labels();
  const Head head(model, last);
  const std::unique_ptr<Loss<float>> loss = MakeLoss<float>(model.task);
  std::mutex mutex;  // of metrics, which do not depend on the order of the rows
  std::vector<std::unique_ptr<Metrics>> metrics;  // by rank
  for (size_t r = 0; r < ranks.size(); ++r) {
    metrics.push_back(MakeMetrics(model.task, {.grouped = model.grouped}));
  }

  // Rows [first, first + rows) of a pass.
  const auto measure = [&](const LocalBatch& batch, const EvaluatedRows<float>& pass, int64_t first,
                           int64_t rows) {
    const Panels<const float> x = pass.probe(last_probe);
    std::vector<std::vector<float>> projected(ranks.size(), std::vector<float>(rows * x.features));
    LowRank terms(last.shape.tokens, last.shape.width);
    std::vector<double> matrix(features), sum(features);
    for (int64_t at = 0; at < rows * x.features; at += features) {
      for (int64_t f = 0; f < features; ++f) {
        matrix[f] = x.At(first + at / x.features, at % x.features + f);
      }
      terms.Decompose(matrix);
      std::ranges::fill(sum, 0);
      std::ranges::copy(matrix, projected[0].begin() + at);
      for (size_t r = 1; r < ranks.size(); ++r) {
        for (int64_t i = ranks[r - 1]; i < ranks[r]; ++i) terms.AddTerm(i, sum);
        std::ranges::copy(sum, projected[r].begin() + at);
      }
    }
    const int64_t begin = pass.begin + first;
    const auto of_rows = [&](const auto& values, int64_t width) {
      const std::span all(values);
      return all.empty() ? all : all.subspan(begin * width, rows * width);
    };
    std::vector<float> logits(rows * outputs);
    std::vector<double> losses(rows * model.task.losses());
    std::vector<float> gradients(PanelElements(rows, outputs));
    for (size_t r = 0; r < ranks.size(); ++r) {
      const auto fill = [&](Panels<float> to) {
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t f = 0; f < x.features; ++f) {
            to.At(row, f) = projected[r][row * x.features + f];
          }
        }
      };
      head.Run(rows, fill, [&](Panels<const float> found) {
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t o = 0; o < outputs; ++o) logits[row * outputs + o] = found.At(row, o);
        }
        loss->Compute({.outputs = found, .labels = batch.labels.data() + begin * labels},
                      losses.data(), {gradients.data(), rows, outputs, PanelStride(outputs)});
      });
      const std::lock_guard lock(mutex);
      metrics[r]->Add({.logits = logits,
                       .labels = of_rows(batch.labels, labels),
                       .losses = losses,
                       .weights = of_rows(batch.weights, 1),
                       .groups = of_rows(batch.groups, 1)});
    }
  };
  const auto visit = [&](const LocalBatch& batch, const EvaluatedRows<float>& pass) {
    for (int64_t first = 0; first < pass.rows; first += kRowsAtOnce) {
      measure(batch, pass, first, std::min(kRowsAtOnce, pass.rows - first));
    }
  };
  ELASTOR_RETURN_IF_ERROR(evaluation->VisitBatches(split, visit));
  std::vector<RankProjection> projections;
  for (size_t r = 0; r < ranks.size(); ++r) {
    ELASTOR_ASSIGN_OR_RETURN(std::vector<MetricValues> values, metrics[r]->Reduce(*communicator));
    projections.push_back({ranks[r], std::move(values)});
  }
  return projections;
}

std::vector<EffectiveRank> ScoringRanks(const ProjectionModel& model) {
  const std::optional<Probe> input = LinearInput(*model.graph);
  const Task& task = model.task;
  const int64_t matrices = task.kind == Task::Kind::kClasses ? task.losses() : 1;
  if (!input || input->matrices != matrices) return {};
  const int64_t features = input->shape.features();
  const int64_t outputs = task.outputs() / matrices;  // of one matrix
  std::vector<float> elements(PanelElements(outputs, features));
  const Panels<float> scoring = {elements.data(), outputs, features, PanelStride(features)};
  // Matrix 0 is zero, whose outputs are b, then comes every unit matrix.
  std::vector<float> bias(outputs);
  const Head head(model, *input);
  for (int64_t begin = 0; begin <= features; begin += kRowsAtOnce * matrices) {
    const int64_t count = std::min(kRowsAtOnce * matrices, features + 1 - begin);
    const auto fill = [&](Panels<float> x) {
      for (int64_t row = 0; row < x.rows; ++row) {
        for (int64_t f = 0; f < x.features; ++f) x.At(row, f) = 0;
      }
      for (int64_t i = begin == 0 ? 1 : 0; i < count; ++i) {
        x.At(i / matrices, i % matrices * features + begin + i - 1) = 1;
      }
    };
    head.Run((count + matrices - 1) / matrices, fill, [&](Panels<const float> found) {
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t o = 0; o < outputs; ++o) {
          const float output = found.At(i / matrices, i % matrices * outputs + o);
          if (begin + i == 0) {
            bias[o] = output;
          } else {
            scoring.At(o, begin + i - 1) = output - bias[o];
          }
        }
      }
    });
  }
  std::vector<EffectiveRank> ranks;
  Spectrum spectrum(input->shape.tokens, input->shape.width);
  for (int64_t o = 0; o < outputs; ++o) {
    if (o % Spectrum::kRows == 0) spectrum.Measure<float>(scoring, o);
    ranks.push_back(spectrum.rank(o % Spectrum::kRows));
  }
  return ranks;
}

std::optional<ScoringRecord> MeasureScoring(const ProjectionModel& model) {
  const std::vector<EffectiveRank> ranks = ScoringRanks(model);
  if (ranks.empty()) return std::nullopt;
  const Shape& shape = model.graph->probes().back().shape;
  ScoringRecord record = {.matrices = static_cast<int64_t>(ranks.size()),
                          .max_rank = std::min(shape.tokens, shape.width)};
  for (const EffectiveRank& rank : ranks) {
    record.stable += rank.stable / static_cast<double>(ranks.size());
    record.entropy += rank.entropy / static_cast<double>(ranks.size());
  }
  return record;
}

std::string ProjectionsCsv(const std::vector<RankProjection>& projections) {
  std::string text = "rank,label,rows,auc,logloss,gauc,bits_per_label\n";
  for (const auto& [rank, labels] : projections) {
    for (const MetricValues& values : labels) {
      StrAppend(&text, rank, ",", values.label, ",", values.rows, ",", Number("%.9g", values.auc),
                ",", Number("%.9g", values.logloss), ",", Number("%.9g", values.gauc), ",",
                Number("%.9g", values.bits_per_label), "\n");
    }
  }
  return text;
}

std::string ProjectionsText(const std::vector<RankProjection>& projections,
                            const std::optional<ScoringRecord>& scoring) {
  const bool classes = projections[0].labels[0].bits_per_label.has_value();
  std::string text = StrCat("rank of X  ", classes ? "   bits" : "    auc", "  logloss\n");
  for (const auto& [rank, labels] : projections) {
    for (const MetricValues& values : labels) {
      char line[64];
      std::snprintf(line, sizeof(line), "%-9s  %7s  %7.5f",
                    rank == 0 ? "as it is" : std::to_string(rank).c_str(),
                    Number("%.5f", classes ? values.bits_per_label : values.auc).c_str(),
                    values.logloss);
      text += line + (values.label.empty() ? "" : "  " + values.label) + "\n";
    }
  }
  if (!scoring) return text;
  char line[128];
  std::snprintf(line, sizeof(line),
                "scoring matrices of the head: %lld, mean stable rank %.3f, entropy %.3f\n",
                static_cast<long long>(scoring->matrices), scoring->stable, scoring->entropy);
  return text + line;
}

}  // namespace elastor
