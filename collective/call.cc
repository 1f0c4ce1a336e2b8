#include "collective/call.h"

#include "glog/logging.h"

namespace elastor {

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kSetup:
      return "setup";
    case Phase::kIdExchange:
      return "id_exchange";
    case Phase::kRowExchange:
      return "row_exchange";
    case Phase::kGradientExchange:
      return "gradient_exchange";
    case Phase::kDenseReduce:
      return "dense_reduce";
    case Phase::kDenseGather:
      return "dense_gather";
    case Phase::kScalars:
      return "scalars";
    case Phase::kMetrics:
      return "metrics";
    case Phase::kCount:
      break;
  }
  LOG(FATAL) << "no such phase: " << static_cast<int>(phase);
}

const char* CallName(CallKind kind) {
  switch (kind) {
    case CallKind::kStart:
      return "Start";
    case CallKind::kBarrier:
      return "Barrier";
    case CallKind::kAllToAll:
      return "AllToAll";
    case CallKind::kAllToAllV:
      return "AllToAllV";
    case CallKind::kAllGatherV:
      return "AllGatherV";
    case CallKind::kBroadcast:
      return "Broadcast";
    case CallKind::kAllReduceSum:
      return "AllReduceSum";
    case CallKind::kAllReduceMax:
      return "AllReduceMax";
    case CallKind::kFinalize:
      return "Finalize";
  }
  LOG(FATAL) << "no such call: " << static_cast<int>(kind);
}

std::string DescribeCall(const Call& call) {
  return std::string(CallName(call.kind)) + " (" + PhaseName(call.phase) + ", " +
         std::to_string(call.bytes_sent + call.bytes_received) + " bytes, call " +
         std::to_string(call.number) + ")";
}

}  // namespace elastor
