#ifndef ELASTOR_TRAINER_PREPARE_GUESS_LIBSVM_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_LIBSVM_H_

#include <string>
#include <vector>

#include "core/base/status.h"
#include "trainer/prepare/guess/text_sample.h"

namespace elastor {

// Whether nearly all of the first lines are a label and pairs index:number.
bool IsLibsvm(const std::vector<std::string>& lines);

// Returns a schema of layout LIBSVM, as DelimitedProposal does. User error when no schema reads
// such rows. REQUIRES: IsLibsvm of the first file.
StatusOr<std::string> LibsvmProposal(const TextSample& text);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_LIBSVM_H_
