#include "trainer/evaluate/rank_projection.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

#include "core/graph/cpu/cpu_executor.h"
#include "core/models/token_layers.h"
#include "core/spectrum/low_rank.h"
#include "core/task/loss.h"

namespace elastor {
namespace {

Graph HeadGraph(const TokenModelConfig& config, int64_t outputs) {
  GraphBuilder graph(
      {.categorical_fields = config.tokens(), .embedding_width = config.token_width()}, outputs);
  const Value logits = Head(&graph, "head", config)(graph.Embeddings());
  return std::move(graph).Finish(logits);
}

// A model's head by itself: X [rows, T D] to logits. Thread-safe.
class ProjectedHead {
 public:
  explicit ProjectedHead(const ProjectionModel& model)
      : graph_(HeadGraph(*model.config, model.graph->outputs())),
        executor_(graph_),
        weights_(graph_.parameters().flat_size()) {
    for (const ParameterInfo& own : graph_.parameters().parameters()) {
      const ParameterLayout& all = model.graph->parameters();
      const float* const values = model.weights + all[all.Find(own.name)].offset;
      std::copy(values, values + own.size, weights_.begin() + own.offset);
    }
    executor_.Prepare(weights_.data());
  }

  // fill(x) writes the rows of X; read(logits) takes what the head makes of them.
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
  const auto [tokens, width] = TokenShape(*model.config);
  const int64_t features = tokens * width;
  const std::vector<int64_t> ranks = Ranks(std::min(tokens, width));
  const int last_probe = static_cast<int>(model.graph->probes().size()) - 1;
  const int64_t outputs = model.task.outputs();
  const ProjectedHead head(model);
  const std::unique_ptr<Loss<float>> loss = MakeLoss<float>(model.task);
  // Of the rows of a batch, by rank.
  struct Scores {
    std::unique_ptr<Metrics> metrics;
    std::vector<float> logits;
    std::vector<double> losses;
  };
  std::vector<Scores> scores(ranks.size());
  for (Scores& of_rank : scores) of_rank.metrics = MakeMetrics(model.task, 0, model.grouped);

  const auto visit = [&](const LocalBatch& batch, const EvaluatedRows<float>& pass) {
    const Panels<const float> x = pass.probe(last_probe);
    std::vector<std::vector<float>> projected(ranks.size(),
                                              std::vector<float>(pass.rows * features));
    LowRank terms(tokens, width);
    std::vector<double> matrix(features), sum(features);
    for (int64_t row = 0; row < pass.rows; ++row) {
      for (int64_t f = 0; f < features; ++f) matrix[f] = x.At(row, f);
      terms.Decompose(matrix);
      std::ranges::fill(sum, 0);
      std::ranges::copy(matrix, projected[0].begin() + row * features);
      for (size_t r = 1; r < ranks.size(); ++r) {
        for (int64_t i = ranks[r - 1]; i < ranks[r]; ++i) terms.AddTerm(i, sum);
        std::ranges::copy(sum, projected[r].begin() + row * features);
      }
    }
    for (size_t r = 0; r < ranks.size(); ++r) {
      const auto fill = [&](Panels<float> to) {
        for (int64_t row = 0; row < pass.rows; ++row) {
          for (int64_t f = 0; f < features; ++f) to.At(row, f) = projected[r][row * features + f];
        }
      };
      head.Run(pass.rows, fill, [&](Panels<const float> logits) {
        const int64_t begin = pass.begin * outputs;
        for (int64_t row = 0; row < pass.rows; ++row) {
          for (int64_t o = 0; o < outputs; ++o) {
            scores[r].logits[begin + row * outputs + o] = logits.At(row, o);
          }
        }
        std::vector<float> gradients(PanelElements(pass.rows, outputs));
        loss->Compute(
            {.outputs = logits, .labels = batch.labels.data() + pass.begin * model.task.labels()},
            &scores[r].losses[begin], {gradients.data(), pass.rows, outputs, PanelStride(outputs)});
      });
    }
  };
  const auto begin = [&](const LocalBatch& batch) {
    for (Scores& of_rank : scores) {
      of_rank.logits.resize(batch.rows() * outputs);
      of_rank.losses.resize(batch.rows() * outputs);
    }
  };
  const auto done = [&](const LocalBatch& batch) {
    for (Scores& of_rank : scores) {
      of_rank.metrics->Add({.logits = of_rank.logits,
                            .labels = batch.labels,
                            .losses = of_rank.losses,
                            .weights = batch.weights,
                            .groups = batch.groups});
    }
  };
  ELASTOR_RETURN_IF_ERROR(evaluation->VisitBatches(split, {begin, visit, done}));
  std::vector<RankProjection> projections;
  for (size_t r = 0; r < ranks.size(); ++r) {
    ELASTOR_ASSIGN_OR_RETURN(std::vector<MetricValues> values,
                             scores[r].metrics->Reduce(*communicator));
    projections.push_back({ranks[r], std::move(values)});
  }
  return projections;
}

std::vector<EffectiveRank> ScoringRanks(const ProjectionModel& model) {
  if (model.config->head().hidden_size() > 0) return {};
  const auto [tokens, width] = TokenShape(*model.config);
  const int64_t features = tokens * width;
  // Rows: every unit matrix, then zero, whose logit is b.
  std::vector<EffectiveRank> ranks;
  const auto fill = [&](Panels<float> x) {
    for (int64_t row = 0; row < x.rows; ++row) {
      for (int64_t f = 0; f < features; ++f) x.At(row, f) = row == f ? 1 : 0;
    }
  };
  ProjectedHead(model).Run(features + 1, fill, [&](Panels<const float> logits) {
    for (int64_t o = 0; o < logits.features; ++o) {
      std::vector<float> w(PanelElements(1, features));
      const Panels<float> view = {w.data(), 1, features, PanelStride(features)};
      for (int64_t f = 0; f < features; ++f)
        view.At(0, f) = logits.At(f, o) - logits.At(features, o);
      Spectrum spectrum(tokens, width);
      spectrum.Measure<float>(view, 0);
      ranks.push_back(spectrum.rank(0));
    }
  });
  return ranks;
}

std::string ProjectionsCsv(const std::vector<RankProjection>& projections) {
  std::string text = "rank,label,rows,auc,logloss,gauc\n";
  for (const auto& [rank, labels] : projections) {
    for (const MetricValues& values : labels) {
      text += std::to_string(rank) + "," + values.label + "," + std::to_string(values.rows) + "," +
              Number("%.9g", values.auc) + "," + Number("%.9g", values.logloss) + "," +
              Number("%.9g", values.gauc) + "\n";
    }
  }
  return text;
}

std::string ProjectionsText(const std::vector<RankProjection>& projections,
                            const std::vector<EffectiveRank>& scoring) {
  std::string text = "rank of X      auc  logloss\n";
  for (const auto& [rank, labels] : projections) {
    for (const MetricValues& values : labels) {
      char line[64];
      std::snprintf(line, sizeof(line), "%-9s  %7s  %7.5f",
                    rank == 0 ? "as it is" : std::to_string(rank).c_str(),
                    Number("%.5f", values.auc).c_str(), values.logloss);
      text += line + (values.label.empty() ? "" : "  " + values.label) + "\n";
    }
  }
  for (const EffectiveRank& rank : scoring) {
    char line[96];
    std::snprintf(line, sizeof(line), "the head's scoring matrix: stable rank %.3f, entropy %.3f\n",
                  rank.stable, rank.entropy);
    text += line;
  }
  return text;
}

}  // namespace elastor
