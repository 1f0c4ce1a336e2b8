#ifndef ELASTOR_TRAINER_EXPERIMENT_DESCRIBE_H_
#define ELASTOR_TRAINER_EXPERIMENT_DESCRIBE_H_

#include <cstdint>
#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "trainer/data/dataset.h"

namespace elastor {

// What --mode=describe prints, as indented JSON: parameters, FLOPs a sample, memory on the fullest
// rank and the shard plan for `ranks` ranks; and, unless ntk_rows is 0, the memory of mode ntk with
// as many rows. Computes nothing of the data set but its shape.
StatusOr<std::string> Describe(const Experiment& experiment, const DatasetInfo& data, int ranks,
                               int64_t ntk_rows);

// Of that description, what runs are compared and packed by.
struct RunFigures {
  int64_t dense_parameters = 0;
  int64_t embedding_parameters = 0;
  int64_t multiply_adds = 0;  // of a sample, forward
  int64_t sure_bytes = 0;     // on the rank that is sure to touch most
};
StatusOr<RunFigures> DescribeFigures(const Experiment& experiment, const DatasetInfo& data,
                                     int ranks);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_DESCRIBE_H_
