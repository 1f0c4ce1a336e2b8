#include "collective/communicator.h"

#include <cstdio>
#include <numeric>

#include "collective/broadcast_tree.h"
#include "collective/call_messages.h"
#include "core/base/clock.h"
#include "core/base/log.h"

namespace elastor {
namespace {

int64_t Sum(std::span<const int64_t> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

void CheckLengths(std::span<const int64_t> bytes, int ranks) {
  CHECK_EQ(static_cast<int>(bytes.size()), ranks);
  for (const int64_t length : bytes) CHECK_GE(length, 0);
}

}  // namespace

Communicator::Communicator(int rank, int size) : rank_(rank), size_(size) {
  CHECK_GE(rank, 0);
  CHECK_LT(rank, size);
}

Call Communicator::Numbered(Call call) {
  call.number = ++calls_;
  return call;
}

std::string Communicator::Describe(const Call& call) const {
  return "rank " + std::to_string(rank_) + ": " + DescribeCall(call);
}

std::string Communicator::DescribeWaiting(std::span<const int> missing_ranks) {
  constexpr size_t kNamed = 8;
  std::string text;
  for (size_t i = 0; i < missing_ranks.size() && i < kNamed; ++i) {
    text += (i == 0 ? "; waiting for rank " : ", ") + std::to_string(missing_ranks[i]);
  }
  if (missing_ranks.size() > kNamed) {
    text += " and " + std::to_string(missing_ranks.size() - kNamed) + " more";
  }
  return text;
}

std::string Communicator::DescribeDeadline(const Call& call, double deadline_seconds,
                                           std::span<const int> missing_ranks) const {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", deadline_seconds);
  return Describe(call) + " did not complete within " + seconds + " s" +
         DescribeWaiting(missing_ranks);
}

template <typename Collective>
Status Communicator::Record(const Call& call, const Sent& between_hosts, Collective collective) {
  const Clock::time_point start = Clock::now();
  Status status = collective(Numbered(call));
  records_[static_cast<size_t>(work())][static_cast<size_t>(call.phase)] += {1,
                                                                             call.messages_sent,
                                                                             call.bytes_sent,
                                                                             call.bytes_received,
                                                                             SecondsSince(start),
                                                                             between_hosts.messages,
                                                                             between_hosts.bytes};
  return status;
}

PhaseRecord Communicator::record(Phase phase) const {
  PhaseRecord sum;
  for (const auto& of_work : records_) sum += of_work[static_cast<size_t>(phase)];
  return sum;
}

Status Communicator::Barrier(Phase phase) {
  return Record({CallKind::kBarrier, phase, SentInBarrier(size_)}, {},
                [&](const Call& call) { return DoBarrier(call); });
}

Status Communicator::AllToAll(Phase phase, const void* send, void* receive, size_t block_bytes) {
  const int64_t block = static_cast<int64_t>(block_bytes);
  block_bytes_.assign(size_, block);
  const Sent sent = SentInAllToAll(rank_, block_bytes_);
  return Record({CallKind::kAllToAll, phase, sent.messages, sent.bytes, sent.bytes, block_bytes},
                SentInAllToAll(rank_, block_bytes_, OnOtherHost()), [&](const Call& call) {
                  return DoAllToAllV(call, static_cast<const char*>(send), block_bytes_,
                                     static_cast<char*>(receive), block_bytes_);
                });
}

Status Communicator::AllToAllV(Phase phase, const void* send, std::span<const int64_t> send_bytes,
                               void* receive, std::span<const int64_t> receive_bytes) {
  CheckLengths(send_bytes, size_);
  CheckLengths(receive_bytes, size_);
  CHECK_EQ(send_bytes[rank_], receive_bytes[rank_]);
  const Sent sent = SentInAllToAll(rank_, send_bytes);
  const int64_t received = Sum(receive_bytes) - receive_bytes[rank_];
  return Record({CallKind::kAllToAllV, phase, sent.messages, sent.bytes, received},
                SentInAllToAll(rank_, send_bytes, OnOtherHost()), [&](const Call& call) {
                  return DoAllToAllV(call, static_cast<const char*>(send), send_bytes,
                                     static_cast<char*>(receive), receive_bytes);
                });
}

Status Communicator::AllGatherV(Phase phase, const void* send, void* receive,
                                std::span<const int64_t> bytes) {
  CheckLengths(bytes, size_);
  const int64_t total = Sum(bytes);
  const Sent sent = SentInAllGather(rank_, size_, bytes[rank_]);
  return Record({CallKind::kAllGatherV, phase, sent.messages, sent.bytes, total - bytes[rank_],
                 static_cast<uint64_t>(total)},
                SentInAllGather(rank_, size_, bytes[rank_], OnOtherHost()), [&](const Call& call) {
                  return DoAllGatherV(call, static_cast<const char*>(send),
                                      static_cast<char*>(receive), bytes);
                });
}

Status Communicator::Broadcast(Phase phase, void* data, size_t bytes, int root) {
  CHECK_GE(root, 0);
  CHECK_LT(root, size_);
  const int64_t length = static_cast<int64_t>(bytes);
  const Sent sent = SentInBroadcast(rank_, root, size_, length);
  return Record({CallKind::kBroadcast, phase, sent.messages, sent.bytes, rank_ == root ? 0 : length,
                 bytes * size_ + root},
                SentInBroadcast(rank_, root, size_, length, OnOtherHost()), [&](const Call& call) {
                  return DoBroadcast(call, static_cast<char*>(data), length, root);
                });
}

Status Communicator::AllReduceSum(Phase phase, std::span<int64_t> values) {
  return AllReduce(CallKind::kAllReduceSum, phase, Reduction::kSum, values);
}

Status Communicator::AllReduceMax(Phase phase, std::span<int64_t> values) {
  return AllReduce(CallKind::kAllReduceMax, phase, Reduction::kMax, values);
}

Status Communicator::AllReduce(CallKind kind, Phase phase, Reduction reduction,
                               std::span<int64_t> values) {
  const auto bytes = static_cast<int64_t>(values.size_bytes());
  const Sent sent = SentInAllReduce(rank_, size_, bytes);
  return Record({kind, phase, sent.messages, sent.bytes, sent.bytes, values.size()},
                SentInAllReduce(rank_, size_, bytes, OnOtherHost()),
                [&](const Call& call) { return DoAllReduce(call, reduction, values); });
}

Status BroadcastText(Communicator& communicator, Phase phase, int root, std::string* text) {
  int64_t size = static_cast<int64_t>(text->size());
  ELASTOR_RETURN_IF_ERROR(communicator.Broadcast(phase, &size, sizeof(size), root));
  text->resize(size);
  return communicator.Broadcast(phase, text->data(), text->size(), root);
}

Status AgreeOnStatus(Communicator& communicator, const Status& mine) {
  const auto agree = [&](Status* agreed) -> Status {
    int64_t failing = mine.ok() ? 0 : communicator.size() - communicator.rank();
    ELASTOR_RETURN_IF_ERROR(communicator.AllReduceMax(Phase::kSetup, {&failing, 1}));
    if (failing == 0) return OkStatus();
    const int root = communicator.size() - static_cast<int>(failing);
    int64_t code = static_cast<int64_t>(mine.code());
    ELASTOR_RETURN_IF_ERROR(communicator.Broadcast(Phase::kSetup, &code, sizeof(code), root));
    std::string message = mine.message();
    ELASTOR_RETURN_IF_ERROR(BroadcastText(communicator, Phase::kSetup, root, &message));
    *agreed = Status(static_cast<StatusCode>(code), std::move(message));
    agreed->set_agreed();
    return OkStatus();
  };
  Status agreed;
  const Status exchange = agree(&agreed);
  if (exchange.ok()) return agreed;
  return mine.ok() ? exchange : mine;
}

Status AgreeOnText(Communicator& communicator, const std::string& what, const std::string& mine) {
  std::string first = mine;
  ELASTOR_RETURN_IF_ERROR(BroadcastText(communicator, Phase::kSetup, 0, &first));
  if (first == mine) return AgreeOnStatus(communicator, OkStatus());
  return AgreeOnStatus(communicator,
                       UserError("rank " + std::to_string(communicator.rank()) + ": " + what +
                                 " is '" + mine + "', expected rank 0's '" + first + "'"));
}

}  // namespace elastor
