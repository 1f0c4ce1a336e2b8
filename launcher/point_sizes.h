#ifndef ELASTOR_LAUNCHER_POINT_SIZES_H_
#define ELASTOR_LAUNCHER_POINT_SIZES_H_

#include <string>

#include "configs/proto/sweep.pb.h"
#include "core/base/status.h"

namespace elastor {

// Replaces {size} in the settings of a loaded sweep's points by the whole numbers that sweep->match
// asks for, and removes the match. User error, in one line that begins with `source` (the sweep's
// path), where no number can be found.
Status SetPointSizes(const std::string& source, Sweep* sweep);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_POINT_SIZES_H_
