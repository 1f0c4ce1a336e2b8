#ifndef ELASTOR_COLLECTIVE_CALL_H_
#define ELASTOR_COLLECTIVE_CALL_H_

#include <cstdint>
#include <string>

namespace elastor {

// The phase that a collective call belongs to; bytes and time are recorded per phase.
enum class Phase {
  kSetup,
  kIdExchange,        // unique ids to their owners
  kRowExchange,       // rows from their owners to the ranks that asked for them
  kEarlyRows,         // those that travel in the step before, and which these are
  kGradientExchange,  // embedding gradients to their owners
  kDenseReduce,       // dense gradients to slice owners
  kDenseGather,       // new dense weights to everybody
  kScalars,           // loss, norm, counters
  kMetrics,           // evaluation
  kCount,
};
const char* PhaseName(Phase phase);  // "id_exchange"

// Start and Finalize are the first and the last meeting of the ranks of an MPI job.
enum class CallKind {
  kStart,
  kBarrier,
  kAllToAll,
  kAllToAllV,
  kAllGatherV,
  kBroadcast,
  kAllReduceSum,
  kAllReduceMax,
  kFinalize,
};
const char* CallName(CallKind kind);  // "AllToAllV"

// What the main thread of a rank is doing between two calls, or what it makes calls for. Other
// ranks print it about a rank that they wait for. A step's parts are named as in phase_s.
enum class Activity : uint8_t {
  kStart,
  kCheckpointLoad,
  kDataRead,
  kRouteIds,
  kLookup,
  kCompute,  // forward and backward
  kReduce,
  kRouteGradients,
  kScalars,
  kUpdate,
  kRecords,  // writes lines of metrics.jsonl, and all else between two steps
  kEvaluate,
  kSpectrum,
  kCheckpointCopy,
  // The rank waits until its own files are written, until the system has them on the disk, or until
  // other ranks' files are complete.
  kCheckpointWrite,
  kCheckpointSync,
  kCheckpointPeers,
  kCheckpointPublish,
  kFinish,  // the model and the summary
  kCount,
};
const char* ActivityName(Activity activity);  // "data_read"

// The work that calls are made for: steps, measuring a model, or all else (start, checkpoints,
// end). Messages, bytes and time are recorded by it, too.
enum class Work { kTraining, kEvaluation, kOther, kCount };
const char* WorkName(Work work);  // "training"
Work WorkOf(Activity activity);

// One rank's view of one collective call.
struct Call {
  CallKind kind = CallKind::kBarrier;
  Phase phase = Phase::kSetup;
  int64_t messages_sent = 0;   // to other ranks; a message longer than the longest counts once
  int64_t bytes_sent = 0;      // to other ranks
  int64_t bytes_received = 0;  // from other ranks
  // Everything besides kind and phase that must be equal on all ranks: the root, and the lengths
  // that do not depend on the rank.
  uint64_t alike = 0;
  int64_t number = 0;  // position among the rank's calls, counted from 1
};

// Returns "AllToAllV (id_exchange, 40 bytes, call 7)". The bytes are those sent plus those
// received.
std::string DescribeCall(const Call& call);
// Returns "AllToAllV (id_exchange, call 7)".
std::string NameCall(const Call& call);

// Returns the hash of a rank's calls up to this one, given the hash of the calls before it (0
// before the first). Ranks that make the same calls have the same hash; other ranks have different
// ones, except by chance.
inline uint64_t HistoryWith(uint64_t history, const Call& call) {
  const uint64_t identity =
      call.alike * 256 + static_cast<uint64_t>(call.kind) * 16 + static_cast<uint64_t>(call.phase);
  const uint64_t mixed = ((history ^ identity) + 1) * 0x9E3779B97F4A7C15u;
  return mixed ^ (mixed >> 32);
}

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_CALL_H_
