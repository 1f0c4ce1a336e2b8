#include "core/tensor/panels.h"

#include "core/base/log.h"

namespace elastor {

void RefuseView(int64_t end, int64_t available) {
  LOG(FATAL) << "a view of panels reaches beyond another: " << end << " vs. " << available;
}

}  // namespace elastor
