#include "trainer/records/record_text.h"

#include <algorithm>
#include <optional>

#include "core/base/status.h"
#include "core/base/text.h"

namespace elastor {
namespace {

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

// Lines of the metrics that are there; `whose`: "validation ". Those of class labels share a line.
std::string MetricLines(const std::string& whose, const MetricValues& metrics,
                        const BestValues& best_values) {
  std::string text, of_classes;
  const auto add = [&](const auto& field) {
    const std::optional<double> value = field.Number(metrics);
    if (!field.in_summary || !value) return;
    StrAppend(&text, whose, field.title, Format(": %.4f", *value));
    for (const auto& [name, best] : best_values) {
      if (name == field.name && best) text += Format(" (best possible: %.4f)", *best);
    }
    text += "\n";
  };
  for (const auto& field : kBinaryFields) add(field);
  for (const auto& field : kGroupFields) add(field);
  for (const auto& field : kClassFields) {
    const std::optional<double> value = field.Number(metrics);
    if (!field.in_summary || !value) continue;
    of_classes += of_classes.empty() ? whose : ", ";
    StrAppend(&of_classes, field.title, Format(": %.4f", *value));
  }
  return of_classes.empty() ? text : text + of_classes + "\n";
}

}  // namespace

std::string ToText(const Summary& summary) {
  std::string text = WithoutControls(summary.name) + ": " + Deed(summary) + " on " +
                     CountText(summary.ranks, "rank");
  text += Format(" in %.1f s, %.0f samples/s\n", summary.wall_s, summary.samples_per_s);
  if (!summary.model.empty()) {
    text += "model: " + WithoutControls(summary.model) + ", after " +
            CountText(summary.steps, "step") + "\n";
  }
  if (!summary.predictions.empty()) {
    text += "predictions: " + WithoutControls(summary.predictions) + "\n";
  }
  text += Format("parameters: %lld dense, %lld in embeddings\n",
                 static_cast<long long>(summary.dense_parameters),
                 static_cast<long long>(summary.embedding_parameters));
  if (summary.labels.empty()) {
    text += MetricLines(summary.split + " ", summary.metrics, BestOf(summary));
  }
  if (summary.unlabelled) text += summary.split + ": no labels, no metrics\n";
  for (const Summary::Label& label : summary.labels) {
    const std::string name = WithoutControls(label.metrics.label);
    text += MetricLines(summary.split + " " + name + " ", label.metrics, BestOf(label));
  }
  if (summary.best_step && summary.best_metric) {
    const std::string monitor =
        (summary.labels.empty() ? "" : WithoutControls(summary.metrics.label) + " ") +
        summary.monitor;
    text += Format("best validation %s: %.4f at step %lld%s\n", monitor.c_str(),
                   *summary.best_metric, static_cast<long long>(*summary.best_step),
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
  if (!summary.continued_digest.empty()) {
    text += "goes on from the state: " + WithoutControls(summary.continued_digest) + "\n";
  }
  if (!summary.state_digest.empty()) {
    text += Format("state digest: %s\n", summary.state_digest.c_str());
  }
  return text;
}

std::string ToText(const EvalRecord& record) {
  std::string text = "step " + std::to_string(record.step) + "  " + record.split;
  if (record.metrics.rows == 0) return text + "  no labels, no metrics";
  const auto add = [&](const auto& field) {
    const std::optional<double> value = field.Number(record.metrics);
    if (field.word != nullptr && value) text += Format("  %s %.4f", field.word, *value);
  };
  for (const auto& field : kBinaryFields) add(field);
  for (const auto& field : kGroupFields) add(field);
  for (const auto& field : kClassFields) add(field);
  return text;
}

}  // namespace elastor
