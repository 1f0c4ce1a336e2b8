#ifndef ELASTOR_TRAINER_MODES_FLAGS_H_
#define ELASTOR_TRAINER_MODES_FLAGS_H_

#include "collective/communicator.h"
#include "core/base/status.h"
#include "gflags/gflags.h"

DECLARE_string(experiment);
DECLARE_string(output_dir);
DECLARE_string(mode);
DECLARE_string(model);
DECLARE_string(input);
DECLARE_int64(max_bad_rows);
DECLARE_string(split);
DECLARE_bool(predictions);
DECLARE_bool(logits);
DECLARE_bool(per_sample);
DECLARE_int64(rows);
DECLARE_bool(kernels);
DECLARE_bool(tensorboard);
DECLARE_string(device);
DECLARE_string(export);
DECLARE_int32(ranks);
DECLARE_int32(ranks_per_host);
DECLARE_string(machine);
DECLARE_bool(scaling);
DECLARE_bool(advise);
DECLARE_bool(supervise);
DECLARE_string(hosts);
DECLARE_string(hostfile);
DECLARE_string(launch);
DECLARE_int32(max_restarts);
DECLARE_bool(resume);
DECLARE_string(continue);
DECLARE_bool(list_models);

namespace elastor {

// The file that defines the trainer's flags, for ParseCommandLine and FlagsHelp.
inline constexpr char kFlagsFile[] = "trainer/modes/flags.cc";

// Whether the ranks were started with the same flags. Two may differ between hosts: the path of the
// model, which is compared as given or not, and that of the experiment, which is compared itself.
// Collective.
Status AgreeOnFlags(Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_MODES_FLAGS_H_
