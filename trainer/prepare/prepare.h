#ifndef ELASTOR_TRAINER_PREPARE_PREPARE_H_
#define ELASTOR_TRAINER_PREPARE_PREPARE_H_

#include "core/base/status.h"
#include "trainer/prepare/prepare_options.h"

namespace elastor {

// Makes a prepared data set (docs/use/data.md) of raw files, or of a synthetic plan, in four
// passes: text to packed rows and sorted vocabularies by segment; counts and statistics; merging
// the vocabularies, which gives ids; blocks. Working files are beside the output until it is
// complete; a run that was killed, or found no space, goes on from them when it is called again
// with the same options. User error when there is an unfinished run of other options (unless
// options.restart).
StatusOr<PrepareReport> Prepare(const PrepareOptions& options);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_PREPARE_H_
