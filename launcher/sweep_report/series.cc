#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <set>
#include <span>
#include <sstream>
#include <tuple>
#include <utility>

#include "launcher/sweep_report/sweep_data.h"

namespace elastor {
namespace {

// Labels of axes have no dots; the experiment's own name is a label too.
bool IsField(const std::string& column) { return column.find('.') != column.npos; }

// "0.1", "400,400"; nothing set is as good as a number.
bool IsNumeric(const std::string& value) {
  std::istringstream parts(value);
  for (std::string part; std::getline(parts, part, ',');) {
    double number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size()) return false;
  }
  return true;
}

std::string LastPart(const std::string& column) { return column.substr(column.rfind('.') + 1); }

// "RANK_ELASTOR" and "rank_elastor" as people write them: "RankElastor".
std::string Spoken(const std::string& kind) {
  std::string name;
  bool begins = true;
  for (const char c : kind) {
    if (c == '_') {
      begins = true;
      continue;
    }
    name += static_cast<char>(begins ? std::toupper(c) : std::tolower(c));
    begins = false;
  }
  return name;
}

using Key = std::vector<std::string>;

class SeriesFinder {
 public:
  SeriesFinder(const std::vector<std::string>& kinds, const SweepData& data)
      : kinds_(kinds), data_(data) {
    for (size_t c = 0; c < data.columns.size(); ++c) {
      if (!IsField(data.columns[c]) || data.columns[c] == "training.seed") continue;
      const bool numeric = std::ranges::all_of(
          data.runs, [c](const SweepRun& run) { return IsNumeric(run.plan.columns[c]); });
      (numeric ? numeric_ : keys_).push_back(c);
    }
    AddCollidingColumns();
    AddStructure();
  }

  Key KeyOf(size_t run) const {
    Key key = {kinds_[run]};
    for (const size_t c : keys_) key.push_back(data_.runs[run].plan.columns[c]);
    if (structure_) key.push_back(StructureOf(run));
    return key;
  }

  // The label that all of a series have, and no other. Without one: labels of which each series has
  // one, or the kind of model, and the fields that still differ from series to series.
  std::vector<std::string> Names(const std::vector<Key>& of_runs) const {
    std::vector<std::string> names(of_runs.size());
    for (size_t c = 0; c < data_.columns.size(); ++c) {
      if (!IsLabel(c) || !Names(of_runs, c)) continue;
      for (size_t r = 0; r < names.size(); ++r) names[r] = data_.runs[r].plan.columns[c];
      return names;
    }
    const std::vector<std::string> begins = Begins(of_runs);
    std::map<std::pair<std::string, size_t>, std::set<std::string>> values;  // of a begin and a key
    for (size_t r = 0; r < names.size(); ++r) {
      for (size_t k = 0; k < keys_.size(); ++k) values[{begins[r], k}].insert(of_runs[r][k + 1]);
    }
    for (size_t r = 0; r < names.size(); ++r) {
      names[r] = begins[r];
      for (size_t k = 0; k < keys_.size(); ++k) {
        const std::string& column = data_.columns[keys_[k]];
        const bool differs = values.at({begins[r], k}).size() > 1;
        if (!differs || column == "model.kind" || of_runs[r][k + 1].empty()) continue;
        names[r] += ", " + LastPart(column) + " " + of_runs[r][k + 1];
      }
    }
    return names;
  }

 private:
  bool IsLabel(size_t column) const {
    return !IsField(data_.columns[column]) && !data_.IsOfTuning(column);
  }

  // Labels that series have one of each; without any, the kind of model.
  std::vector<std::string> Begins(const std::vector<Key>& of_runs) const {
    std::vector<std::string> begins(of_runs.size());
    for (size_t c = 0; c < data_.columns.size(); ++c) {
      if (!IsLabel(c)) continue;
      std::map<Key, std::string> label_of;
      bool of_series = true;
      for (size_t r = 0; r < of_runs.size(); ++r) {
        const std::string& label = data_.runs[r].plan.columns[c];
        of_series = of_series && !label.empty() &&
                    label_of.emplace(of_runs[r], label).first->second == label;
      }
      for (size_t r = 0; r < begins.size() && of_series; ++r) {
        const std::string& label = data_.runs[r].plan.columns[c];
        if (begins[r] != label) begins[r] += (begins[r].empty() ? "" : ", ") + label;
      }
    }
    for (size_t r = 0; r < begins.size(); ++r) {
      if (begins[r].empty()) begins[r] = kinds_[r].empty() ? "runs" : Spoken(kinds_[r]);
    }
    return begins;
  }

  // Which numeric fields the run's points set.
  std::string StructureOf(size_t run) const {
    std::string set;
    for (const size_t c : numeric_) set += data_.runs[run].plan.columns[c].empty() ? '0' : '1';
    return set;
  }

  // Points with labels that set different fields are no sizes of one series, if the labels tell
  // them apart.
  void AddStructure() {
    structure_ = true;
    std::vector<Key> keys;
    for (size_t r = 0; r < data_.runs.size(); ++r) keys.push_back(KeyOf(r));
    for (size_t c = 0; c < data_.columns.size(); ++c) {
      if (IsLabel(c) && Names(keys, c)) return;
    }
    structure_ = false;
  }

  // Numeric fields in which runs of one series, sizes and seed differ.
  void AddCollidingColumns() {
    std::map<std::tuple<Key, std::map<std::string, double>, int64_t>, size_t> first;
    std::set<size_t> colliding;
    for (size_t r = 0; r < data_.runs.size(); ++r) {
      const SweepRun& run = data_.runs[r];
      const auto [same, is_new] = first.emplace(std::tuple(KeyOf(r), run.sizes, run.seed), r);
      if (is_new) continue;
      for (const size_t c : numeric_) {
        if (run.plan.columns[c] != data_.runs[same->second].plan.columns[c]) colliding.insert(c);
      }
    }
    keys_.insert(keys_.end(), colliding.begin(), colliding.end());
  }

  // Whether the label tells all series apart, and nothing within them.
  bool Names(const std::vector<Key>& of_runs, size_t column) const {
    std::map<Key, std::string> value_of;
    std::map<std::string, Key> key_of;
    for (size_t r = 0; r < of_runs.size(); ++r) {
      const std::string& value = data_.runs[r].plan.columns[column];
      if (value.empty()) return false;
      if (value_of.emplace(of_runs[r], value).first->second != value) return false;
      if (key_of.emplace(value, of_runs[r]).first->second != of_runs[r]) return false;
    }
    return true;
  }

  const std::vector<std::string>& kinds_;
  const SweepData& data_;
  std::vector<size_t> keys_, numeric_;  // columns
  bool structure_ = false;              // whether keys have the structure
};

}  // namespace

void AssignSeries(const std::vector<std::string>& kinds, SweepData* data) {
  const SeriesFinder finder(kinds, *data);
  std::vector<Key> keys;
  for (size_t r = 0; r < data->runs.size(); ++r) keys.push_back(finder.KeyOf(r));
  const std::vector<std::string> names = finder.Names(keys);
  for (size_t r = 0; r < names.size(); ++r) {
    data->runs[r].series = names[r];
    if (std::ranges::find(data->series, names[r]) == data->series.end()) {
      data->series.push_back(names[r]);
    }
  }
}

}  // namespace elastor
