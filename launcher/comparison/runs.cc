#include "launcher/comparison/runs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "configs/proto/experiment.pb.h"
#include "core/base/file.h"
#include "launcher/comparison/row_statistics.h"
#include "trainer/experiment/config.h"
#include "trainer/records/run_files.h"
#include "trainer/records/run_reader.h"

namespace elastor {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kHeader = "index,label,probability\n";
// Probabilities of nine digits can be equal where logits are not.
constexpr double kMostAucError = 1e-4;

StatusOr<Summary> ReadComparedSummary(const std::string& folder) {
  ELASTOR_ASSIGN_OR_RETURN(Summary summary, ReadFinishedRun(folder));
  const Status status = CheckFinite("auc", summary.metrics.auc.value_or(kNone));
  if (status.ok()) return summary;
  return UserError(folder + "/" + kSummaryFile + ": " + status.message());
}

struct Predictions {
  std::vector<uint8_t> labels;
  std::vector<float> probabilities;
};

// The number before `end`, and one character behind it.
template <typename Number>
bool Take(std::string_view* text, char end, Number* number) {
  const auto [after, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  const auto length = static_cast<size_t>(after - text->data());
  if (error != std::errc() || length >= text->size() || *after != end) return false;
  text->remove_prefix(length + 1);
  return true;
}

StatusOr<Predictions> ReadPredictions(const std::string& folder) {
  const std::string path = folder + "/" + kPredictionsFile;
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  if (!text.starts_with(kHeader)) {
    return UserError(path + ": expected a first line index,label,probability");
  }
  Predictions predictions;
  for (std::string_view rest = std::string_view(text).substr(kHeader.size()); !rest.empty();) {
    int64_t index = 0;
    float label = 0, probability = 0;
    const auto row = static_cast<int64_t>(predictions.labels.size());
    if (!Take(&rest, ',', &index) || !Take(&rest, ',', &label) ||
        !Take(&rest, '\n', &probability) || index != row || (label != 0 && label != 1) ||
        !(probability >= 0 && probability <= 1)) {
      return UserError(path + ":" + std::to_string(row + 2) + ": expected " + std::to_string(row) +
                       ", a label of 0 or 1 and a probability");
    }
    predictions.labels.push_back(label == 1);
    predictions.probabilities.push_back(probability);
  }
  const auto positives = std::ranges::count(predictions.labels, 1);
  if (positives > 0 && positives < static_cast<int64_t>(predictions.labels.size())) {
    return predictions;
  }
  return UserError(path + ": expected rows of both labels");
}

class Reader {
 public:
  Status Add(const std::string& folder, const std::string& name) {
    ELASTOR_ASSIGN_OR_RETURN(const Summary summary, ReadComparedSummary(folder));
    ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, ReadRunExperiment(folder));
    if (!name.empty()) experiment.set_name(name);
    ELASTOR_ASSIGN_OR_RETURN(Predictions predictions, ReadPredictions(folder));
    ELASTOR_RETURN_IF_ERROR(CheckRows(folder, summary, predictions));
    ComparedRun run = {.seed = experiment.training().seed(),
                       .probabilities = std::move(predictions.probabilities),
                       .gauc = summary.metrics.gauc};
    ELASTOR_ASSIGN_OR_RETURN(ComparedModel * model, ModelOf(folder, summary, experiment));
    for (const ComparedRun& other : model->runs) {
      if (other.seed != run.seed) continue;
      return UserError(folder + ": is a second run of " + model->name + " with seed " +
                       std::to_string(run.seed) + "; expected one of each");
    }
    model->runs.push_back(std::move(run));
    return OkStatus();
  }

  ComparedRuns Take() { return std::move(runs_); }

 private:
  Status CheckRows(const std::string& folder, const Summary& summary,
                   const Predictions& predictions) {
    const double auc = MeanOfPositives(predictions.labels,
                                       Placements(predictions.labels, predictions.probabilities));
    if (!(std::abs(auc - *summary.metrics.auc) < kMostAucError)) {
      return UserError(folder + "/" + kPredictionsFile + ": has an AUC of " + std::to_string(auc) +
                       "; expected the summary's " + std::to_string(*summary.metrics.auc));
    }
    if (runs_.labels.empty()) {
      runs_.split = summary.split;
      runs_.labels = predictions.labels;
      first_ = folder;
    }
    if (summary.split == runs_.split && predictions.labels == runs_.labels) return OkStatus();
    return UserError(folder + ": predicted " + std::to_string(predictions.labels.size()) +
                     " rows of the " + summary.split + " split; expected the " +
                     std::to_string(runs_.labels.size()) + " rows of the " + runs_.split +
                     " split of " + first_);
  }

  StatusOr<ComparedModel*> ModelOf(const std::string& folder, const Summary& summary,
                                   Experiment experiment) {
    experiment.mutable_training()->clear_seed();
    const auto model = std::ranges::find(runs_.models, experiment.name(), &ComparedModel::name);
    if (model == runs_.models.end()) {
      experiments_[experiment.name()] = experiment;
      runs_.models.push_back({experiment.name(), summary.dense_parameters, {}});
      return &runs_.models.back();
    }
    const std::string difference =
        NumericDifference(experiment, experiments_.at(experiment.name()));
    if (difference.empty()) return &*model;
    return UserError(folder + ": " + difference + ", as in the other runs of " + model->name +
                     "; runs of one name may differ in their seed alone");
  }

  ComparedRuns runs_;
  std::string first_;
  std::map<std::string, Experiment> experiments_;  // of the first run of a name, without its seed
};

}  // namespace

StatusOr<ComparedRuns> ReadComparedRuns(std::span<const std::string> folders,
                                        std::span<const std::string> names) {
  Reader reader;
  for (size_t i = 0; i < folders.size(); ++i) {
    ELASTOR_RETURN_IF_ERROR(reader.Add(folders[i], names[i]));
  }
  return reader.Take();
}

}  // namespace elastor
