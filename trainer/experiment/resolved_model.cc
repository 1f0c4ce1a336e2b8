#include "trainer/experiment/resolved_model.h"

#include <string>
#include <utility>

#include "core/base/text.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/sequences.h"

namespace elastor {
namespace {

// Beyond these, sizes that are made of the model's and the data's pass 64 bits.
constexpr int64_t kMostRowNumbers = int64_t{1} << 24;
constexpr int64_t kMostDenseParameters = int64_t{1} << 36;
constexpr double kMostTableNumbers = 0x1p52;

// Refuses embeddings that no machine holds, before anything is made of them.
Status CheckEmbeddings(const Experiment& experiment, const DatasetInfo& data,
                       const std::vector<TableSpec>& tables) {
  const int64_t width = TableWidth(experiment);
  const int64_t fields = data.numeric_count() + static_cast<int64_t>(data.categorical.size());
  const auto refuse = [&](const std::string& what) {
    return UserError(StrCat("embedding.width: ", experiment.embedding().width(), " for ", what));
  };
  if (fields > kMostRowNumbers / width) {
    return refuse(StrCat(fields, " fields; expected at most ", kMostRowNumbers,
                         " numbers for the fields of a row"));
  }
  double numbers = 0;
  for (const TableSpec& table : tables) {
    numbers += static_cast<double>(table.rows) * static_cast<double>(width);
  }
  if (numbers <= kMostTableNumbers) return OkStatus();
  return refuse(
      Format("tables of %.3g numbers; expected at most %.3g", numbers, kMostTableNumbers));
}

}  // namespace

StatusOr<ResolvedModel> ResolveModel(const Experiment& experiment, const DatasetInfo& data) {
  ELASTOR_ASSIGN_OR_RETURN(const Task task, MakeTask(experiment, data));
  ELASTOR_ASSIGN_OR_RETURN(const auto sequences, FindSequences(experiment, data));
  ELASTOR_RETURN_IF_ERROR(FindRequestFields(experiment, data, sequences).status());
  ELASTOR_RETURN_IF_ERROR(CheckKeyedTables(experiment, data));
  std::vector<TableSpec> tables = MakeTables(experiment, data);
  ELASTOR_RETURN_IF_ERROR(CheckEmbeddings(experiment, data, tables));
  ResolvedModel model = {.task = task,
                         .graph = MakeGraph(experiment, data),
                         .tables = std::move(tables),
                         .fields = MakeFields(experiment, data)};
  const int64_t parameters = model.graph.parameters().element_count();
  if (parameters <= kMostDenseParameters) return model;
  return UserError(Format("model: %.3g dense parameters; expected at most %.3g",
                          static_cast<double>(parameters),
                          static_cast<double>(kMostDenseParameters)));
}

}  // namespace elastor
