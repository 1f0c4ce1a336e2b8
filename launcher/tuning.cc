#include "launcher/tuning.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/base/text.h"

namespace elastor {
namespace {

constexpr char kLearningRate[] = "optimizer.learning_rate";
constexpr int kDefaultCount = 5, kDefaultRungs = 3, kDefaultExtensions = 2;
constexpr double kDefaultFactor = 2, kDefaultEta = 3;
constexpr int kMostCount = 100, kMostRungs = 20;
constexpr int64_t kMostTrials = 100'000;
// The fewest trials that a rung compares.
constexpr size_t kFewest = 2;

std::optional<double> NumberOf(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

// Converts a value that CompleteTuning has already checked.
double Number(const std::string& text) { return NumberOf(text).value(); }

Status CompleteField(double learning_rate, TunedField* field) {
  if (field->field().empty()) field->set_field(kLearningRate);
  const std::string who = field->field() + ": ";
  const bool spaced = field->has_start() || field->has_factor() || field->has_count();
  if (!field->values().empty()) {
    if (spaced) return UserError(who + "has values and start, factor or count; expected one way");
  } else {
    if (!field->has_factor()) field->set_factor(kDefaultFactor);
    if (!field->has_count()) field->set_count(kDefaultCount);
    if (field->count() < 1 || field->count() > kMostCount || !(field->factor() > 1)) {
      return UserError(StrCat(who, "factor ", Format("%.6g", field->factor()), ", count ",
                              field->count(), "; expected a factor above 1 and 2 to ", kMostCount,
                              " values"));
    }
    if (!field->has_start() && field->field() == kLearningRate) {
      const int below = field->count() / 2;
      field->set_start(learning_rate / std::pow(field->factor(), below));
    }
    if (!(field->start() > 0 && std::isfinite(field->start()))) {
      return UserError(who + "has no values; expected some, or start, factor and count");
    }
    for (int i = 0; i < field->count(); ++i) {
      field->add_values(Format("%.6g", field->start() * std::pow(field->factor(), i)));
    }
    field->clear_start();
    field->clear_factor();
    field->clear_count();
  }
  std::set<double> numbers;
  for (const std::string& value : field->values()) {
    const std::optional<double> number = NumberOf(value);
    if (!number) return UserError(who + "value '" + value + "'; expected a number");
    if (!numbers.insert(*number).second)
      return UserError(who + "has the value " + value + " twice");
  }
  if (numbers.size() < kFewest) {
    return UserError(who + "has one value; expected two or more, or the value in the base");
  }
  std::ranges::sort(*field->mutable_values(), {}, Number);
  return OkStatus();
}

// All combinations, the first field slowest.
std::vector<std::vector<std::string>> Grid(const Tuning& tuning) {
  std::vector<std::vector<std::string>> grid(1);
  for (const TunedField& field : tuning.field()) {
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& shorter : grid) {
      for (const std::string& value : field.values()) {
        longer.push_back(shorter);
        longer.back().push_back(value);
      }
    }
    grid = std::move(longer);
  }
  return grid;
}

size_t Kept(const Tuning& tuning, size_t trials) {
  const double share = std::ceil(static_cast<double>(trials) / tuning.eta());
  return std::min(trials, std::max(kFewest, static_cast<size_t>(share)));
}

// What has been tried of a field.
struct Tried {
  std::vector<std::string> values;  // ascending
  int extensions = 0;               // left
};

// The value beyond the end of what was tried that `value` is, or nothing: it is no end, or the
// grid has no even spacing that goes on there.
std::optional<std::string> Beyond(const Tried& tried, const std::string& value) {
  const std::vector<std::string>& values = tried.values;
  const bool largest = value == values.back();
  if (!largest && value != values.front()) return std::nullopt;
  const double end = Number(value);
  const double next = Number(largest ? values[values.size() - 2] : values[1]);
  if (!(std::min(end, next) > 0)) return std::nullopt;
  return Format("%.6g", end * (end / next));
}

class Halving {
 public:
  Halving(const Tuning& tuning, const std::function<StatusOr<TrialOutcome>(const Trial&)>& outcome)
      : tuning_(tuning), outcome_(outcome), candidates_(Grid(tuning)) {
    for (const TunedField& field : tuning.field()) {
      tried_.push_back({{field.values().begin(), field.values().end()}, tuning.extensions()});
    }
    state_.most_to_come.assign(tuning.rungs(), 0);
  }

  StatusOr<TuningState> Run() {
    for (rung_ = 0; rung_ < tuning_.rungs(); ++rung_) {
      losses_.clear();
      for (const std::vector<std::string>& values : candidates_) {
        ELASTOR_ASSIGN_OR_RETURN(const TrialOutcome outcome, outcome_({values, rung_}));
        Add(values, outcome);
      }
      while (!stopped()) {
        if (!Extend()) break;
      }
      if (stopped()) break;
      Keep();
      if (candidates_.size() == 1 || rung_ + 1 == tuning_.rungs()) {
        Choose();
        break;
      }
    }
    if (open_) CountWhatMayCome();
    return std::move(state_);
  }

 private:
  bool stopped() const { return open_ || !state_.failure.empty(); }
  size_t Best() const { return std::ranges::min_element(losses_) - losses_.begin(); }

  void Add(const std::vector<std::string>& values, const TrialOutcome& outcome) {
    state_.trials.push_back({values, rung_});
    losses_.push_back(outcome.loss);
    if (outcome.state == TrialOutcome::State::kFailed) state_.failure = "a trial failed";
    if (outcome.state == TrialOutcome::State::kOpen) open_ = true;
  }

  // Tries a value beyond an end of the grid that the best has; false: there is none. Also sees
  // whether anything is left to compare.
  bool Extend() {
    if (std::isinf(losses_[Best()])) {
      state_.failure = "every trial diverged";
      return false;
    }
    for (size_t k = 0; k < tried_.size(); ++k) {
      Tried& tried = tried_[k];
      std::vector<std::string> values = candidates_[Best()];
      const std::optional<std::string> beyond = Beyond(tried, values[k]);
      if (!beyond || tried.extensions == 0) continue;
      --tried.extensions;
      const bool largest = values[k] == tried.values.back();
      values[k] = *beyond;
      const StatusOr<TrialOutcome> outcome = outcome_({values, rung_});
      if (!outcome.ok()) {
        tried.extensions = 0;
        continue;
      }
      tried.values.insert(largest ? tried.values.end() : tried.values.begin(), *beyond);
      candidates_.push_back(values);
      Add(values, *outcome);
      return true;
    }
    return false;
  }

  // The best first.
  void Keep() {
    std::vector<size_t> order(candidates_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](size_t i) { return losses_[i]; });
    order.resize(Kept(tuning_, order.size()));
    while (std::isinf(losses_[order.back()])) order.pop_back();
    std::vector<std::vector<std::string>> kept;
    for (const size_t i : order) kept.push_back(candidates_[i]);
    state_.loss = losses_[order.front()];
    candidates_ = std::move(kept);
  }

  void CountWhatMayCome() {
    size_t trials = candidates_.size();
    for (const Tried& tried : tried_) {
      trials += tried.extensions;
      state_.most_to_come.back() += tried.extensions;
    }
    for (int rung = rung_ + 1; rung < tuning_.rungs(); ++rung) {
      trials = Kept(tuning_, trials);
      state_.most_to_come[rung] += static_cast<int64_t>(trials);
    }
  }

  void Choose() {
    state_.chosen = candidates_.front();
    for (size_t k = 0; k < tried_.size(); ++k) {
      const std::vector<std::string>& values = tried_[k].values;
      const std::string& value = state_.chosen[k];
      if (value != values.front() && value != values.back()) continue;
      state_.warning += (state_.warning.empty() ? "" : "; ") +
                        tuning_.field(static_cast<int>(k)).field() + "=" + value + " is the " +
                        (value == values.front() ? "smallest" : "largest") +
                        " value that was tried";
    }
  }

  const Tuning& tuning_;
  const std::function<StatusOr<TrialOutcome>(const Trial&)>& outcome_;
  std::vector<std::vector<std::string>> candidates_;  // of the rung
  std::vector<double> losses_;                        // of these
  std::vector<Tried> tried_;                          // by field
  int rung_ = 0;
  bool open_ = false;
  TuningState state_;
};

}  // namespace

Status CompleteTuning(double learning_rate, Tuning* tuning) {
  if (tuning->field().empty()) tuning->add_field();
  std::set<std::string> names;
  for (TunedField& field : *tuning->mutable_field()) {
    ELASTOR_RETURN_IF_ERROR(CompleteField(learning_rate, &field));
    if (!names.insert(field.field()).second) return UserError(field.field() + ": is tuned twice");
  }
  int64_t trials = 1;
  for (const TunedField& field : tuning->field()) {
    if (__builtin_mul_overflow(trials, int64_t{field.values_size()}, &trials) ||
        trials > kMostTrials) {
      return UserError("field: the values make more than " + std::to_string(kMostTrials) +
                       " trials; expected fewer fields or values");
    }
  }
  if (!tuning->has_rungs()) tuning->set_rungs(kDefaultRungs);
  if (!tuning->has_eta()) tuning->set_eta(kDefaultEta);
  if (!tuning->has_share()) tuning->set_share(1);
  if (!tuning->has_extensions()) tuning->set_extensions(kDefaultExtensions);
  if (tuning->seeds().empty()) tuning->add_seeds(0);
  if (tuning->rungs() < 1 || tuning->rungs() > kMostRungs) {
    return UserError(StrCat("rungs: ", tuning->rungs(), "; expected 1 to ", kMostRungs));
  }
  if (!(tuning->eta() >= 2 && std::isfinite(tuning->eta()))) {
    return UserError("eta: " + Format("%.6g", tuning->eta()) + "; expected 2 or more");
  }
  if (!(tuning->share() > 0 && tuning->share() <= 1)) {
    return UserError("share: " + Format("%.6g", tuning->share()) +
                     "; expected a share of the steps, above 0 and at most 1");
  }
  if (tuning->extensions() < 0) {
    return UserError(StrCat("extensions: ", tuning->extensions(), "; expected 0 or more"));
  }
  std::set<int64_t> seeds(tuning->seeds().begin(), tuning->seeds().end());
  if (static_cast<int>(seeds.size()) < tuning->seeds_size()) {
    return UserError("seeds: has one twice");
  }
  return OkStatus();
}

int64_t StepsOfRung(const Tuning& tuning, int rung, int64_t steps) {
  const double share = tuning.share() / std::pow(tuning.eta(), tuning.rungs() - 1 - rung);
  return static_cast<int64_t>(std::floor(static_cast<double>(steps) * share));
}

StatusOr<TuningState> Tune(
    const Tuning& tuning,
    const std::function<StatusOr<TrialOutcome>(const Trial& trial)>& outcome) {
  return Halving(tuning, outcome).Run();
}

}  // namespace elastor
