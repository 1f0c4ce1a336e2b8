#ifndef ELASTOR_TRAINER_PREPARE_SYNTHETIC_SYNTHETIC_H_
#define ELASTOR_TRAINER_PREPARE_SYNTHETIC_SYNTHETIC_H_

#include <cstdint>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/dataset.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/prepare/prepare_options.h"

namespace elastor {

// Planted data of layout SYNTHETIC (formulas: docs/reference/planted_data.md). Row r is a function
// of (seed, r), so the bytes do not depend on the number of threads.

// REQUIRES: schema.layout() == SYNTHETIC.
DatasetInfo SyntheticInfo(const Schema& schema);

// Writes and commits the rows, with the AUC of each label's true logits on the validation split as
// its best_auc, and their gAUC as best_gauc where rows have groups (then they have one label).
Status WriteSynthetic(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                      PrepareReport* report);

// The area under the ROC curve of `scores` for labels 0 and 1, ties counted half; -1 when there is
// one class only.
double ExactAuc(const std::vector<double>& scores, const std::vector<float>& labels);
// gAUC (docs/reference/training.md, "Metrics"); -1 when no group has both classes.
double ExactGauc(const std::vector<double>& scores, const std::vector<float>& labels,
                 const std::vector<uint64_t>& groups);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_SYNTHETIC_SYNTHETIC_H_
