// Writes what golden.py starts from: model shapes, settings, initial weights in double and batches.
//   export_weights > start.json
// Numbers have all their digits: nlohmann prints the shortest text that reads back alike.

#include <cctype>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/golden/golden_training.h"

namespace elastor {
namespace {

using Json = nlohmann::ordered_json;

std::string Lower(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  return name;
}

Json ModelJson(const ModelConfig& config) {
  Json model;
  model["kind"] = config.has_mlp()          ? "mlp"
                  : config.has_auto_int()   ? "auto_int"
                  : config.has_rank_mixer() ? "rank_mixer"
                                            : "rank_elastor";
  if (config.has_mlp()) return model;
  if (config.has_auto_int()) {
    model["attention_layers"] = config.auto_int().attention_layers();
    model["heads"] = config.auto_int().heads();
    return model;
  }
  const TokenModelConfig& tokens =
      config.has_rank_mixer() ? config.rank_mixer() : config.rank_elastor();
  model["convention"] = Lower(TokenModelConfig::Convention_Name(tokens.convention()));
  model["tokens"] = tokens.tokens();
  model["token_width"] = tokens.token_width();
  model["blocks"] = tokens.blocks();
  model["expansion"] = tokens.feed_forward().expansion();
  model["tokenizer"] = Lower(TokenizerConfig::Kind_Name(tokens.tokenizer().kind()));
  model["head"] = Lower(HeadConfig::Kind_Name(tokens.head().kind()));
  return model;
}

// Per row: label, weight, numeric values (null: missing) and one list of ids a field.
Json BatchJson(int step) {
  const int64_t fields = static_cast<int64_t>(GoldenFields().size());
  const Rows rows = GoldenRows(step, 0, GoldenBatchRows(step));
  const int64_t numeric_fields = static_cast<int64_t>(rows.numeric.size()) / rows.rows;
  Json batch;
  batch["labels"] = rows.labels;
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
  for (const TableSpec& table : GoldenTables()) {
    const std::string name = "embedding/" + table.name;
    weights[name] = {{"shape", {table.rows, table.width}}, {"values", initial.at(name)}};
  }
  return weights;
}

Json StartJson() {
  Json start;
  start["learning_rate"] = kGoldenLearningRate;
  start["dense_l2"] = kGoldenDenseL2;
  start["embedding_l2"] = kGoldenEmbeddingL2;
  for (const FieldSpec& field : GoldenFields()) {
    start["fields"].push_back({{"table", GoldenTables()[field.table].name},
                               {"pooling", field.pooling == Pooling::kMean ? "mean" : "sum"}});
  }
  for (int step = 0; step < kGoldenSteps; ++step) start["batches"].push_back(BatchJson(step));
  start["evaluation"] = BatchJson(kGoldenSteps);
  for (const GoldenCase& golden : GoldenCases()) {
    start["cases"][golden.name] = {{"model", ModelJson(golden.model.config)},
                                   {"clip_norm", golden.clip_norm},
                                   {"leaves", golden.leaves},
                                   {"sample_weights", golden.sample_weights},
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
