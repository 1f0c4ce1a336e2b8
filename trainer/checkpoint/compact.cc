#include "trainer/checkpoint/compact.h"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "collective/dense_reduce.h"
#include "core/base/file.h"
#include "core/base/thread_pool.h"
#include "core/process/claimed_folder.h"
#include "embedding/row_store.h"
#include "embedding/shard_plan.h"
#include "embedding/sharded_embedding.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/load_parts.h"
#include "trainer/checkpoint/stored_checkpoint.h"
#include "trainer/checkpoint/vocabularies.h"
#include "trainer/step/dense_optimizer.h"

namespace elastor {
namespace {

// What a training state consists of, as its folder tells without the model.
struct StateShape {
  std::vector<TableSpec> tables;
  ParameterLayout layout;
  OptimizerKind sparse = OptimizerKind::kSgd;
  OptimizerKind dense = OptimizerKind::kSgd;
};

// Whether the tensors are those of parameters with the slots of `kind`, one parameter after
// another.
bool HaveSlotsOf(OptimizerKind kind, std::span<const TensorSpec> tensors) {
  const std::vector<std::string> slots = SlotNames(kind);
  const size_t group = 1 + slots.size();
  if (tensors.size() % group != 0) return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& parameter = tensors[i - i % group];
    if (i % group > 0 && (tensors[i].name != parameter.name + "/" + slots[i % group - 1] ||
                          tensors[i].shape != parameter.shape)) {
      return false;
    }
  }
  return true;
}

bool HaveColumnsOf(OptimizerKind kind, const Manifest& manifest,
                   std::span<const TableSpec> tables) {
  const std::vector<StoredTable> stored = manifest.tables_of_rows();
  for (size_t t = 0; t < tables.size(); ++t) {
    if (stored[t].columns != ColumnsOf(tables[t], kind, Contents::kState)) return false;
  }
  return true;
}

StatusOr<StateShape> ShapeOf(const StoredCheckpoint& stored) {
  const Manifest& manifest = stored.manifest();
  StateShape shape;
  for (const StoredTable& table : manifest.tables_of_rows()) {
    shape.tables.push_back({.name = table.name,
                            .rows = table.keys.rows,
                            .width = table.columns[0].width,
                            .keyed = table.keys.keyed,
                            .keeps_use = table.columns.back().name == kUseColumn,
                            .role = table.counts ? TableRole::kCounts : TableRole::kVectors});
  }
  // Both kinds of Adam have the same slots, and kSgd none: those that have more come first.
  for (const OptimizerKind kind : {OptimizerKind::kLazyAdam, OptimizerKind::kAdagrad,
                                   OptimizerKind::kRowWiseAdagrad, OptimizerKind::kSgd}) {
    shape.sparse = kind;
    if (HaveColumnsOf(kind, manifest, shape.tables)) break;
  }
  if (!HaveColumnsOf(shape.sparse, manifest, shape.tables)) {
    return UserError(stored.manifest_path() +
                     ": the tables' columns are not those of one optimizer's state");
  }
  ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile dense, stored.OpenDense());
  for (const OptimizerKind kind :
       {OptimizerKind::kDenseAdam, OptimizerKind::kAdagrad, OptimizerKind::kSgd}) {
    shape.dense = kind;
    if (HaveSlotsOf(kind, dense.tensors())) break;
  }
  const size_t group = 1 + SlotNames(shape.dense).size();
  for (size_t i = 0; i < dense.tensors().size(); i += group) {
    const TensorSpec& tensor = dense.tensors()[i];
    shape.layout.Declare(tensor.name, tensor.shape, Init::Constant(0), Decay::kNone);
  }
  shape.layout.Finish();
  return shape;
}

// One rank's memory for a state.
class LoadedState {
 public:
  LoadedState(StateShape shape, ShardPlan plan, int threads, Communicator* communicator)
      : shape_(std::move(shape)),
        plan_(std::move(plan)),
        pool_(threads),
        weights_(shape_.layout.flat_size()),
        optimizer_({.rule = {.kind = shape_.dense}}, shape_.layout,
                   SlicesOf(shape_.layout, *communicator), &pool_),
        embedding_(
            {.tables = shape_.tables, .fields = {}, .optimizer = {.rule = {.kind = shape_.sparse}}},
            &plan_, communicator, &pool_) {}

  StateView View() {
    return {&shape_.layout, [this] { return weights_.data(); }, &optimizer_, &shape_.tables,
            &embedding_};
  }

 private:
  static std::vector<Range> SlicesOf(const ParameterLayout& layout,
                                     const Communicator& communicator) {
    std::vector<Range> slices;
    for (const Range& bucket : layout.buckets()) {
      slices.push_back(SliceOfRank(bucket, communicator.rank(), communicator.size()));
    }
    return slices;
  }

  const StateShape shape_;
  const ShardPlan plan_;
  ThreadPool pool_;
  std::vector<float> weights_;
  DenseOptimizer<float> optimizer_;
  ShardedEmbedding<float> embedding_;
};

// Runs on rank 0, which looks for all ranks. The writer removes what stands beside `to` under its
// own names: the remains of another writer that was killed, but not the checkpoint `from` itself.
StatusOr<ClaimedFolder> ClaimNew(const std::string& from, const std::string& to) {
  ELASTOR_ASSIGN_OR_RETURN(ClaimedFolder claimed, ClaimedFolder::Claim(to));
  ELASTOR_RETURN_IF_ERROR(claimed.CheckIsEmpty("a new or empty directory"));
  const auto nothing = [](std::string_view) { return false; };
  std::error_code none;
  const bool is_read = std::filesystem::equivalent(from, to + ".partial", none);
  const auto unfinished = [&](std::string_view name) {
    return name == kDenseFile || (name == kManifestFile && !is_read) || name == kVocabularyFolder ||
           name.starts_with("embedding-");
  };
  ELASTOR_RETURN_IF_ERROR(RemoveRemains(to + ".old", nothing));
  ELASTOR_RETURN_IF_ERROR(RemoveRemains(to + ".partial", unfinished));
  return claimed;
}

}  // namespace

StatusOr<CheckpointMetadata> CompactCheckpoint(const std::string& path, std::string to, int threads,
                                               Communicator& communicator) {
  while (to.size() > 1 && to.ends_with('/')) to.pop_back();
  std::optional<ClaimedFolder> claimed;
  Status status;
  if (communicator.rank() == 0) {
    StatusOr<ClaimedFolder> folder = ClaimNew(path, to);
    if (folder.ok()) claimed.emplace(std::move(folder).value());
    status = folder.status();
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, status));
  ELASTOR_ASSIGN_OR_RETURN(const StoredCheckpoint stored,
                           StoredCheckpoint::Open(path, communicator));
  const CheckpointMetadata& metadata = stored.manifest().metadata;
  if (metadata.contents != Contents::kState) {
    return UserError(stored.manifest_path() +
                     ": contents 'weights', which are one folder already; expected 'state', a "
                     "checkpoint of training");
  }
  if (!metadata.encoding) {
    return UserError(stored.manifest_path() +
                     ": version 1 does not tell how the data were encoded; expected version 2 or "
                     "3, which a run that goes on from it writes");
  }
  StatusOr<StateShape> shape = ShapeOf(stored);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, shape.status()));
  std::vector<int64_t> bytes_per_row;
  for (const TableSpec& table : shape->tables) {
    bytes_per_row.push_back(RowBytes(RowShapeOf(table, shape->sparse), sizeof(float)));
  }
  ELASTOR_ASSIGN_OR_RETURN(ShardPlan plan,
                           ShardPlan::Make(PlanKind::kRowWise, shape->tables, bytes_per_row,
                                           communicator.size(), /*budget_bytes=*/0));
  LoadedState state(*std::move(shape), std::move(plan), threads, &communicator);
  ELASTOR_RETURN_IF_ERROR(LoadContents(stored, Contents::kState, state.View(), communicator));
  CheckpointWriter writer(state.View(), /*staging_bytes=*/0, &communicator);
  ELASTOR_RETURN_IF_ERROR(writer.Start(to, metadata));
  StatusOr<CheckpointMetadata> written = writer.Finish();
  if (written.ok() && claimed) claimed->Keep();
  return written;
}

}  // namespace elastor
