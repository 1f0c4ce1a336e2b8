#ifndef ELASTOR_TRAINER_CHECKPOINT_STATE_VIEW_H_
#define ELASTOR_TRAINER_CHECKPOINT_STATE_VIEW_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernels/small_rows.h"
#include "core/optimizer/optimizer_options.h"
#include "core/parameters/parameter_layout.h"
#include "embedding/embedding_state.h"
#include "embedding/table.h"
#include "trainer/checkpoint/checkpoint_metadata.h"
#include "trainer/step/dense_slots.h"

namespace elastor {

// Points to a training state in one rank's memory. Owns nothing.
struct StateView {
  const ParameterLayout* layout = nullptr;
  // Returns layout's flat array, whole on every rank, in host memory, as it is at the call.
  // Collective.
  std::function<StatusOr<float*>()> weights;
  DenseSlots<float>* optimizer = nullptr;          // slots of the slices this rank owns
  const std::vector<TableSpec>* tables = nullptr;  // those of `embedding`
  EmbeddingState<float>* embedding = nullptr;
};

// Returns "m" and "v" (Adam), "a" (Adagrad) or nothing (SGD), in their order in memory.
std::vector<std::string> SlotNames(OptimizerKind kind);

// One part of an embedding row. A row has, in its order, "rows" (the weights), then the slots, then
// kUseColumn if its table keeps the use of rows.
inline constexpr char kUseColumn[] = "use";
struct Column {
  std::string name;
  int64_t width = 0;  // elements per row
  bool operator==(const Column&) const = default;
};
std::vector<Column> ColumnsOf(const TableSpec& table, OptimizerKind kind, Contents contents);
// The weights of a row: column "rows", or of small rows "rows_int8" or "rows_int4", whose width
// counts their words.
Column WeightsColumn(RowFormat format, int64_t width);
// Returns the format of such a column; none: it is another one.
std::optional<RowFormat> FormatOfWeights(const Column& column);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_STATE_VIEW_H_
