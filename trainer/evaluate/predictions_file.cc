#include "trainer/evaluate/predictions_file.h"

#include <cmath>
#include <cstdio>

#include "core/base/log.h"
#include "core/kernels/elementwise.h"

namespace elastor {
namespace {

// A name in a line of commas (RFC 4180).
std::string Cell(const std::string& name) {
  if (name.find_first_of(",\"") == std::string::npos) return name;
  std::string cell = "\"";
  for (const char c : name) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}

}  // namespace

std::string PredictionsHeader(const Task& task, LogitColumn logit) {
  std::string line = "index";
  for (const Task::Label& label : task.learned) {
    const std::string prefix = label.name.empty() ? "" : label.name + ".";
    line += "," + (label.name.empty() ? "label" : Cell(label.name));
    line += "," + Cell(prefix + "probability");
    if (logit == LogitColumn::kThere) line += "," + Cell(prefix + "logit");
  }
  return line + "\n";
}

std::string PredictionLines(const Task& task, LogitColumn logit, int64_t first_row,
                            const std::vector<float>& labels, const std::vector<float>& logits) {
  const int64_t rows = static_cast<int64_t>(labels.size()) / task.labels();
  CHECK_EQ(static_cast<int64_t>(logits.size()), rows * task.outputs());
  std::string text;
  char number[32];
  const auto add = [&](float value) {
    text.append(number, std::snprintf(number, sizeof(number), "%.9g", value));
  };
  for (int64_t row = 0; row < rows; ++row) {
    text += std::to_string(first_row + row);
    for (int64_t i = 0; i < task.outputs(); ++i) {
      const float label = labels[row * task.labels() + task.learned[i].column];
      text += ',';
      if (!std::isnan(label)) add(label);
      text += ',';
      add(Sigmoid(logits[row * task.outputs() + i]));
      if (logit == LogitColumn::kLeftOut) continue;
      text += ',';
      add(logits[row * task.outputs() + i]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace elastor
