#include "core/optimizer/optimizer_options.h"

#include "core/base/log.h"

namespace elastor {

int64_t SlotElements(OptimizerKind kind, int64_t width) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return 0;
    case OptimizerKind::kAdagrad:
      return width;
    case OptimizerKind::kRowWiseAdagrad:
      return 1;
    case OptimizerKind::kLazyAdam:
    case OptimizerKind::kDenseAdam:
      return 2 * width;
  }
  LOG(FATAL) << "unknown optimizer " << static_cast<int>(kind);
}

double InitialSlot(const OptimizerOptions& options) {
  const bool adagrad =
      options.kind == OptimizerKind::kAdagrad || options.kind == OptimizerKind::kRowWiseAdagrad;
  return adagrad ? options.initial_accumulator : 0;
}

}  // namespace elastor
