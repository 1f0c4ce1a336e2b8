#include "trainer/experiment/describe.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "collective/dense_reduce.h"
#include "core/base/json.h"
#include "core/base/sizes.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/graph.h"
#include "core/graph/per_sample.h"
#include "core/optimizer/optimizer_options.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/memory_plan.h"
#include "trainer/experiment/resolved_model.h"

namespace elastor {
namespace {

Json DenseParameters(const ParameterLayout& layout) {
  Json all = Json::array();
  for (const ParameterInfo& p : layout.parameters()) {
    all.push_back({{"name", p.name}, {"shape", p.shape}});
  }
  return all;
}

Json Lines(const std::string& text) {
  Json lines = Json::array();
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

int64_t Parameters(const std::vector<TableSpec>& tables) {
  int64_t parameters = 0;
  for (const TableSpec& table : tables) {
    if (!table.counts()) AddSize(SizeProduct({table.rows, table.width}), &parameters);
  }
  return parameters;
}

// Size of the tables over all ranks, and in bytes on the rank that holds most.
Json Embeddings(const std::vector<TableSpec>& tables, const ShardPlan& plan) {
  return {{"tables", tables.size()},
          {"parameters", Parameters(tables)},
          {"bytes_on_fullest_rank", std::ranges::max(plan.BytesOfRanks())}};
}

struct MemoryOfRanks {
  RankMemory fullest;  // of the rank that is sure to take most
  int64_t most = 0;    // that any rank may take
};
MemoryOfRanks OfRanks(const MemoryPlan& plan, const ShardPlan& shards) {
  MemoryOfRanks of_ranks;
  for (int rank = 0; rank < shards.ranks(); ++rank) {
    const RankMemory memory = plan.OfRank(shards, rank);
    if (rank == 0 || memory.sure() > of_ranks.fullest.sure()) of_ranks.fullest = memory;
    of_ranks.most = std::max(of_ranks.most, memory.most());
  }
  return of_ranks;
}

MemoryPlan::Options TrainingMemory(const Experiment& experiment, const DatasetInfo& data) {
  MemoryPlan::Options memory;
  if (const std::string& path = experiment.data().path(); !path.empty()) {
    memory.occurring_ids = OccurringIds(path, data);
  }
  return memory;
}

Json Memory(const MemoryPlan& plan, const ShardPlan& shards) {
  const auto [fullest, most] = OfRanks(plan, shards);
  Json json = {{"surely_touched_bytes_on_fullest_rank", fullest.sure()}};
  for (int part = 0; part < kMemoryParts; ++part) {
    json["surely_touched"][MemoryPartKey(static_cast<MemoryPart>(part))] = fullest.surely[part];
  }
  json["most_bytes_on_fullest_rank"] = most;
  if (fullest.most_files > 0) {
    json["surely_written_file_bytes_on_fullest_rank"] = fullest.files;
    json["most_file_bytes_on_fullest_rank"] = fullest.most_files;
  }
  return json;
}

// Bytes that one CPU thread needs for the activations of the largest training pass.
int64_t ActivationBytes(const Graph& graph) {
  const int64_t panels = kPassRows / kPanelRows;
  return CpuExecutor<float>(graph).workspace_plan().elements_per_panel * panels *
         static_cast<int64_t>(sizeof(float));
}

// The wanted and other numbers of tokens, each with the width that makes as many features as are
// wanted, or nearly: what is legal of them, and what it costs. null of models without tokens.
Json TokenShapes(const Experiment& experiment, const DatasetInfo& data, int64_t fields) {
  if (!experiment.model().has_rank_elastor() && !experiment.model().has_rank_mixer())
    return nullptr;
  const auto config_of = [](Experiment* of) {
    ModelConfig* model = of->mutable_model();
    return model->has_rank_mixer() ? model->mutable_rank_mixer() : model->mutable_rank_elastor();
  };
  // Without the defaults that follow from the shape.
  const Experiment distinct = DistinctFields(experiment);
  Experiment variant = experiment;
  const TokenModelConfig wanted = *config_of(&variant);
  const int64_t wanted_tokens = wanted.tokens(), wanted_width = wanted.token_width();
  const double features = static_cast<double>(wanted_tokens * wanted_width);
  // Swapped blocks have D / T columns; else widths of whole vectors are the fastest.
  const bool swaps = experiment.model().has_rank_mixer() ||
                     wanted.mixing().kind() == MixingConfig::BLOCK_TRANSPOSE;
  Json shapes = Json::array();
  for (const int64_t tokens : std::set<int64_t>{4, 8, 16, 32, 64, fields, wanted_tokens}) {
    const int64_t step = swaps ? tokens : 8;
    const int64_t width =
        tokens == wanted_tokens
            ? wanted_width
            : step *
                  std::max<int64_t>(1, std::llround(features / static_cast<double>(tokens * step)));
    if (static_cast<double>(tokens * width) > 2 * features) continue;
    variant = distinct;
    config_of(&variant)->set_tokens(static_cast<int32_t>(tokens));
    config_of(&variant)->set_token_width(static_cast<int32_t>(width));
    ResolveDefaults(&variant);
    if (!ValidateExperiment(variant).ok()) continue;
    const Graph graph = MakeGraph(variant, data);
    shapes.push_back({{"tokens", tokens},
                      {"token_width", width},
                      {"dense_parameters", graph.parameters().element_count()},
                      {"multiply_adds_per_sample_forward", graph.multiply_adds()},
                      {"wanted", tokens == wanted_tokens}});
  }
  return shapes;
}

// The rows of the data; of what is assumed when there is none, the fields.
Status CheckShape(const Experiment& experiment, const DatasetInfo& data) {
  if (!experiment.data().path().empty()) return TrainingRows(experiment, data).status();
  const DataShape& shape = experiment.data().shape();
  if (shape.text_length() > 1 || shape.image_side() > 0) return OkStatus();
  const int bags = shape.bags_of_fields_size();
  const int tables = shape.ids_of_fields_size();
  if (bags > 0 && bags != tables) {
    return UserError(StrCat("data.shape.bags_of_fields: ", bags,
                            " numbers; expected one for each of ", tables, " ids_of_fields"));
  }
  if (tables > 0 && shape.categorical_fields() > 0) {
    return UserError(StrCat("data.shape.categorical_fields: ", shape.categorical_fields(),
                            "; expected 0 beside ids_of_fields, which take its place"));
  }
  if (tables > 0) return OkStatus();
  if (shape.numeric_fields() > 0 && shape.categorical_fields() <= 0) return OkStatus();
  if (shape.categorical_fields() > 0 && shape.ids_per_field() > 0) return OkStatus();
  return UserError(
      "data.shape: no field, or none with ids; expected numeric_fields, or categorical_fields and "
      "ids_per_field, or a prepared data set as data.path");
}

}  // namespace

StatusOr<Json> Describe(const Experiment& experiment, const DatasetInfo& data, int ranks,
                        int ranks_per_host, int64_t ntk_rows, std::span<const Placement> planned) {
  ELASTOR_RETURN_IF_ERROR(CheckShape(experiment, data));
  ELASTOR_ASSIGN_OR_RETURN(const ResolvedModel model, ResolveModel(experiment, data));
  const Graph& graph = model.graph;
  const ParameterLayout& layout = graph.parameters();
  const std::vector<TableSpec>& tables = model.tables;
  ELASTOR_ASSIGN_OR_RETURN(const ShardPlan plan, MakePlan(experiment, tables, ranks, planned));

  const int64_t slots =
      SlotElements(MakeTrainStepOptions(experiment, data).dense.rule.kind, kParameterBlock);
  int64_t most_slots = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    int64_t blocks = 0;
    for (const Range& bucket : layout.buckets()) {
      blocks += SliceOfRank(bucket, rank, ranks).size() / kParameterBlock;
    }
    most_slots = std::max(most_slots, blocks * slots);
  }
  MemoryPlan::Options memory = TrainingMemory(experiment, data);
  memory.ranks_per_host = ranks_per_host;
  const int64_t element = sizeof(float);
  Json stages = Json::array();
  for (const Probe& probe : graph.probes()) {
    stages.push_back(
        {{"name", probe.name}, {"tokens", probe.shape.tokens}, {"width", probe.shape.width}});
  }
  Json json = {
      {"name", experiment.name()},
      {"ranks", ranks},
      {"virtual_shards", experiment.parallel().virtual_shards()},
      {"fields", graph.features().fields()},
      {"outputs", model.task.outputs()},
      {"dense_parameters", layout.element_count()},
      {"multiply_adds_per_sample_forward", graph.multiply_adds()},
      // Forward, input gradients and weight gradients: three products, two FLOPs a multiply-add.
      {"training_flops_per_sample", 6 * graph.multiply_adds()},
      {"bytes_moved_per_sample_forward", graph.numbers_moved() * element},
      {"activation_bytes_per_thread", ActivationBytes(graph)},
      {"dense_bytes_per_rank", layout.flat_size() * element},
      {"dense_slot_bytes_on_fullest_rank", most_slots * element},
      {"embeddings", Embeddings(tables, plan)},
      {"memory", Memory(MemoryPlan(experiment, data, &graph, memory), plan)},
      {"stages", stages},
      {"token_shapes", TokenShapes(experiment, data, graph.features().fields())},
      {"plan", Lines(plan.ToString())},
      {"dense", DenseParameters(layout)},
  };
  if (ntk_rows > 0) {
    ELASTOR_RETURN_IF_ERROR(CheckPerSampleGradients(graph));
    json["ntk_memory"] = Memory(
        MemoryPlan(ForInference(experiment), data, &graph, {.trains = false, .ntk_rows = ntk_rows}),
        plan);
  }
  return json;
}

StatusOr<RunFigures> DescribeFigures(const Experiment& experiment, const DatasetInfo& data,
                                     int ranks) {
  ELASTOR_RETURN_IF_ERROR(CheckShape(experiment, data));
  ELASTOR_ASSIGN_OR_RETURN(const ResolvedModel model, ResolveModel(experiment, data));
  ELASTOR_ASSIGN_OR_RETURN(const ShardPlan shards, MakePlan(experiment, model.tables, ranks));
  const MemoryPlan memory(experiment, data, &model.graph, TrainingMemory(experiment, data));
  return RunFigures{.dense_parameters = model.graph.parameters().element_count(),
                    .embedding_parameters = Parameters(model.tables),
                    .multiply_adds = model.graph.multiply_adds(),
                    .sure_bytes = OfRanks(memory, shards).fullest.sure()};
}

}  // namespace elastor
