#ifndef ELASTOR_TRAINER_PREPARE_SYNTHETIC_PLANTED_LOG_H_
#define ELASTOR_TRAINER_PREPARE_SYNTHETIC_PLANTED_LOG_H_

#include <cstdint>
#include <string>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"

namespace elastor {

struct PlantedLogReport {
  int64_t rows = 0;
  // Of the true scores, over the last tenth of the rows. For TAOBAO each of these has four
  // negatives that are drawn by popularity.
  double best_auc = 0;
  double best_gauc = 0;
};

// Writes the files of a Synthetic plan with `log` into a new folder (formulas:
// docs/reference/planted_data.md). User error when the folder exists, machine error when a file
// cannot be written; then nothing is left.
StatusOr<PlantedLogReport> WritePlantedLog(const Synthetic& plan, const std::string& folder);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_SYNTHETIC_PLANTED_LOG_H_
