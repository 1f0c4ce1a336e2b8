// Writes what golden.py starts from: model shapes, settings, initial weights in double and batches.
//   export_weights > start.json
// Numbers have all their digits: nlohmann prints the shortest text that reads back alike.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/models/models.h"
#include "tests/golden/golden_training.h"

namespace elastor {
namespace {

std::string Lower(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  return name;
}

Json ModelJson(const TestModel& test_model) {
  const ModelConfig& config = test_model.config;
  Json model;
  for (const SequenceShape& sequence : test_model.features.sequences) {
    if (config.sequences().has_tokens()) {
      Json& history = model["histories"].emplace_back();
      history = {
          {"name", sequence.name}, {"field", sequence.field}, {"positions", sequence.positions}};
      if (!config.has_hstu_ranker()) continue;
      const HstuRankerConfig& ranker = config.hstu_ranker();
      const bool action = std::ranges::count(ranker.actions(), sequence.name) > 0;
      history["target"] = sequence.target;
      history["role"] = IsContent(ranker, sequence.name) ? "content" : action ? "action" : "time";
      continue;
    }
    Json& encoded = model["sequence"];
    encoded = {{"name", sequence.name},
               {"field", sequence.field},
               {"target", sequence.target},
               {"positions", sequence.positions}};
    if (config.sequences().has_bst()) {
      encoded["encoder"] = "bst";
      encoded["heads"] = config.sequences().bst().heads();
    } else if (config.sequences().has_hstu()) {
      encoded["encoder"] = "hstu";
      encoded["heads"] = config.sequences().hstu().heads();
    } else {
      const DinConfig& din = config.sequences().din();
      encoded["encoder"] = "target_attention";
      encoded["activation"] = Lower(FeedForwardConfig::Gate_Name(din.activation()));
      encoded["softmax"] = din.softmax();
    }
  }
  const auto* const kind = config.GetDescriptor()->FindOneofByName("model");
  model["kind"] = config.GetReflection()->GetOneofFieldDescriptor(config, kind)->name();
  model["first_order"] = test_model.features.first_order;
  if (config.has_auto_int()) {
    model["attention_layers"] = config.auto_int().attention_layers();
    model["heads"] = config.auto_int().heads();
    model["use_wide"] = config.auto_int().use_wide();
  }
  if (config.has_token_mixer_large()) {
    model["tokens"] = config.token_mixer_large().tokens();
    model["residual_every"] = config.token_mixer_large().residual_every();
  }
  if (config.has_one_trans()) {
    model["tokens"] = config.one_trans().tokens();
    model["heads"] = config.one_trans().heads();
    model["blocks"] = config.one_trans().blocks();
    model["pyramid_multiple"] = config.one_trans().pyramid_multiple();
  }
  if (config.has_hstu_ranker()) {
    model["heads"] = config.hstu_ranker().heads();
    model["layers"] = config.hstu_ranker().layers();
    model["request_fields"] = test_model.features.request_fields;
  }
  if (config.has_uni_mixer()) {
    model["tokens"] = config.uni_mixer().tokens();
    model["block_width"] = config.uni_mixer().block_width();
    model["tau"] = config.uni_mixer().tau();
    model["sinkhorn_iterations"] = config.uni_mixer().sinkhorn_iterations();
  }
  if (config.has_matrix_thinker()) {
    const MatrixThinkerConfig& thinker = config.matrix_thinker();
    model["layers"] = thinker.layers();
    model["iterations"] = thinker.iterations();
    model["heads"] = thinker.heads();
    model["attention"] = Lower(MatrixThinkerConfig::Attention_Name(thinker.attention()));
  }
  const auto of_layers = [&](const auto& tokens) {
    model["layers"] = tokens.layers();
    model["activation"] = Lower(FeedForwardConfig::Gate_Name(tokens.activation()));
  };
  if (config.has_transformer()) {
    of_layers(config.transformer());
    model["heads"] = config.transformer().heads();
  }
  if (config.has_vit()) {
    of_layers(config.vit());
    model["heads"] = config.vit().heads();
  }
  if (config.has_mlp_mixer()) of_layers(config.mlp_mixer());
  if (!config.has_rank_elastor() && !config.has_rank_mixer()) return model;
  const TokenModelConfig& tokens =
      config.has_rank_mixer() ? config.rank_mixer() : config.rank_elastor();
  model["convention"] = Lower(TokenModelConfig::Convention_Name(tokens.convention()));
  model["tokens"] = tokens.tokens();
  model["token_width"] = tokens.token_width();
  model["blocks"] = tokens.blocks();
  model["iterations"] = tokens.iterations();
  model["expansion"] = tokens.feed_forward().expansion();
  model["tokenizer"] = Lower(TokenizerConfig::Kind_Name(tokens.tokenizer().kind()));
  model["head"] = Lower(HeadConfig::Kind_Name(tokens.head().kind()));
  return model;
}

// Per row: two labels (null: missing), weight, numeric values (null: missing) and one list of ids a
// field.
Json BatchJson(int step) {
  const int64_t fields = static_cast<int64_t>(GoldenFields().size());
  const Rows rows = GoldenRows(step, 0, GoldenBatchRows(step), /*labels=*/2);
  const int64_t numeric_fields = static_cast<int64_t>(rows.numeric.size()) / rows.rows;
  Json batch;
  for (int64_t row = 0; row < rows.rows; ++row) {
    const float second = rows.labels[2 * row + 1];
    batch["labels"].push_back({rows.labels[2 * row], std::isnan(second) ? Json() : Json(second)});
  }
  batch["weights"] = rows.weights;
  for (int64_t row = 0; row < rows.rows; ++row) {
    Json values;
    for (int64_t i = 0; i < numeric_fields; ++i) {
      const double value = rows.numeric[row * numeric_fields + i];
      values.push_back(std::isnan(value) ? Json() : Json(value));
    }
    batch["numeric"].push_back(values);
    Json bags;
    for (int64_t bag = row * fields; bag < (row + 1) * fields; ++bag) {
      bags.push_back(std::vector<int64_t>(rows.ids.begin() + rows.offsets[bag],
                                          rows.ids.begin() + rows.offsets[bag + 1]));
    }
    batch["ids"].push_back(bags);
  }
  return batch;
}

// The dense weights in their natural shapes, and the tables' rows.
Json WeightsJson(const GoldenCase& golden) {
  Json weights;
  const Graph graph = golden.model.graph();
  const GoldenWeights initial = TrainGolden<double>(golden, /*ranks=*/1, /*steps=*/0).initial;
  for (const ParameterInfo& p : graph.parameters().parameters()) {
    weights[p.name] = {{"shape", p.shape}, {"values", initial.at(p.name)}};
  }
  for (const TableSpec& table : GoldenTables(golden)) {
    const std::string name = "embedding/" + table.name;
    weights[name] = {{"shape", {table.rows, table.width}}, {"values", initial.at(name)}};
  }
  return weights;
}

Json LabelWeights(const Task& task) {
  Json weights;
  for (const Task::Label& label : task.learned) weights.push_back(label.weight);
  return weights;
}

Json StartJson() {
  Json start;
  start["learning_rate"] = kGoldenLearningRate;
  start["dense_l2"] = kGoldenDenseL2;
  start["embedding_l2"] = kGoldenEmbeddingL2;
  const std::vector<TableSpec> tables = GoldenTables(GoldenCases()[0]);
  for (const FieldSpec& field : GoldenFields()) {
    start["fields"].push_back({{"table", tables[field.table].name},
                               {"pooling", field.pooling == Pooling::kMean ? "mean" : "sum"}});
  }
  for (int step = 0; step < kGoldenSteps; ++step) start["batches"].push_back(BatchJson(step));
  start["evaluation"] = BatchJson(kGoldenSteps);
  for (const GoldenCase& golden : GoldenCases()) {
    start["cases"][golden.name] = {{"model", ModelJson(golden.model)},
                                   {"clip_norm", golden.clip_norm},
                                   {"leaves", golden.leaves},
                                   {"sample_weights", golden.sample_weights},
                                   {"label_weights", LabelWeights(golden.task)},
                                   {"classes", golden.task.classes},
                                   {"students", golden.task.students},
                                   {"branches", golden.task.branches},
                                   {"weights", WeightsJson(golden)}};
  }
  return start;
}

}  // namespace
}  // namespace elastor

int main() {
  std::cout << elastor::StartJson().dump() << "\n";
  return 0;
}
