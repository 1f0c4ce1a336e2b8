#ifndef ELASTOR_TRAINER_STEP_STEP_CALLS_H_
#define ELASTOR_TRAINER_STEP_STEP_CALLS_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collective/call.h"
#include "collective/call_messages.h"
#include "collective/communicator.h"
#include "collective/rank_hosts.h"
#include "core/base/exact_sum.h"
#include "core/base/leaves.h"
#include "embedding/exchange_places.h"
#include "embedding/route_count.h"
#include "embedding/table.h"
#include "embedding/wire_format.h"

namespace elastor {

// The declaration of a step: its parts, the calls that a rank makes in them, and their bytes.
// TrainStep enters its parts, orders its buckets and sizes its scalars by it; every size of an
// exchange comes from the function that the exchange itself uses. Whoever predicts a step attaches
// durations to it (trainer/cost). train_step_test holds it to the calls that steps make. A pass
// that removes rows of keyed tables (embedding/row_pass.h) makes further calls, which are not
// declared: how many depends on the scores. Rows that were early are sent again behind it.

// The parts, in order. Each is named as its activity: "route_ids".
enum class StepPart {
  kRouteIds,  // unique ids and their exchange (waiting for it, when overlapped)
  kLookup,    // owners gather rows and send them to the ranks that asked
  kCompute,   // forward, backward, sums over own leaves
  kReduce,    // exchange and sum of dense gradients
  kRouteGradients,
  kScalars,
  kUpdate,  // optimizers, all-gather of weights and repacking (unless these come late)
};
inline constexpr int kStepParts = 7;
inline Activity ActivityOf(StepPart part) {
  return static_cast<Activity>(static_cast<int>(Activity::kRouteIds) + static_cast<int>(part));
}
static_assert(static_cast<int>(Activity::kUpdate) - static_cast<int>(Activity::kRouteIds) ==
              kStepParts - 1);
inline const char* StepPartName(StepPart part) { return ActivityName(ActivityOf(part)); }

// Total time of the steps' parts on this rank, in seconds.
class StepTimes {
 public:
  double& operator[](StepPart part) { return seconds_[static_cast<int>(part)]; }
  double operator[](StepPart part) const { return seconds_[static_cast<int>(part)]; }

 private:
  std::array<double, kStepParts> seconds_{};
};

// Enters the parts of one step, each once and in order: the watchdog learns it, and the time of a
// part is that until the next.
class StepClock {
 public:
  // communicator and times outlive the object.
  StepClock(Communicator* communicator, StepTimes* times)
      : communicator_(communicator), times_(times) {}
  void Enter(StepPart part);
  void End();  // of the last part

 private:
  Communicator* communicator_;
  StepTimes* times_;
  std::optional<StepPart> part_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Number of request bits. A rank sets a bit to tell all ranks something (to stop, to write a
// checkpoint); the caller defines their meaning.
inline constexpr int kRequestBits = 6;
// The scalars that travel once a step: exact sums of loss, squared norm, penalty and squared rows,
// and the request bits; counts of keyed tables follow. Weights of samples are one exact sum.
inline constexpr int kScalarSums = 4;
inline constexpr int kScalarWords = kScalarSums * ExactSum::kWords + kRequestBits;
// Returns the words of all of them.
inline int64_t ScalarWords(std::span<const TableSpec> tables) {
  const auto has_rows = [](const TableSpec& table) { return table.keyed && table.looked_up(); };
  return kScalarWords + kKeyedTableCounts * std::ranges::count_if(tables, has_rows);
}
inline constexpr int kWeightWords = ExactSum::kWords;
// Losses of the batch that gradients need (Task::batch_losses) are one exact sum each, and travel
// before the backward pass.

// Returns the dense buckets in the order in which they are reduced: with overlap as they become
// complete, the last layers' first.
std::vector<int> ReduceOrder(int buckets, bool overlap);

// What the calls of all steps depend on.
struct StepShape {
  int ranks = 1;
  int64_t leaves = 0;          // V
  std::vector<Range> buckets;  // of the dense parameters
  bool overlap = false;
  bool late_weights = false;  // WeightsComeLate
  bool sample_weights = false;
  int64_t batch_losses = 0;             // Task::batch_losses
  int64_t scalar_words = kScalarWords;  // ScalarWords
  int64_t element_bytes = sizeof(float);
  WireFormats wire = {};
  const RankHosts* hosts = nullptr;  // if vectors and dense gradients go by host
};

// What the calls of one batch depend on besides.
struct BatchDemand {
  int64_t rows = 0;  // of the whole batch
  RouteCounts routes;
};

// A call to the communicator that one rank makes in a step.
struct StepCall {
  StepPart part;
  bool beside = false;  // by the communication thread, while the others compute
  Phase phase;
  CallKind kind;
  int bucket = -1;            // of dense parameters
  std::vector<int64_t> send;  // bytes by rank; of an all-reduce one entry, its values

  // Returns what is sent, to all ranks or where counts(rank) is true.
  template <typename Counts = ToAnyRank>
  Sent sent(int rank, int ranks, const Counts& counts = {}) const {
    if (kind == CallKind::kAllReduceSum) return SentInAllReduce(rank, ranks, send[0], counts);
    return SentInAllToAll(rank, send, counts);
  }
};

// Returns the calls of rank `rank`, in order. next: the batch whose ids are routed, and whose early
// rows are sent, beside the computation; null: none. routed: whether the batch's were, in the step
// before. settled: whether that step's weights have come, as they do where an evaluation follows
// it.
std::vector<StepCall> CallsOfStep(const StepShape& shape, const BatchDemand& batch,
                                  const BatchDemand* next, bool routed, bool settled, int rank);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_STEP_STEP_CALLS_H_
