#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/cuda/device_error.h"
#include "nccl.h"

namespace {

// What the ranks of one unique id share. Messages wait in mailboxes, so sends never block.
struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  int ranks = 0;
  int started = 0;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> mailboxes;  // from, to
};

struct State {
  std::mutex mutex;
  std::map<int, std::shared_ptr<Clique>> cliques;
  int ids = 0;
  int aborts = 0;
  int destroyed = 0;
  ncclResult_t asynchronous_error = ncclSuccess;
  int failing_start = -1;
  int failing_all_reduce = -1;
  ncclResult_t start_error = ncclSuccess;
  ncclResult_t all_reduce_error = ncclSuccess;
};
State& Fake() {
  static State* const state = new State;
  return *state;
}

struct Message {
  ncclComm_t communicator;
  int peer;
  const char* send;  // null: of a receive
  char* receive;
  size_t bytes;
};
thread_local bool in_group = false;
thread_local std::vector<Message> group;

size_t SizeOf(ncclDataType_t type) {
  return type == ncclInt8 ? 1 : type == ncclUint64 ? sizeof(uint64_t) : sizeof(float);
}

}  // namespace

struct FakeNcclRank {
  int rank;
  std::shared_ptr<Clique> clique;
};

namespace {

void Post(const FakeNcclRank& from, int to, const void* data, size_t bytes) {
  const char* const begin = static_cast<const char*>(data);
  const std::lock_guard lock(from.clique->mutex);
  from.clique->mailboxes[{from.rank, to}].emplace_back(begin, begin + bytes);
  from.clique->changed.notify_all();
}

std::vector<char> Take(const FakeNcclRank& to, int from) {
  std::unique_lock lock(to.clique->mutex);
  auto& mailbox = to.clique->mailboxes[{from, to.rank}];
  to.clique->changed.wait(lock, [&] { return !mailbox.empty(); });
  std::vector<char> message = std::move(mailbox.front());
  mailbox.pop_front();
  return message;
}

template <typename T>
void AddAll(const std::vector<std::vector<char>>& messages, size_t count, void* sums) {
  std::vector<T> total(count, T{0});
  for (const std::vector<char>& message : messages) {
    CHECK_EQ(message.size(), count * sizeof(T));
    std::vector<T> values(count);
    std::memcpy(values.data(), message.data(), message.size());
    for (size_t i = 0; i < count; ++i) total[i] += values[i];
  }
  std::memcpy(sums, total.data(), count * sizeof(T));
}

std::vector<std::vector<char>> GatherAll(const FakeNcclRank& rank, const void* data, size_t bytes) {
  CHECK_GT(bytes, 0u);
  for (int peer = 0; peer < rank.clique->ranks; ++peer) Post(rank, peer, data, bytes);
  std::vector<std::vector<char>> messages;
  for (int peer = 0; peer < rank.clique->ranks; ++peer) messages.push_back(Take(rank, peer));
  return messages;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = 21903;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(Fake().mutex);
  id->internal[0] = static_cast<char>(++Fake().ids);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank) {
  std::shared_ptr<Clique> clique;
  {
    const std::lock_guard lock(Fake().mutex);
    if (Fake().failing_start >= 0) {
      return rank == Fake().failing_start ? Fake().start_error : ncclRemoteError;
    }
    std::shared_ptr<Clique>& of_id = Fake().cliques[id.internal[0]];
    if (of_id == nullptr) of_id = std::make_shared<Clique>();
    clique = of_id;
  }
  std::unique_lock lock(clique->mutex);
  clique->ranks = ranks;
  ++clique->started;
  clique->changed.notify_all();
  clique->changed.wait(lock, [&] { return clique->started == ranks; });
  *communicator = new FakeNcclRank{rank, clique};
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  delete communicator;
  const std::lock_guard lock(Fake().mutex);
  ++Fake().destroyed;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  delete communicator;
  const std::lock_guard lock(Fake().mutex);
  ++Fake().aborts;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  const std::lock_guard lock(Fake().mutex);
  *error = Fake().asynchronous_error;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "unhandled system error";
}
const char* ncclGetLastError(ncclComm_t communicator) {
  return communicator == nullptr ? "" : "fake: connection closed";
}

ncclResult_t ncclGroupStart() {
  CHECK(!in_group);
  in_group = true;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  CHECK(in_group);
  in_group = false;
  const std::vector<Message> messages = std::exchange(group, {});
  for (const Message& m : messages) {
    if (m.send != nullptr) Post(*m.communicator, m.peer, m.send, m.bytes);
  }
  for (const Message& m : messages) {
    if (m.send != nullptr) continue;
    const std::vector<char> bytes = Take(*m.communicator, m.peer);
    CHECK_EQ(bytes.size(), m.bytes) << "from rank " << m.peer;
    std::memcpy(m.receive, bytes.data(), bytes.size());
  }
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t) {
  CHECK(in_group && count > 0 && peer != communicator->rank);
  group.push_back(
      {communicator, peer, static_cast<const char*>(data), nullptr, count * SizeOf(type)});
  return ncclSuccess;
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t) {
  CHECK(in_group && count > 0 && peer != communicator->rank);
  group.push_back({communicator, peer, nullptr, static_cast<char*>(data), count * SizeOf(type)});
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t) {
  const size_t bytes = count * SizeOf(type);
  char* to = static_cast<char*>(receive);
  for (const std::vector<char>& message : GatherAll(*communicator, send, bytes)) {
    CHECK_EQ(message.size(), bytes);
    std::memcpy(to, message.data(), bytes);
    to += bytes;
  }
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t communicator, cudaStream_t) {
  {
    const std::lock_guard lock(Fake().mutex);
    if (communicator->rank == Fake().failing_all_reduce) return Fake().all_reduce_error;
  }
  const auto messages = GatherAll(*communicator, send, count * SizeOf(type));
  if (type == ncclUint64) {
    AddAll<uint64_t>(messages, count, receive);
  } else {
    AddAll<float>(messages, count, receive);
  }
  return ncclSuccess;
}

void FakeNccl::Reset() {
  const std::lock_guard lock(Fake().mutex);
  Fake().aborts = Fake().destroyed = 0;
  Fake().asynchronous_error = ncclSuccess;
  Fake().failing_start = Fake().failing_all_reduce = -1;
}
void FakeNccl::SetAsynchronousError(ncclResult_t error) {
  const std::lock_guard lock(Fake().mutex);
  Fake().asynchronous_error = error;
}
void FakeNccl::FailStart(int rank, ncclResult_t error) {
  const std::lock_guard lock(Fake().mutex);
  Fake().failing_start = rank;
  Fake().start_error = error;
}
void FakeNccl::FailAllReduce(int rank, ncclResult_t error) {
  const std::lock_guard lock(Fake().mutex);
  Fake().failing_all_reduce = rank;
  Fake().all_reduce_error = error;
}
int FakeNccl::aborts() {
  const std::lock_guard lock(Fake().mutex);
  return Fake().aborts;
}
int FakeNccl::destroyed() {
  const std::lock_guard lock(Fake().mutex);
  return Fake().destroyed;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  for (int i = 0; i < 16; ++i) properties->uuid.bytes[i] = static_cast<char>(17 * i);
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return ""; }
const char* cudaGetErrorName(cudaError_t) { return ""; }

namespace elastor::cuda::internal {
void UseDevice() {}
}  // namespace elastor::cuda::internal
