#include "launcher/run_sizes.h"

#include <memory>
#include <utility>

#include "trainer/experiment/make_options.h"

namespace elastor {

StatusOr<const RunSizes::Data*> RunSizes::Open(const Experiment& experiment) {
  const std::string& path = experiment.data().path();
  const auto known = data_.find(path);
  if (known != data_.end() && !path.empty()) return &known->second;
  Data data = {AssumedData(experiment.data().shape()), ""};
  if (!path.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset, Dataset::Open(path));
    data = {dataset->info(), dataset->fingerprint()};
    if (tuned_ && dataset->rows(Split::kValidation) == 0) {
      return UserError("tuning: " + path +
                       " has no rows for validation; expected some, to choose values by");
    }
  }
  return &(data_[path] = std::move(data));
}

Status RunSizes::Measure(const Experiment& experiment, const Data& data, PlannedRun* run) {
  // Seed and learning rate, which many runs differ in alone, are nothing to sizes.
  Experiment key = experiment;
  key.clear_name();
  key.mutable_training()->clear_seed();
  key.mutable_optimizer()->clear_learning_rate();
  const std::string bytes = key.SerializeAsString();
  if (!figures_.contains(bytes)) {
    ELASTOR_ASSIGN_OR_RETURN(figures_[bytes], DescribeFigures(experiment, data.info, run->ranks));
  }
  const RunFigures& figures = figures_[bytes];
  run->dense_parameters = figures.dense_parameters;
  run->embedding_parameters = figures.embedding_parameters;
  run->multiply_adds = figures.multiply_adds;
  run->bytes_of_rank = figures.sure_bytes;
  return OkStatus();
}

}  // namespace elastor
