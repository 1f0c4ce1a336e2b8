#include "trainer/cost/advice.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "configs/proto/machine.pb.h"
#include "core/base/text.h"
#include "trainer/cost/prediction.h"
#include "trainer/experiment/make_options.h"

namespace elastor {
namespace {

// What the advice is about.
struct Setting {
  int ranks = 1;
  int threads = 1;
  int64_t virtual_shards = 1;
  int64_t batch_rows = 1;
  int plan = ParallelConfig::AUTO;
  bool operator==(const Setting&) const = default;
};

struct Tried {
  Setting setting;
  double step_seconds = 0;
  double samples_per_s = 0;
};

Json ToJson(const Tried& tried) {
  const Setting& of = tried.setting;
  return {{"ranks", of.ranks},
          {"threads", of.threads},
          {"batch_size", of.batch_rows},
          {"virtual_shards", of.virtual_shards},
          {"plan", ParallelConfig::Plan_Name(static_cast<ParallelConfig::Plan>(of.plan))},
          {"step_seconds", tried.step_seconds},
          {"samples_per_s", tried.samples_per_s}};
}

class Adviser {
 public:
  Adviser(const Experiment& experiment, const Machine& machine, const ResolvedModel& model,
          const DatasetInfo& info, const Dataset* dataset, int units, int units_of_host)
      : experiment_(experiment),
        machine_(machine),
        model_(model),
        info_(info),
        dataset_(dataset),
        units_(units),
        units_of_host_(units_of_host) {}

  StatusOr<Json> Advise(const Setting& given) {
    std::vector<Setting> settings = {given};
    for (int threads = 1; !machine_.gpus() && threads <= units_of_host_ && units_ % threads == 0;
         threads *= 2) {
      settings.push_back(given);
      settings.back().threads = threads;
      settings.back().ranks = units_ / threads;
    }
    std::vector<Tried> found = TryAll(settings);
    if (found.empty()) return refused_;
    best_ = Fastest(found).setting;

    settings = {best_};
    for (const double factor : {0.25, 0.5, 2.0, 4.0}) {
      const auto rows = static_cast<int64_t>(static_cast<double>(best_.batch_rows) * factor);
      if (rows < best_.virtual_shards) continue;
      settings.push_back(best_);
      settings.back().batch_rows = rows;
    }
    found = TryAll(settings);
    const double enough = kEnoughOfMost * Fastest(found).samples_per_s;
    for (const Tried& tried : found) {
      if (tried.samples_per_s < enough) continue;
      if (tried.setting.batch_rows < best_.batch_rows || Speed(found, best_) < enough) {
        best_ = tried.setting;
      }
    }

    settings = {best_};
    const auto least = static_cast<int64_t>(std::bit_ceil(static_cast<unsigned>(units_)));
    const int64_t most = machine_.gpus() ? 0 : std::min(8 * least, best_.batch_rows);
    for (int64_t shards = least; shards <= most; shards *= 2) {
      settings.push_back(best_);
      settings.back().virtual_shards = shards;
    }
    found = TryAll(settings);
    const double within = Fastest(found).samples_per_s / (1 + kShardsMayCost);
    for (const Tried& tried : found) {
      if (tried.samples_per_s < within) continue;
      if (tried.setting.virtual_shards > best_.virtual_shards || Speed(found, best_) < within) {
        best_ = tried.setting;
      }
    }

    settings = {best_};
    for (int plan = 0; plan < kSimplePlans; ++plan) {
      settings.push_back(best_);
      settings.back().plan = plan;
    }
    found = TryAll(settings);
    Json json = ToJson(Fastest(found));
    for (const Tried& tried : tried_) json["tried"].push_back(ToJson(tried));
    return json;
  }

 private:
  // The first of the fastest.
  static const Tried& Fastest(const std::vector<Tried>& found) {
    return *std::ranges::max_element(found, {}, &Tried::samples_per_s);
  }
  static double Speed(const std::vector<Tried>& found, const Setting& setting) {
    return std::ranges::find(found, setting, &Tried::setting)->samples_per_s;
  }

  // Predicts settings, each once. Returns those that can be predicted.
  std::vector<Tried> TryAll(const std::vector<Setting>& settings) {
    std::vector<Tried> found;
    for (const Setting& setting : settings) {
      if (std::ranges::find(tried_, setting, &Tried::setting) == tried_.end()) Try(setting);
      const auto known = std::ranges::find(tried_, setting, &Tried::setting);
      if (known != tried_.end()) found.push_back(*known);
    }
    return found;
  }

  void Try(const Setting& setting) {
    Experiment experiment = experiment_;
    experiment.mutable_parallel()->set_threads(setting.threads);
    experiment.mutable_parallel()->set_virtual_shards(static_cast<int32_t>(setting.virtual_shards));
    experiment.mutable_parallel()->set_plan(static_cast<ParallelConfig::Plan>(setting.plan));
    Predictor predictor(&experiment, &machine_, &model_, &info_, dataset_);
    const StatusOr<Prediction> found = predictor.Predict(
        setting.ranks, std::max(1, units_of_host_ / setting.threads), setting.batch_rows);
    if (!found.ok()) {
      refused_ = found.status();
    } else if (found->batch_rows < setting.batch_rows) {
      refused_ = UserError(StrCat("training.batch_size: ", setting.batch_rows,
                                  "; expected at most the training rows, ", found->batch_rows));
    } else {
      tried_.push_back({setting, found->step_seconds, found->samples_per_s()});
    }
  }

  const Experiment& experiment_;
  const Machine& machine_;
  const ResolvedModel& model_;
  const DatasetInfo& info_;
  const Dataset* const dataset_;
  const int units_;          // of all ranks
  const int units_of_host_;  // that ranks use
  Setting best_;             // so far
  std::vector<Tried> tried_;
  Status refused_;  // the last prediction that cannot be
};

}  // namespace

StatusOr<Json> AdviceJson(const Experiment& experiment, const Machine& machine,
                          const ResolvedModel& model, const DatasetInfo& info,
                          const Dataset* dataset, int ranks, int ranks_per_host) {
  const int threads = machine.gpus() ? 1 : experiment.parallel().threads();
  const int units = ranks * threads;
  const int of_host =
      ranks_per_host > 0 ? ranks_per_host * threads : std::max(threads, machine.units_per_host());
  const int plan = experiment.parallel().plan();
  return Adviser(experiment, machine, model, info, dataset, units, std::min(units, of_host))
      .Advise({.ranks = ranks,
               .threads = threads,
               .virtual_shards = experiment.parallel().virtual_shards(),
               .batch_rows = experiment.training().batch_size(),
               .plan = plan < kSimplePlans ? plan : ParallelConfig::AUTO});
}

}  // namespace elastor
