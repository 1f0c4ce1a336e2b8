#ifndef ELASTOR_TRAINER_CHECKPOINT_STATE_VIEW_H_
#define ELASTOR_TRAINER_CHECKPOINT_STATE_VIEW_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/parameters/parameter_layout.h"
#include "embedding/embedding_state.h"
#include "embedding/sparse_optimizer.h"
#include "embedding/table.h"
#include "trainer/checkpoint/checkpoint_metadata.h"
#include "trainer/step/dense_slots.h"

namespace elastor {

// Where a training state is, in one rank's memory; nothing is owned.
struct StateView {
  const ParameterLayout* layout = nullptr;
  // layout's flat array, whole on every rank, in host memory: as of the call.
  std::function<float*()> weights;
  DenseSlots<float>* optimizer = nullptr;          // slots of the slices this rank owns
  const std::vector<TableSpec>* tables = nullptr;  // those of `embedding`
  EmbeddingState<float>* embedding = nullptr;
};

// "m" and "v" (Adam), "a" (Adagrad) or none (SGD), in their order in memory.
std::vector<std::string> SlotNames(SparseOptimizerKind kind);

// What a row consists of, in its order in memory: "rows", the weights, then the slots.
struct Column {
  std::string name;
  int64_t width = 0;  // elements of a row
  bool operator==(const Column&) const = default;
};
std::vector<Column> ColumnsOf(const TableSpec& table, SparseOptimizerKind kind, Contents contents);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_STATE_VIEW_H_
