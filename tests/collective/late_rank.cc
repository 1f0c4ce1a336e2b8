// A job whose rank 1 never arrives at the second call: the others' deadline must end it.
#include <unistd.h>

#include <cstdint>

#include "collective/communicator.h"

int main() {
  auto made = elastor::MakeWorldCommunicator({.deadline_seconds = 1});
  if (!made.ok()) return 1;
  elastor::Communicator& world = *made.value();
  if (!world.Barrier(elastor::Phase::kSetup).ok()) return 1;
  if (world.rank() == 1) pause();
  int64_t blocks[2][64] = {};
  const elastor::Status status =
      world.AllToAll(elastor::Phase::kRowExchange, blocks[0], blocks[1], 8);
  return status.ok() ? 0 : 1;
}
