#include "trainer/experiment/resolved_model.h"

#include "trainer/experiment/make_options.h"
#include "trainer/experiment/sequences.h"

namespace elastor {

StatusOr<ResolvedModel> ResolveModel(const Experiment& experiment, const DatasetInfo& data) {
  ELASTOR_ASSIGN_OR_RETURN(const Task task, MakeTask(experiment, data));
  ELASTOR_RETURN_IF_ERROR(FindSequences(experiment, data).status());
  return ResolvedModel{.task = task,
                       .graph = MakeGraph(experiment, data),
                       .tables = MakeTables(experiment, data),
                       .fields = MakeFields(experiment, data)};
}

}  // namespace elastor
