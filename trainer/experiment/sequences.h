#ifndef ELASTOR_TRAINER_EXPERIMENT_SEQUENCES_H_
#define ELASTOR_TRAINER_EXPERIMENT_SEQUENCES_H_

#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Finds in the data the sequences that a resolved and valid experiment's model reads. User error in
// one line naming the field: it is missing or no SEQUENCE in the data, its target is no single id
// of the same table, or it has more positions than the data keep.
StatusOr<std::vector<SequenceShape>> FindSequences(const Experiment& experiment,
                                                   const DatasetInfo& data);

// Finds FeatureShape::request_fields among the data's fields. `sequences` are FindSequences'. User
// error in one line: a field is missing in the data, or is a history or a target.
StatusOr<std::vector<int64_t>> FindRequestFields(const Experiment& experiment,
                                                 const DatasetInfo& data,
                                                 const std::vector<SequenceShape>& sequences);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_SEQUENCES_H_
