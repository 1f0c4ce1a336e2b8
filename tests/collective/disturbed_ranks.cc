// A job in which rank 1 does something else than the others, by the first argument:
//   stays_away    never arrives at a call
//   other_call    an all-reduce where the others exchange
//   other_length  an all-reduce of more integers
//   other_root    a broadcast from another rank, then a barrier like the others
//   sends_less    fewer bytes than its peers expect
//   sends_more    more
// The second argument is the deadline in seconds.
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "collective/communicator.h"

namespace elastor {
namespace {

constexpr Phase kPhase = Phase::kRowExchange;

Status MakeCalls(const std::string& disturbance, Communicator& world) {
  const bool disturbed = world.rank() == 1;
  int64_t send[64] = {};
  int64_t receive[64] = {};
  if (disturbance == "stays_away" || disturbance == "other_call") {
    if (disturbed && disturbance == "stays_away") pause();
    if (disturbed) return world.AllReduceSum(Phase::kScalars, {send, 2});
    return world.AllToAll(kPhase, send, receive, 8);
  }
  if (disturbance == "other_length") {
    return world.AllReduceSum(Phase::kScalars, {send, disturbed ? size_t{3} : size_t{2}});
  }
  if (disturbance == "other_root") {
    ELASTOR_RETURN_IF_ERROR(world.Broadcast(kPhase, send, 8, disturbed ? 1 : 0));
    return world.Barrier(Phase::kSetup);
  }
  const int64_t bytes = disturbance == "sends_less" ? 8 : 24;
  std::vector<int64_t> sent(world.size(), disturbed ? bytes : 16);
  std::vector<int64_t> expected(world.size(), 16);
  sent[world.rank()] = expected[world.rank()] = 0;
  return world.AllToAllV(kPhase, send, sent, receive, expected);
}

int Main(const std::string& disturbance, double deadline_seconds) {
  auto made = MakeWorldCommunicator({.deadline_seconds = deadline_seconds});
  if (!made.ok()) return 1;
  Communicator& world = *made.value();
  if (!world.Barrier(Phase::kSetup).ok()) return 1;
  return MakeCalls(disturbance, world).ok() ? 0 : 1;
}

}  // namespace
}  // namespace elastor

int main(int, char** argv) { return elastor::Main(argv[1], std::atof(argv[2])); }
