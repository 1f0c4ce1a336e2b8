#include "collective/call.h"

#include "core/base/log.h"

namespace elastor {

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kSetup:
      return "setup";
    case Phase::kIdExchange:
      return "id_exchange";
    case Phase::kRowExchange:
      return "row_exchange";
    case Phase::kEarlyRows:
      return "early_rows";
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

const char* ActivityName(Activity activity) {
  switch (activity) {
    case Activity::kStart:
      return "start";
    case Activity::kCheckpointLoad:
      return "checkpoint_load";
    case Activity::kDataRead:
      return "data_read";
    case Activity::kRouteIds:
      return "route_ids";
    case Activity::kLookup:
      return "lookup";
    case Activity::kCompute:
      return "compute";
    case Activity::kReduce:
      return "reduce";
    case Activity::kRouteGradients:
      return "route_gradients";
    case Activity::kScalars:
      return "scalars";
    case Activity::kUpdate:
      return "update";
    case Activity::kRecords:
      return "records";
    case Activity::kEvaluate:
      return "evaluate";
    case Activity::kSpectrum:
      return "spectrum";
    case Activity::kCheckpointCopy:
      return "checkpoint_copy";
    case Activity::kCheckpointWrite:
      return "checkpoint_write";
    case Activity::kCheckpointSync:
      return "checkpoint_fsync";
    case Activity::kCheckpointPeers:
      return "checkpoint_peers";
    case Activity::kCheckpointPublish:
      return "checkpoint_publish";
    case Activity::kFinish:
      return "finish";
    case Activity::kCount:
      break;
  }
  LOG(FATAL) << "no such activity: " << static_cast<int>(activity);
}

const char* WorkName(Work work) {
  switch (work) {
    case Work::kTraining:
      return "training";
    case Work::kEvaluation:
      return "evaluation";
    case Work::kOther:
      return "other";
    case Work::kCount:
      break;
  }
  LOG(FATAL) << "no such work: " << static_cast<int>(work);
}

Work WorkOf(Activity activity) {
  if (activity >= Activity::kRouteIds && activity <= Activity::kUpdate) return Work::kTraining;
  const bool measures = activity == Activity::kEvaluate || activity == Activity::kSpectrum;
  return measures ? Work::kEvaluation : Work::kOther;
}

std::string NameCall(const Call& call) {
  return std::string(CallName(call.kind)) + " (" + PhaseName(call.phase) + ", call " +
         std::to_string(call.number) + ")";
}

std::string DescribeCall(const Call& call) {
  return std::string(CallName(call.kind)) + " (" + PhaseName(call.phase) + ", " +
         std::to_string(call.bytes_sent + call.bytes_received) + " bytes, call " +
         std::to_string(call.number) + ")";
}

}  // namespace elastor
