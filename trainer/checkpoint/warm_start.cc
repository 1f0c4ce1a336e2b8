#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/load_parts.h"
#include "trainer/checkpoint/stored_checkpoint.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/make_options.h"

namespace elastor {
namespace {

class WarmStarting {
 public:
  WarmStarting(const WarmStartConfig& config, const DatasetInfo& data,
               const StoredCheckpoint& stored, const StateView& state, Communicator* communicator)
      : config_(config),
        data_(data),
        stored_(stored),
        state_(state),
        communicator_(*communicator),
        contents_(config.optimizer_state() ? Contents::kState : Contents::kWeights) {}

  // What is taken, without reading the data.
  Status Choose(WarmStartReport* report);
  // REQUIRES: Choose was ok.
  Status Take();

 private:
  Status CheckContents() const;
  Status CheckNames() const;
  Status CheckNumbers() const;
  // A use means what the policy says that counted it; REQUIRES: table.looked_up().
  Status CheckUses(const TableSpec& table) const;
  // How a table's ids are encoded otherwise in the model's data; empty: alike, or not known.
  std::string TableDifference(const std::string& table) const;
  bool Selected(const std::string& name) const;
  // Whether a selected tensor has a place; without partial() an error says why it has none.
  Status ChooseParameter(const SafetensorsFile& dense, const TensorSpec& tensor, bool* taken);
  Status ChooseTable(const StoredTable& table, bool* taken);
  // Without partial() an error.
  Status Leave(const std::string& why) const;
  bool IsParameter(const std::string& tensor) const;

  const WarmStartConfig& config_;
  const DatasetInfo& data_;
  const StoredCheckpoint& stored_;
  const StateView& state_;
  Communicator& communicator_;
  const Contents contents_;
  std::vector<const ParameterInfo*> parameters_;  // taken
  std::vector<int> places_;                       // of the folder's tables
};

bool WarmStarting::Selected(const std::string& name) const {
  return config_.tensors().empty() ||
         std::any_of(config_.tensors().begin(), config_.tensors().end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

// Returns true for "<parameter>" and false for "<parameter>/<slot>".
bool WarmStarting::IsParameter(const std::string& tensor) const {
  const size_t slash = tensor.rfind('/');
  return slash == tensor.npos ||
         stored_.manifest().dense.tensors.count(tensor.substr(0, slash)) == 0;
}

Status WarmStarting::CheckContents() const {
  if (contents_ == Contents::kWeights || stored_.manifest().metadata.contents == Contents::kState) {
    return OkStatus();
  }
  return UserError(stored_.manifest_path() +
                   ": contents 'weights'; training.warm_start.optimizer_state expects 'state', a "
                   "checkpoint of training");
}

// Every word of config.tensors() selects something.
Status WarmStarting::CheckNames() const {
  for (const std::string& prefix : config_.tensors()) {
    const Manifest& manifest = stored_.manifest();
    const auto dense = manifest.dense.tensors.lower_bound(prefix);
    const bool found =
        (dense != manifest.dense.tensors.end() && dense->first.starts_with(prefix)) ||
        std::any_of(manifest.tables.begin(), manifest.tables.end(),
                    [&](const StoredTable& table) { return table.name.starts_with(prefix); });
    if (found) continue;
    return UserError("training.warm_start.tensors: '" + prefix +
                     "' begins the name of no parameter and no table in " +
                     stored_.manifest_path());
  }
  return OkStatus();
}

// Dense parameters see the numbers of numeric fields and the pixels. With partial() the user says
// that parts of another model will do.
Status WarmStarting::CheckNumbers() const {
  const auto& encoding = stored_.manifest().metadata.encoding;
  if (parameters_.empty() || config_.partial() || !encoding) return OkStatus();
  std::string difference = ImageDifference(data_.image, encoding->image, stored_.manifest_path());
  for (const DatasetInfo::Numeric& field : data_.numeric) {
    for (const DatasetInfo::Numeric& trained : encoding->numeric) {
      if (trained.name != field.name || !difference.empty()) continue;
      difference = ScaleDifference(field, trained, stored_.manifest_path());
    }
  }
  if (!difference.empty()) {
    return UserError("training.warm_start: " + difference +
                     " (training.warm_start.partial takes its parameters all the same)");
  }
  return OkStatus();
}

std::string WarmStarting::TableDifference(const std::string& table) const {
  const auto& encoding = stored_.manifest().metadata.encoding;
  if (!encoding) return "";
  for (const DatasetInfo::Categorical& field : data_.categorical) {
    if (field.name != table) continue;
    for (const DatasetInfo::Categorical& trained : encoding->categorical) {
      if (trained.name == table) return IdDifference(field, trained, stored_.manifest_path());
    }
  }
  return "";
}

Status WarmStarting::CheckUses(const TableSpec& table) const {
  ELASTOR_ASSIGN_OR_RETURN(const Experiment experiment,
                           ParseExperiment(stored_.manifest().metadata.experiment,
                                           stored_.manifest_path() + ": experiment"));
  const RowRules trained = RulesOf(experiment.embedding(), table.name);
  if (trained.policy == table.rules.policy &&
      trained.half_life_steps == table.rules.half_life_steps) {
    return OkStatus();
  }
  return UserError(stored_.manifest_path() + ": table '" + table.name +
                   "' was trained with another eviction.policy or half_life_steps, which its rows' "
                   "uses are of; expected the same, or training.warm_start.optimizer_state: false");
}

Status WarmStarting::Leave(const std::string& why) const {
  if (config_.partial()) return OkStatus();
  return UserError(why + " (training.warm_start.partial leaves it out)");
}

Status WarmStarting::ChooseParameter(const SafetensorsFile& dense, const TensorSpec& tensor,
                                     bool* taken) {
  const auto parameters = state_.layout->parameters();
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const ParameterInfo& p) { return p.name == tensor.name; });
  const std::string which = dense.path() + ": tensor '" + tensor.name + "' ";
  if (found == parameters.end()) return Leave(which + "is no parameter of the model");
  if (found->shape != tensor.shape) {
    return Leave(which + "is " + TensorText(tensor.type, tensor.shape) + "; expected " +
                 TensorText(TensorType::kF32, found->shape));
  }
  if (contents_ == Contents::kState) {
    for (const TensorSpec& slot : TensorsOf(*found, SlotNames(state_.optimizer->kind()))) {
      ELASTOR_RETURN_IF_ERROR(dense.Find<float>(slot).status());
    }
  }
  parameters_.push_back(&*found);
  *taken = true;
  return OkStatus();
}

Status WarmStarting::ChooseTable(const StoredTable& stored, bool* taken) {
  const auto table = std::find_if(state_.tables->begin(), state_.tables->end(),
                                  [&](const TableSpec& t) { return t.name == stored.name; });
  const std::string which = stored_.manifest_path() + ": table '" + stored.name + "' ";
  if (table == state_.tables->end()) return Leave(which + "is no table of the model");
  if (stored.columns[0].width != table->width) {
    return Leave(StrCat(which, "has width ", stored.columns[0].width, "; expected ", table->width));
  }
  // Tables that serve others have the keys, or the partitions, of the others' ids.
  const TableSpec& ids = table->looked_up() ? *table : (*state_.tables)[table->beside];
  if (const std::string difference = TableDifference(ids.name); !difference.empty()) {
    return Leave("training.warm_start: " + difference);
  }
  if (stored.keys.keyed != table->keyed) {
    return Leave(which + (table->keyed ? "has ids of a vocabulary; the model's table has keys"
                                       : "has keys; the model's table has ids of a vocabulary"));
  }
  if (stored.counts && stored.keys != table->keys()) {
    return UserError(which +
                     "is of another admission.sketch_counters; expected the same, or "
                     "training.warm_start.optimizer_state: false");
  }
  if (stored.keys.rows > table->keys().rows) {
    return UserError(StrCat(which, "has ", stored.keys.rows, " keys; expected at most ",
                            table->rows, ", the rows of the model's table"));
  }
  const auto expected = ColumnsOf(*table, state_.embedding->optimizer_kind(), contents_);
  if (contents_ == Contents::kState && stored.columns != expected) {
    return UserError(
        which + "has columns " + ColumnsText(stored.columns) + "; expected " +
        ColumnsText(expected) +
        (stored.counts ? ", by admission.count_ttl_steps" : ", those of the optimizer"));
  }
  if (contents_ == Contents::kState && table->keeps_use && table->looked_up()) {
    ELASTOR_RETURN_IF_ERROR(CheckUses(*table));
  }
  places_.back() = static_cast<int>(table - state_.tables->begin());
  *taken = true;
  return OkStatus();
}

Status WarmStarting::Choose(WarmStartReport* report) {
  ELASTOR_RETURN_IF_ERROR(CheckContents());
  ELASTOR_RETURN_IF_ERROR(CheckNames());
  ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile dense, stored_.OpenDense());
  const auto note = [report](const std::string& name, bool taken) {
    (taken ? report->taken : report->left).push_back(name);
  };
  for (const TensorSpec& tensor : dense.tensors()) {
    if (!IsParameter(tensor.name) || !Selected(tensor.name)) continue;
    bool taken = false;
    ELASTOR_RETURN_IF_ERROR(ChooseParameter(dense, tensor, &taken));
    note(tensor.name, taken);
  }
  ELASTOR_RETURN_IF_ERROR(CheckNumbers());
  for (const StoredTable& table : stored_.manifest().tables) {
    places_.push_back(table.holds_deletions() ? places_.back() : kNoTable);
    if (table.holds_deletions() || !Selected(table.name)) continue;
    if (table.counts && contents_ == Contents::kWeights) continue;
    bool taken = false;
    ELASTOR_RETURN_IF_ERROR(ChooseTable(table, &taken));
    note(table.name, taken);
  }
  const std::set<std::string> taken(report->taken.begin(), report->taken.end());
  for (const ParameterInfo& p : state_.layout->parameters()) {
    if (taken.count(p.name) == 0) report->fresh.push_back(p.name);
  }
  for (const TableSpec& table : *state_.tables) {
    if (taken.count(table.name) == 0) report->fresh.push_back(table.name);
  }
  return OkStatus();
}

Status WarmStarting::Take() {
  ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile dense, stored_.OpenDense());
  for (const ParameterInfo* p : parameters_) {
    ELASTOR_RETURN_IF_ERROR(LoadParameter(stored_, dense, *p, contents_, state_, communicator_));
  }
  return LoadRows(stored_, places_, contents_, state_, communicator_);
}

}  // namespace

StatusOr<WarmStartReport> WarmStart(const WarmStartConfig& config, const DatasetInfo& data,
                                    const StateView& state, Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const StoredCheckpoint stored,
                           StoredCheckpoint::Open(config.path(), communicator));
  WarmStartReport report;
  report.metadata = stored.manifest().metadata;
  WarmStarting start(config, data, stored, state, &communicator);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, start.Choose(&report)));
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, start.Take()));
  WarnOfUnknownEncoding(stored.manifest_path(), report.metadata, communicator);
  return report;
}

}  // namespace elastor
