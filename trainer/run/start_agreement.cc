#include "trainer/run/start_agreement.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/process/build_info.h"
#include "core/process/stop_signals.h"
#include "trainer/experiment/config.h"
#include "xxhash.h"

namespace elastor {

Status AgreeOnProgram(Communicator& communicator) {
  std::string mine = BuildName();
  Status status;
  if (!IsBuiltFromCommit() && communicator.size() > 1) {
    // In pieces, as every rank would take the program's size of memory.
    constexpr size_t kPieceBytes = size_t{1} << 18;
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                        &XXH3_freeState);
    XXH3_64bits_reset(hash.get());
    status = ReadFileInPieces("/proc/self/exe", kPieceBytes, [&](std::string_view piece) {
      XXH3_64bits_update(hash.get(), piece.data(), piece.size());
    });
    char checksum[17];
    std::snprintf(checksum, sizeof checksum, "%016llx",
                  static_cast<unsigned long long>(XXH3_64bits_digest(hash.get())));
    if (status.ok()) StrAppend(&mine, ", checksum ", checksum);
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, status));
  return AgreeOnText(communicator, "the build", mine);
}

Status AgreeOnExperiment(const Experiment& experiment, Communicator& communicator) {
  std::string bytes = experiment.SerializeAsString();
  ELASTOR_RETURN_IF_ERROR(BroadcastText(communicator, Phase::kSetup, 0, &bytes));
  Experiment of_rank_0;
  CHECK(of_rank_0.ParseFromString(bytes));
  const std::string difference = RankDifference(experiment, of_rank_0);
  if (difference.empty()) return AgreeOnStatus(communicator, OkStatus());
  return AgreeOnStatus(communicator,
                       UserError(StrCat("rank ", communicator.rank(), ": ", difference)));
}

Status AgreeOnGoingOn(Communicator& communicator) {
  int64_t signal = StopSignal();
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceMax(Phase::kSetup, {&signal, 1}));
  if (signal == 0) return OkStatus();
  Status stopped = StoppedBySignal(
      StrCat("stopped by SIG", sigabbrev_np(static_cast<int>(signal)),
             " before the run began: nothing was done; start the same command again"));
  stopped.set_agreed();
  return stopped;
}

}  // namespace elastor
