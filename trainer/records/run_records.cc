#include "trainer/records/run_records.h"

#include <algorithm>

#include "core/base/text.h"
#include "nlohmann/json.hpp"

namespace elastor {
namespace {

using Json = nlohmann::ordered_json;

// Names and values come from the data and may be no UTF-8: such bytes become U+FFFD. indent: -1 for
// one line.
std::string Text(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}
std::string Line(const Json& json) { return Text(json, -1); }

template <typename Value>
Json OrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// What the run did: "2346 steps", "evaluated 400 rows of the test split".
std::string Deed(const Summary& summary) {
  if (summary.mode == "train") return CountText(summary.steps, "step");
  const std::string verb = summary.mode == "predict"   ? "predicted "
                           : summary.mode == "spectra" ? "measured effective ranks of "
                           : summary.mode == "theory"  ? "tested theorems on "
                           : summary.mode == "ntk"     ? "measured the neural tangent kernel of "
                                                       : "evaluated ";
  return verb + CountText(summary.rows, "row") + " of the " + summary.split + " split";
}

// A line for each figure that is there; `whose`: "validation".
void AddFigures(const std::string& whose, const Summary::Label& label,
                const std::optional<double>& best_gauc, std::string* text) {
  if (label.auc) {
    *text += Format("%s AUC: %.4f", whose.c_str(), *label.auc);
    if (label.best_auc) *text += Format(" (best possible: %.4f)", *label.best_auc);
    *text += "\n";
  }
  if (label.logloss) *text += Format("%s logloss: %.4f\n", whose.c_str(), *label.logloss);
  if (label.bits_per_label) {
    *text += Format("%s accuracy: %.4f, bits per label: %.4f\n", whose.c_str(), *label.accuracy,
                    *label.bits_per_label);
  }
  if (!label.gauc) return;
  *text += Format("%s gAUC: %.4f", whose.c_str(), *label.gauc);
  if (best_gauc) *text += Format(" (best possible: %.4f)", *best_gauc);
  *text += "\n";
}

Json SpectrumJson(const SpectrumRecord& record) {
  return {{"stage", record.stage},
          {"stable_rank_mean", record.stable.mean},
          {"entropy_rank_mean", record.entropy.mean}};
}

void AddValues(const BinaryValues& values, Json* json) {
  json->update(Json{{"rows", values.rows},
                    {"positives", values.positives},
                    {"auc", OrNull(values.auc)},
                    {"logloss", values.logloss},
                    {"normalized_entropy", OrNull(values.normalized_entropy)},
                    {"calibration", OrNull(values.calibration)}});
}

Json SliceJson(const SliceValues& slice) {
  Json json = {{"field", slice.field}, {"id", slice.id}};
  if (!slice.value.empty()) json["value"] = slice.value;
  AddValues(slice, &json);
  return json;
}

// All that is known of a label.
void AddMetrics(const MetricValues& metrics, Json* json) {
  if (metrics.accuracy) {
    json->update(Json{{"label_count", metrics.rows},
                      {"logloss", metrics.logloss},
                      {"accuracy", *metrics.accuracy},
                      {"bits_per_label", OrNull(metrics.bits_per_label)}});
    return;
  }
  AddValues(metrics, json);
  if (metrics.gauc) {
    (*json)["gauc"] = *metrics.gauc;
    (*json)["gauc_groups"] = metrics.gauc_groups;
  }
  for (const SliceValues& slice : metrics.slices) (*json)["slices"].push_back(SliceJson(slice));
}

}  // namespace

std::vector<int64_t> CoarseHistogram(const std::vector<int64_t>& histogram) {
  constexpr size_t kLogBins = 32;
  static_assert(kRankBins % kLogBins == 0);
  std::vector<int64_t> coarse(kLogBins);
  for (size_t b = 0; b < histogram.size(); ++b)
    coarse[b * kLogBins / histogram.size()] += histogram[b];
  return coarse;
}

std::string ToJson(const TrainRecord& record) {
  Json json = {{"event", "train"},
               {"step", record.step},
               {"epoch", record.epoch},
               {"loss", record.loss},
               {"l2", record.l2},
               {"learning_rate", record.learning_rate},
               {"gradient_norm", record.gradient_norm},
               {"samples_per_s", record.samples_per_s}};
  json["phase_s"] = Json::object();
  for (const auto& [phase, seconds] : record.phase_seconds) json["phase_s"][phase] = seconds;
  return Line(json);
}

std::string ToJson(const EvalRecord& record) {
  Json json = {{"event", "eval"},
               {"split", record.split},
               {"step", record.step},
               {"scheduled", record.scheduled}};
  if (!record.metrics.label.empty()) json["label"] = record.metrics.label;
  AddMetrics(record.metrics, &json);
  for (const MetricValues& label : record.labels) {
    AddMetrics(label, &(json["labels"].emplace_back() = {{"label", label.label}}));
  }
  return Line(json);
}

std::string ToJson(const SpectrumRecord& record) {
  // Readers of one take no record of the other.
  const bool training = record.split == "train";
  Json json = {{"event", training ? "training_spectrum" : "spectrum"},
               {"step", record.step},
               {"split", record.split}};
  json.update(SpectrumJson(record));
  json.update(Json{{"samples", record.samples},
                   {"max_rank", record.max_rank},
                   {"stable_rank_stddev", record.stable.stddev},
                   {"entropy_rank_stddev", record.entropy.stddev},
                   {"stable_rank_histogram", CoarseHistogram(record.stable.histogram)},
                   {"entropy_rank_histogram", CoarseHistogram(record.entropy.histogram)},
                   {"profile", record.profile}});
  return Line(json);
}

std::string ToJson(const ScoringRecord& record) {
  return Line({{"event", "scoring"},
               {"step", record.step},
               {"matrices", record.matrices},
               {"max_rank", record.max_rank},
               {"stable_rank_mean", record.stable},
               {"entropy_rank_mean", record.entropy}});
}

std::string ToJson(const NtkRecord& record) {
  Json json = {{"event", "ntk"},
               {"step", record.step},
               {"split", record.split},
               {"layer", record.layer},
               {"rows", record.rows},
               {"outputs", record.outputs},
               {"parameters", record.parameters},
               {"lambda_max", record.lambda_max},
               {"lambda_min", OrNull(record.lambda_min)},
               {"condition_number", OrNull(record.condition_number)},
               {"rank", OrNull(record.rank)}};
  if (record.rank) {
    json["digest"] = record.digest;
  } else {
    json["lambda_max_residual"] = record.residual;
  }
  return Line(json);
}

std::string ToJson(const CheckpointRecord& record) {
  Json json = {{"event", "checkpoint"},
               {"step", record.step},
               {"digest", record.digest},
               {"path", record.path},
               {"blocked_s", record.blocked_seconds},
               {"write_s", record.write_seconds}};
  if (!record.base.empty()) json["base"] = record.base;
  return Line(json);
}

std::string ToJson(const Summary& summary) {
  Json json = {{"name", summary.name},
               {"mode", summary.mode},
               {"model", summary.model.empty() ? Json(nullptr) : Json(summary.model)},
               {"split", summary.split},
               {"rows", summary.rows},
               {"auc", OrNull(summary.auc)},
               {"best_auc", OrNull(summary.best_auc)},
               {"logloss", OrNull(summary.logloss)},
               {"gauc", OrNull(summary.gauc)},
               {"best_gauc", OrNull(summary.best_gauc)},
               {"steps", summary.steps},
               {"epochs", summary.epochs},
               {"monitor", summary.monitor},
               {"best_step", OrNull(summary.best_step)},
               {"best_metric", OrNull(summary.best_metric)},
               {"early_stopped", summary.early_stopped},
               {"samples_per_s", summary.samples_per_s},
               {"ranks", summary.ranks},
               {"virtual_shards", summary.virtual_shards},
               {"dense_parameters", summary.dense_parameters},
               {"embedding_parameters", summary.embedding_parameters},
               {"state_digest", summary.state_digest},
               {"numerics", summary.numerics},
               {"isa", summary.isa},
               {"numeric_hash", summary.numeric_hash},
               {"wall_s", summary.wall_s},
               {"peak_memory_bytes", summary.peak_memory_bytes}};
  if (!summary.label.empty()) json["label"] = summary.label;
  if (summary.bits_per_label) {
    json["accuracy"] = OrNull(summary.accuracy);
    json["bits_per_label"] = OrNull(summary.bits_per_label);
  }
  for (const Summary::Label& label : summary.labels) {
    json["labels"].push_back({{"label", label.name},
                              {"rows", label.rows},
                              {"auc", OrNull(label.auc)},
                              {"best_auc", OrNull(label.best_auc)},
                              {"logloss", OrNull(label.logloss)},
                              {"gauc", OrNull(label.gauc)}});
  }
  json["spectrum"] = Json::array();
  for (const SpectrumRecord& record : summary.spectrum) {
    json["spectrum"].push_back(SpectrumJson(record));
  }
  json["communication"] = Json::array();
  for (const CommunicationRecord& record : summary.communication) {
    json["communication"].push_back({{"phase", record.phase},
                                     {"calls", record.calls},
                                     {"bytes_sent", record.bytes_sent},
                                     {"seconds", record.seconds}});
  }
  return Text(json, 2) + "\n";
}

std::string ToText(const Summary& summary) {
  std::string text =
      summary.name + ": " + Deed(summary) + " on " + CountText(summary.ranks, "rank");
  text += Format(" in %.1f s, %.0f samples/s\n", summary.wall_s, summary.samples_per_s);
  if (!summary.model.empty()) {
    text += "model: " + summary.model + ", after " + CountText(summary.steps, "step") + "\n";
  }
  if (!summary.predictions.empty()) text += "predictions: " + summary.predictions + "\n";
  text += Format("parameters: %lld dense, %lld in embeddings\n",
                 static_cast<long long>(summary.dense_parameters),
                 static_cast<long long>(summary.embedding_parameters));
  if (summary.labels.empty()) {
    AddFigures(summary.split,
               {.auc = summary.auc,
                .best_auc = summary.best_auc,
                .logloss = summary.logloss,
                .gauc = summary.gauc,
                .accuracy = summary.accuracy,
                .bits_per_label = summary.bits_per_label},
               summary.best_gauc, &text);
  }
  if (summary.unlabelled) text += summary.split + ": no labels, no metrics\n";
  for (const Summary::Label& label : summary.labels) {
    AddFigures(summary.split + " " + label.name, label, std::nullopt, &text);
  }
  if (summary.best_step && summary.best_metric) {
    const std::string monitor =
        (summary.labels.empty() ? "" : summary.label + " ") + summary.monitor;
    text += Format("best %s: %.4f at step %lld%s\n", monitor.c_str(), *summary.best_metric,
                   static_cast<long long>(*summary.best_step),
                   summary.early_stopped ? ", stopped early" : "");
  }
  if (!summary.spectrum.empty()) {
    size_t width = 0;
    for (const SpectrumRecord& record : summary.spectrum) {
      width = std::max(width, record.stage.size());
    }
    text += "effective rank (mean over samples):\n";
    for (const SpectrumRecord& record : summary.spectrum) {
      text += Format("  %-*s  stable %6.2f  entropy %6.2f\n", static_cast<int>(width),
                     record.stage.c_str(), record.stable.mean, record.entropy.mean);
    }
  }
  if (!summary.state_digest.empty()) {
    text += Format("state digest: %s\n", summary.state_digest.c_str());
  }
  return text;
}

std::string ToText(const EvalRecord& record) {
  std::string text = "step " + std::to_string(record.step) + "  " + record.split;
  const MetricValues& metrics = record.metrics;
  if (metrics.rows == 0) return text + "  no labels, no metrics";
  if (metrics.auc) text += Format("  auc %.4f", *metrics.auc);
  text += Format("  logloss %.4f", metrics.logloss);
  if (metrics.bits_per_label) text += Format("  bits %.4f", *metrics.bits_per_label);
  if (metrics.gauc) text += Format("  gauc %.4f", *metrics.gauc);
  return text;
}

}  // namespace elastor
