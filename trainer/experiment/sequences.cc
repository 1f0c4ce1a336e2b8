#include "trainer/experiment/sequences.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "core/base/text.h"
#include "core/models/models.h"
#include "trainer/fields/field_values.h"

namespace elastor {
namespace {

using Categorical = DatasetInfo::Categorical;

constexpr std::string_view kKeepsLast = "last ";

bool IsSequence(const Categorical& field) {
  return field.multi_hot && (field.keeps.empty() || field.keeps.starts_with(kKeepsLast));
}

// How many ids of a sequence the data keep; 0: not known.
int64_t KeptIds(const Categorical& field) {
  int64_t ids = 0;
  if (field.keeps.starts_with(kKeepsLast)) {
    const char* const end = field.keeps.data() + field.keeps.size();
    std::from_chars(field.keeps.data() + kKeepsLast.size(), end, ids);
  }
  return ids;
}

int64_t TableOf(const DatasetInfo& data, int64_t field) {
  while (data.categorical[field].shares >= 0) field = data.categorical[field].shares;
  return field;
}

int64_t Find(const DatasetInfo& data, const std::string& name) {
  const auto found = std::ranges::find(data.categorical, name, &Categorical::name);
  return found == data.categorical.end() ? -1 : found - data.categorical.begin();
}

template <typename Allowed>
std::string NamesOf(const DatasetInfo& data, const Allowed& allowed) {
  std::vector<std::string> names;
  for (size_t i = 0; i < data.categorical.size(); ++i) {
    if (allowed(static_cast<int64_t>(i))) names.push_back(data.categorical[i].name);
  }
  return names.empty() ? "none" : JoinNames(names);
}

StatusOr<int64_t> FindField(const std::string& name, const DatasetInfo& data) {
  const int64_t field = Find(data, name);
  if (field >= 0 && IsSequence(data.categorical[field])) return field;
  return UserError("model.sequences.fields: '" + name + "' is " +
                   (field < 0 ? "no categorical field of the data" : "no SEQUENCE") +
                   "; the data's sequences: " +
                   NamesOf(data, [&](int64_t i) { return IsSequence(data.categorical[i]); }));
}

// Finds the target of sequence `field`. With an empty `name`, takes the first field that can be
// one.
StatusOr<int64_t> FindTarget(const std::string& name, int64_t field, const DatasetInfo& data) {
  const auto allowed = [&](int64_t i) {
    return !data.categorical[i].multi_hot && TableOf(data, i) == TableOf(data, field);
  };
  for (int64_t i = 0; i < static_cast<int64_t>(data.categorical.size()); ++i) {
    if (allowed(i) && (name.empty() || data.categorical[i].name == name)) return i;
  }
  const std::string& sequence = data.categorical[field].name;
  const std::string expected = "expected a categorical field of one id that shares the table of '" +
                               sequence + "': " + NamesOf(data, allowed);
  if (name.empty())
    return UserError("model.sequences: '" + sequence + "' has no target; " + expected);
  return UserError("model.sequences.targets: '" + name + "' is " +
                   (Find(data, name) < 0 ? "no categorical field of the data"
                                         : "of another table, or of several ids") +
                   "; " + expected);
}

StatusOr<int64_t> FindLength(int64_t max_length, const Categorical& field) {
  const int64_t kept = KeptIds(field);
  if (max_length == 0 && kept == 0) {
    return UserError(
        "model.sequences.max_length: must be given, as the data do not say how many "
        "ids of '" +
        field.name + "' they keep");
  }
  if (max_length == 0) return kept;
  if (kept == 0 || max_length <= kept) return max_length;
  return UserError(StrCat("model.sequences.max_length: ", max_length,
                          ", but the data keep the last ", kept, " ids of '", field.name,
                          "'; expected at most as many, or data with a larger max_length"));
}

}  // namespace

StatusOr<std::vector<SequenceShape>> FindSequences(const Experiment& experiment,
                                                   const DatasetInfo& data) {
  const SequencesConfig& config = experiment.model().sequences();
  const HstuRankerConfig& ranker = experiment.model().hstu_ranker();
  const bool parallel = experiment.model().has_hstu_ranker();
  std::vector<SequenceShape> sequences;
  int targets = 0;
  for (int i = 0; i < config.fields_size(); ++i) {
    SequenceShape sequence;
    sequence.name = config.fields(i);
    sequence.pooled = config.has_mean();
    sequence.parallel = parallel;
    ELASTOR_ASSIGN_OR_RETURN(sequence.field, FindField(sequence.name, data));
    if (std::ranges::count(config.fields(), sequence.name) > 1) {
      return UserError("model.sequences.fields: '" + sequence.name + "' twice; expected it once");
    }
    const bool compared = parallel ? IsContent(ranker, sequence.name) : !config.has_tokens();
    if (!sequence.pooled && compared) {
      const std::string target = config.targets().empty() ? "" : config.targets(targets++);
      ELASTOR_ASSIGN_OR_RETURN(sequence.target, FindTarget(target, sequence.field, data));
    }
    if (!sequence.pooled) {
      if (std::ranges::count(experiment.evaluation().slice_by(), sequence.name) > 0) {
        return UserError("evaluation.slice_by: '" + sequence.name +
                         "' is read as a sequence; expected another field, or no " +
                         "model.sequences");
      }
    }
    ELASTOR_ASSIGN_OR_RETURN(sequence.positions,
                             FindLength(config.max_length(), data.categorical[sequence.field]));
    if (parallel && i > 0 && sequence.positions != sequences[0].positions) {
      return UserError(StrCat("model.sequences.max_length: must be given, as the data keep ",
                              sequences[0].positions, " ids of '", sequences[0].name, "' and ",
                              sequence.positions, " of '", sequence.name,
                              "', which model.hstu_ranker reads side by side"));
    }
    sequences.push_back(std::move(sequence));
  }
  if (config.has_tokens() && data.numeric.empty() && sequences.size() == data.categorical.size()) {
    return UserError(
        "model.sequences.fields: all fields of the data; expected another field beside them");
  }
  return sequences;
}

StatusOr<std::vector<int64_t>> FindRequestFields(const Experiment& experiment,
                                                 const DatasetInfo& data,
                                                 const std::vector<SequenceShape>& sequences) {
  const std::string path = "model.hstu_ranker.request_fields: '";
  const HstuRankerConfig& ranker = experiment.model().hstu_ranker();
  std::vector<int64_t> fields;
  for (const std::string& name : ranker.request_fields()) {
    const auto numeric = std::ranges::find(data.numeric, name, &DatasetInfo::Numeric::name);
    const int64_t categorical = Find(data, name);
    if (numeric == data.numeric.end() && categorical < 0) {
      return UserError(path + name + "' is no field of the data; its fields: " +
                       NamesOf(data, [](int64_t) { return true; }));
    }
    for (const SequenceShape& sequence : sequences) {
      const bool target = IsContent(ranker, sequence.name) && sequence.target == categorical;
      if (sequence.field != categorical && !target) continue;
      return UserError(path + name + "' is " + (target ? "a target" : "a history") +
                       " already; expected another field");
    }
    if (std::ranges::count(ranker.request_fields(), name) > 1) {
      return UserError(path + name + "' twice; expected it once");
    }
    fields.push_back(categorical < 0 ? numeric - data.numeric.begin()
                                     : data.numeric_count() + categorical);
  }
  return fields;
}

}  // namespace elastor
