#include "embedding/sparse_optimizer.h"

#include "glog/logging.h"

namespace elastor {

int64_t SlotElements(SparseOptimizerKind kind, int64_t width) {
  switch (kind) {
    case SparseOptimizerKind::kSgd:
      return 0;
    case SparseOptimizerKind::kAdagrad:
      return width;
    case SparseOptimizerKind::kRowWiseAdagrad:
      return 1;
    case SparseOptimizerKind::kLazyAdam:
    case SparseOptimizerKind::kDenseAdam:
      return 2 * width;
  }
  LOG(FATAL) << "unknown sparse optimizer " << static_cast<int>(kind);
}

}  // namespace elastor
