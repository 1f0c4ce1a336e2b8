#include "launcher/tuning.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/base/random.h"
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
constexpr int kDefaultRandom = 16, kDefaultBudgeted = 100, kMostRandom = 1000;

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

// Steps of a trial in a rung beyond those of the rung before, where it goes on, as a multiple of
// the first rung's.
double StepsBeyond(const Tuning& tuning, int rung) {
  return rung == 0 ? 1 : std::pow(tuning.eta(), rung) - std::pow(tuning.eta(), rung - 1);
}

// What `trials` trials of a rung and the rungs after it take: runs, and time as a multiple of a
// trial's in the first rung.
struct Need {
  double runs = 0, firsts = 0;
};
Need NeedOf(const Tuning& tuning, size_t trials, int first_rung) {
  Need need;
  for (int rung = first_rung; rung < tuning.rungs(); ++rung) {
    if (rung > first_rung) trials = Kept(tuning, trials);
    need.runs += static_cast<double>(trials) * tuning.seeds_size();
    need.firsts += static_cast<double>(trials) * StepsBeyond(tuning, rung);
  }
  return need;
}

// What has been tried of a field.
struct Tried {
  std::vector<std::string> values;  // ascending
  int extensions = 0;               // left
};

// Whether a field has integers alone.
bool IsIntegral(const TunedField& field) {
  return std::ranges::all_of(field.values(), [](const std::string& value) {
    return value.find_first_not_of("-0123456789") == value.npos;
  });
}

std::string ValueText(const TunedField& field, double number) {
  return IsIntegral(field) ? Format("%.0f", number) : Format("%.6g", number);
}

// Combination `index` of a random search.
std::vector<std::string> Draw(const Tuning& tuning, uint32_t index) {
  std::vector<std::string> values;
  for (int k = 0; k < tuning.field_size(); ++k) {
    const TunedField& field = tuning.field(k);
    const double least = Number(*field.values().begin()), most = Number(*field.values().rbegin());
    const uint32_t word = Philox(static_cast<uint64_t>(tuning.random().seed()),
                                 {index, static_cast<uint32_t>(k), 0, 0})[0];
    const double share = (word + 0.5) * 0x1p-32;
    double number =
        least > 0 ? least * std::pow(most / least, share) : least + (most - least) * share;
    // Few digits, as people write them.
    if (!IsIntegral(field)) number = Number(Format("%.3g", number));
    values.push_back(ValueText(field, std::clamp(number, least, most)));
  }
  return values;
}

// Ratio of the step beyond an end of what a random search tried.
double RandomStep(const TunedField& field) {
  constexpr double kShare = 0.25;  // of the range
  const double least = Number(*field.values().begin()), most = Number(*field.values().rbegin());
  return least > 0 ? std::pow(most / least, kShare) : 1;
}

// The value beyond the end of what was tried that `value` is, or nothing: it is no end, or no
// spacing goes on there. step: the ratio of a step beyond; of a grid, without one, that of its last
// two values.
std::optional<std::string> Beyond(const TunedField& field, const Tried& tried,
                                  const std::string& value, std::optional<double> step) {
  const std::vector<std::string>& values = tried.values;
  const bool largest = value == values.back();
  if (!largest && value != values.front()) return std::nullopt;
  const double end = Number(value);
  const double next = Number(largest ? values[values.size() - 2] : values[1]);
  if (!(std::min(end, next) > 0)) return std::nullopt;
  if (!step) return Format("%.6g", end * (end / next));
  const std::string beyond = ValueText(field, largest ? end * *step : end / *step);
  if (Number(beyond) == end) return std::nullopt;
  return beyond;
}

class Halving {
 public:
  Halving(const Tuning& tuning, const std::function<StatusOr<TrialOutcome>(const Trial&)>& outcome)
      : tuning_(tuning), outcome_(outcome) {
    if (!tuning.has_random()) candidates_ = Grid(tuning);
    for (const TunedField& field : tuning.field()) {
      tried_.push_back({{field.values().begin(), field.values().end()}, tuning.extensions()});
    }
    state_.most_to_come.assign(tuning.rungs(), 0);
  }

  StatusOr<TuningState> Run() {
    for (rung_ = 0; rung_ < tuning_.rungs(); ++rung_) {
      losses_.clear();
      if (rung_ > 0 && IsUsedUp()) {
        Bound(StrCat("is used up after rung ", rung_, " of ", tuning_.rungs()));
        Choose();
        break;
      }
      if (rung_ == 0 && tuning_.has_random()) {
        ELASTOR_RETURN_IF_ERROR(TryRandom());
      } else {
        for (const std::vector<std::string>& values : candidates_) {
          ELASTOR_RETURN_IF_ERROR(Try(values));
        }
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

  Status Try(const std::vector<std::string>& values) {
    ELASTOR_ASSIGN_OR_RETURN(const TrialOutcome outcome, outcome_({values, rung_}));
    Add(values, outcome);
    return OkStatus();
  }

  // The combinations of a random search, each once, as many as the budget allows.
  Status TryRandom() {
    const auto most = static_cast<size_t>(tuning_.random().trials());
    std::set<std::vector<std::string>> drawn;
    uint32_t index = 0;
    size_t limit = 0;
    while (true) {
      if (candidates_.size() == limit) {
        if (stopped()) break;
        limit = MostRandom(limit, most);
        if (limit <= candidates_.size()) break;
      }
      // Few integers have few combinations.
      constexpr int kMostRedraws = 1000;
      int redraws = 0;
      while (!drawn.insert(Draw(tuning_, index++)).second && ++redraws < kMostRedraws) {
      }
      if (redraws == kMostRedraws) break;
      candidates_.push_back(Draw(tuning_, index - 1));
      ELASTOR_RETURN_IF_ERROR(Try(candidates_.back()));
    }
    first_minutes_ = minutes_ / static_cast<double>(candidates_.size());
    if (!stopped() && candidates_.size() >= limit && candidates_.size() < most) {
      Bound(StrCat("allows ", candidates_.size(), " random combinations"));
    }
    for (size_t k = 0; k < tried_.size(); ++k) {
      std::vector<std::string>& values = tried_[k].values;
      values.clear();
      for (const std::vector<std::string>& each : candidates_) values.push_back(each[k]);
      std::ranges::sort(values, {}, Number);
      values.erase(std::unique(values.begin(), values.end()), values.end());
      if (values.size() < kFewest) tried_[k].extensions = 0;
    }
    return OkStatus();
  }

  // So many random combinations may be tried, when `measured` are.
  size_t MostRandom(size_t measured, size_t most) const {
    if (tuning_.has_most_runs()) {
      while (most > kFewest && NeedOf(tuning_, most, 0).runs > tuning_.most_runs()) --most;
    }
    if (!tuning_.has_most_minutes()) return most;
    if (measured < kFewest) return std::min(most, kFewest);
    const double each = minutes_ / static_cast<double>(measured);
    while (most > kFewest && NeedOf(tuning_, most, 0).firsts * each > tuning_.most_minutes())
      --most;
    return std::min(most, 2 * measured);
  }

  bool IsUsedUp() const { return tuning_.has_most_minutes() && minutes_ >= tuning_.most_minutes(); }

  // Whether the budget allows one more trial in this rung, and what follows from it.
  bool AllowsOneMore() const {
    const auto trials = static_cast<double>(candidates_.size());
    const Need need = NeedOf(tuning_, candidates_.size() + 1, rung_);
    if (tuning_.has_most_runs() &&
        runs_ + need.runs - trials * tuning_.seeds_size() > tuning_.most_runs()) {
      return false;
    }
    const double firsts = need.firsts - trials * StepsBeyond(tuning_, rung_);
    return !tuning_.has_most_minutes() ||
           minutes_ + firsts * first_minutes_ <= tuning_.most_minutes();
  }

  // Says what the budget left out.
  void Bound(const std::string& what) {
    std::string budget;
    if (tuning_.has_most_runs()) budget = CountText(tuning_.most_runs(), "run");
    if (tuning_.has_most_minutes()) {
      budget += (budget.empty() ? "" : " and ") + Format("%.6g minutes", tuning_.most_minutes());
    }
    state_.bound += (state_.bound.empty() ? "the budget of " + budget : " and") + " " + what;
  }

  void Add(const std::vector<std::string>& values, const TrialOutcome& outcome) {
    runs_ += tuning_.seeds_size();
    minutes_ += outcome.minutes;
    state_.trials.push_back({values, rung_});
    losses_.push_back(outcome.loss);
    if (outcome.state == TrialOutcome::State::kFailed) {
      state_.failure = outcome.why.empty() ? "a trial failed" : outcome.why;
    }
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
      std::optional<double> step;
      const TunedField& field = tuning_.field(static_cast<int>(k));
      if (tuning_.has_random()) step = RandomStep(field);
      const std::optional<std::string> beyond = Beyond(field, tried, values[k], step);
      if (!beyond || tried.extensions == 0) continue;
      if (!AllowsOneMore()) {
        Bound("leaves no room beyond " + field.field() + "=" + values[k]);
        tried.extensions = 0;
        continue;
      }
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
    if (rung_ == 0 && tuning_.has_random()) {
      const auto most = static_cast<size_t>(tuning_.random().trials());
      // Trials beyond an edge come on top of the random ones.
      const size_t all =
          std::max(trials, tuning_.has_most_minutes() ? most : MostRandom(trials, most));
      state_.most_to_come.front() += static_cast<int64_t>(all - trials);
      trials = all;
    }
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
  double runs_ = 0, minutes_ = 0;  // of all trials so far
  double first_minutes_ = 0;       // of a random combination in the first rung, on average
  TuningState state_;
};

// Completes and checks the budget. REQUIRES: all else is complete.
Status CompleteBudget(int64_t grid, Tuning* tuning) {
  const bool bounded = tuning->has_most_runs() || tuning->has_most_minutes();
  if (tuning->has_random()) {
    RandomSearch* random = tuning->mutable_random();
    if (!random->has_trials()) random->set_trials(bounded ? kDefaultBudgeted : kDefaultRandom);
    if (random->trials() < static_cast<int>(kFewest) || random->trials() > kMostRandom) {
      return UserError(
          StrCat("random.trials: ", random->trials(), "; expected 2 to ", kMostRandom));
    }
  } else if (tuning->has_most_minutes()) {
    return UserError("most_minutes: bounds a random search; expected random { } beside it");
  }
  if (tuning->has_most_minutes() &&
      !(tuning->most_minutes() > 0 && std::isfinite(tuning->most_minutes()))) {
    return UserError("most_minutes: " + Format("%.6g", tuning->most_minutes()) +
                     "; expected a positive number");
  }
  const size_t least = tuning->has_random() ? kFewest : static_cast<size_t>(grid);
  const auto needed = static_cast<int64_t>(NeedOf(*tuning, least, 0).runs);
  if (!tuning->has_most_runs() || tuning->most_runs() >= needed) return OkStatus();
  return UserError(
      StrCat("most_runs: ", tuning->most_runs(), "; ",
             tuning->has_random() ? "two random combinations take " : "the grid takes ", needed,
             "; expected as many, fewer rungs, or random { }"));
}

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
  return CompleteBudget(trials, tuning);
}

TuningMetric MetricOf(const Tuning& tuning, const Summary& trial) {
  switch (tuning.metric()) {
    case Tuning::AUC:
      return {"auc", true, trial.metrics.auc};
    case Tuning::GAUC:
      return {"gauc", true, trial.metrics.gauc};
    case Tuning::MONITORED:
      return {trial.monitor.empty() ? "monitored metric" : trial.monitor,
              trial.monitor != "logloss", trial.best_metric};
    default:
      return {"logloss", false, Finite(trial.metrics.logloss)};
  }
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
