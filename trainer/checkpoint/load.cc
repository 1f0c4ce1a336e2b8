#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "core/base/text.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/load_parts.h"
#include "trainer/checkpoint/stored_checkpoint.h"

namespace elastor {
namespace {

// One checkpoint on its way into a state that must be of the same shape.
class Loading {
 public:
  Loading(const StoredCheckpoint& stored, Contents contents, const StateView& state)
      : stored_(stored), contents_(contents), state_(state) {}

  // Everything that can be told without reading the data: first what is encoded otherwise, other
  // labels and another experiment, then what has another shape, as the clearer comes first.
  Status Check(const ModelIdentity& model);

 private:
  Status CheckDense();
  Status CheckTable(const TableSpec& table);

  const StoredCheckpoint& stored_;
  const Contents contents_;
  const StateView& state_;
};

Status Loading::Check(const ModelIdentity& model) {
  const CheckpointMetadata& metadata = stored_.manifest().metadata;
  if (contents_ == Contents::kState && metadata.contents != Contents::kState) {
    return UserError(stored_.manifest_path() +
                     ": contents 'weights'; expected 'state', a checkpoint of training");
  }
  ELASTOR_RETURN_IF_ERROR(CheckEncoding(stored_.manifest_path(), metadata, model));
  ELASTOR_RETURN_IF_ERROR(CheckLabels(stored_.manifest_path(), metadata, model));
  ELASTOR_RETURN_IF_ERROR(CheckModelExperiment(stored_.manifest_path(), metadata, model));
  ELASTOR_RETURN_IF_ERROR(CheckDense());
  // Weights come without counts.
  const bool with_counts = contents_ == Contents::kState;
  size_t expected = 0;
  for (const TableSpec& table : *state_.tables) {
    if (!with_counts && table.counts()) continue;
    ELASTOR_RETURN_IF_ERROR(CheckTable(table));
    ++expected;
  }
  const std::vector<StoredTable> tables = stored_.manifest().tables_of_rows();
  const auto found = static_cast<size_t>(std::ranges::count_if(
      tables, [&](const StoredTable& table) { return with_counts || !table.counts; }));
  if (found != expected) {
    return UserError(StrCat(stored_.manifest_path(), ": has ", found,
                            " tables; expected the model's ", expected));
  }
  return CheckModel(stored_.manifest_path(), metadata, model);
}

Status Loading::CheckDense() {
  ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile dense, stored_.OpenDense());
  const std::vector<std::string> slots = SlotNames(state_.optimizer->kind());
  const bool state = contents_ == Contents::kState;
  size_t expected = 0;
  for (const ParameterInfo& p : state_.layout->parameters()) {
    for (const TensorSpec& tensor : TensorsOf(p, state ? slots : std::vector<std::string>())) {
      ELASTOR_RETURN_IF_ERROR(dense.Find<float>(tensor).status());
      ++expected;
    }
  }
  // A whole state that only the weights are taken of may hold any slots.
  const bool counted = stored_.manifest().metadata.contents == contents_;
  if (!counted || dense.tensors().size() == expected) return OkStatus();
  return UserError(StrCat(dense.path(), ": has ", dense.tensors().size(),
                          " tensors; expected the model's ", expected));
}

Status Loading::CheckTable(const TableSpec& table) {
  const std::vector<StoredTable>& tables = stored_.manifest().tables;
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const StoredTable& t) { return t.name == table.name; });
  const std::string which = stored_.manifest_path() + ": ";
  if (found == tables.end()) return UserError(which + "has no table '" + table.name + "'");
  if (found->keys != table.keys()) {
    const auto text = [](const KeySpace& keys) {
      return keys.keyed ? "64-bit keys" : std::to_string(keys.rows);
    };
    return UserError(StrCat(which, "table '", table.name, "' has ", text(found->keys),
                            found->keys.keyed ? "" : " keys", "; expected ", text(table.keys())));
  }
  const std::vector<Column> expected =
      ColumnsOf(table, state_.embedding->optimizer_kind(), contents_);
  std::vector<Column> columns = found->columns;
  if (contents_ == Contents::kWeights) columns.resize(1);
  if (columns == expected) return OkStatus();
  return UserError(which + "table '" + table.name + "' has columns " + ColumnsText(columns) +
                   "; expected " + ColumnsText(expected));
}

}  // namespace

StatusOr<CheckpointMetadata> ReadCheckpointMetadata(const std::string& path) {
  const std::string directory = DirectoryToRead(path);
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadManifestText(directory));
  ELASTOR_ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(directory, text));
  return std::move(manifest.metadata);
}

StatusOr<CheckpointMetadata> LoadCheckpoint(const std::string& path, Contents contents,
                                            const ModelIdentity& model, const StateView& state,
                                            Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const StoredCheckpoint stored,
                           StoredCheckpoint::Open(path, communicator));
  ELASTOR_RETURN_IF_ERROR(
      AgreeOnStatus(communicator, Loading(stored, contents, state).Check(model)));
  ELASTOR_RETURN_IF_ERROR(LoadContents(stored, contents, state, communicator));
  WarnOfUnknownEncoding(stored.manifest_path(), stored.manifest().metadata, communicator);
  return stored.manifest().metadata;
}

}  // namespace elastor
