// One suite for every communicator. Alone: Self, the world without MPI, and Thread over several
// numbers of ranks. Under mpirun: the world's ranks, each running the same tests.
// --max_message_bytes=B cuts messages into pieces of B bytes.
#include "collective/communicator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <ostream>
#include <thread>

#include "gflags/gflags.h"
#include "gtest/gtest.h"

DEFINE_int64(max_message_bytes, int64_t{1} << 30, "longest single message");

namespace elastor {
namespace {

constexpr Phase kPhase = Phase::kGradientExchange;
// Far above what a call takes, so that a rank that fails an assertion ends the test.
constexpr double kDeadlineSeconds = 600;

std::unique_ptr<Communicator> world;

enum class Kind { kSelf, kThread, kWorld };
struct Ranks {
  Kind kind;
  int count;  // of threads
};

std::ostream& operator<<(std::ostream& out, const Ranks& ranks) {
  constexpr const char* kNames[] = {"Self", "Thread", "World"};
  return out << kNames[static_cast<int>(ranks.kind)] << ranks.count;
}

CommunicatorOptions Options() {
  return {.deadline_seconds = kDeadlineSeconds, .max_message_bytes = FLAGS_max_message_bytes};
}

// Runs `test` once per rank that lives in this process.
void OnEveryRank(const Ranks& ranks, const std::function<void(Communicator&)>& test) {
  if (ranks.kind == Kind::kWorld) return test(*world);
  if (ranks.kind == Kind::kSelf) return test(*MakeSelfCommunicator());
  auto communicators = MakeThreadCommunicators(ranks.count, Options());
  std::vector<std::thread> threads;
  for (auto& communicator : communicators) {
    threads.emplace_back([&test, &communicator] { test(*communicator); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Byte `index` of what rank `from` sends to rank `to`. It comes again after kPeriod bytes.
char Pattern(int from, int to, int64_t index) {
  return static_cast<char>(from * 37 + to * 101 + index * 7 + (index >> 8));
}
constexpr int64_t kPeriod = 1 << 16;

void AppendBlock(int from, int to, int64_t bytes, std::vector<char>* blocks) {
  const size_t begin = blocks->size();
  blocks->resize(begin + bytes);
  char* const block = blocks->data() + begin;
  for (int64_t i = 0; i < std::min(bytes, kPeriod); ++i) block[i] = Pattern(from, to, i);
  for (int64_t i = kPeriod; i < bytes; i += kPeriod)
    std::memcpy(block + i, block, std::min(bytes - i, kPeriod));
}

constexpr int64_t kLengths[] = {0, 1, 7, 63, 4097};
// Longer than 64 pieces of the usual length; one piece a byte would be too many messages.
int64_t LongLength() { return FLAGS_max_message_bytes < 1000 ? 20001 : 5000001; }

class CommunicatorTest : public testing::TestWithParam<Ranks> {};

TEST_P(CommunicatorTest, AllToAllBringsEveryBlockToItsRank) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    for (const int64_t bytes : kLengths) {
      std::vector<char> send, expected;
      for (int r = 0; r < c.size(); ++r) AppendBlock(c.rank(), r, bytes, &send);
      for (int r = 0; r < c.size(); ++r) AppendBlock(r, c.rank(), bytes, &expected);
      std::vector<char> receive(expected.size(), 'x');
      ASSERT_TRUE(c.AllToAll(kPhase, send.data(), receive.data(), bytes).ok());
      EXPECT_EQ(receive, expected) << "rank " << c.rank() << ", " << bytes << " bytes";
    }
  });
}

TEST_P(CommunicatorTest, AllToAllVWithUnequalAndEmptyBlocks) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    // Every pair has a length of its own; some are empty, one is long.
    const auto length = [&c](int from, int to) -> int64_t {
      if (from == c.size() - 1 && to == 0) return LongLength();
      return (from + 2 * to) % 3 == 0 ? 0 : 13 * from + 5 * to + 1;
    };
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<char> send, expected;
      std::vector<int64_t> send_bytes, receive_bytes;
      for (int r = 0; r < c.size(); ++r) {
        send_bytes.push_back(length(c.rank(), r));
        receive_bytes.push_back(length(r, c.rank()));
        AppendBlock(c.rank(), r, send_bytes.back(), &send);
        AppendBlock(r, c.rank(), receive_bytes.back(), &expected);
      }
      std::vector<char> receive(expected.size(), 'x');
      ASSERT_TRUE(c.AllToAllV(kPhase, send.data(), send_bytes, receive.data(), receive_bytes).ok());
      EXPECT_EQ(receive, expected) << "rank " << c.rank();
    }
  });
}

TEST_P(CommunicatorTest, AllGatherVFromElsewhereAndInPlace) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    for (const int64_t base : {int64_t{0}, int64_t{1}, LongLength() / 8}) {
      std::vector<int64_t> bytes;
      std::vector<char> expected;
      int64_t own_begin = 0;
      for (int r = 0; r < c.size(); ++r) {
        if (r == c.rank()) own_begin = static_cast<int64_t>(expected.size());
        bytes.push_back(r % 3 == 1 ? 0 : base + 3 * r);
        AppendBlock(r, 0, bytes.back(), &expected);
      }
      std::vector<char> send;
      AppendBlock(c.rank(), 0, bytes[c.rank()], &send);
      std::vector<char> receive(expected.size(), 'x');
      ASSERT_TRUE(c.AllGatherV(kPhase, send.data(), receive.data(), bytes).ok());
      EXPECT_EQ(receive, expected) << "rank " << c.rank();

      std::vector<char> in_place(expected.size(), 'x');
      std::copy(send.begin(), send.end(), in_place.begin() + own_begin);
      ASSERT_TRUE(c.AllGatherV(kPhase, in_place.data() + own_begin, in_place.data(), bytes).ok());
      EXPECT_EQ(in_place, expected) << "rank " << c.rank();
    }
  });
}

TEST_P(CommunicatorTest, BroadcastFromEveryRoot) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    for (int root = 0; root < c.size(); ++root) {
      for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4097}, LongLength()}) {
        std::vector<char> expected;
        AppendBlock(root, 1, bytes, &expected);
        std::vector<char> data =
            c.rank() == root ? expected : std::vector<char>(expected.size(), 'x');
        ASSERT_TRUE(c.Broadcast(kPhase, data.data(), data.size(), root).ok());
        EXPECT_EQ(data, expected) << "rank " << c.rank() << ", root " << root;
      }
    }
  });
}

TEST_P(CommunicatorTest, AllReduceSumsAndWraps) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    const int64_t n = c.size();
    for (const int64_t length : {0, 1, 33, 5001}) {
      std::vector<int64_t> values, expected;
      for (int64_t i = 0; i < length; ++i) {
        values.push_back((c.rank() + 1) * (i * 1000003 - 500));
        expected.push_back(n * (n + 1) / 2 * (i * 1000003 - 500));
      }
      ASSERT_TRUE(c.AllReduceSum(kPhase, values).ok());
      EXPECT_EQ(values, expected) << "rank " << c.rank();
    }
    int64_t wrapping = std::numeric_limits<int64_t>::max();
    ASSERT_TRUE(c.AllReduceSum(kPhase, {&wrapping, 1}).ok());
    const uint64_t expected = static_cast<uint64_t>(n) << 63;  // n (2^63 - 1) = n 2^63 - n
    EXPECT_EQ(static_cast<uint64_t>(wrapping), expected - static_cast<uint64_t>(n));
  });
}

TEST_P(CommunicatorTest, AllReduceMax) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    // The greatest value of element i is that of rank i % size.
    std::vector<int64_t> values, expected;
    for (int64_t i = 0; i < 77; ++i) {
      values.push_back(i % c.size() == c.rank() ? -i : -1000 - c.rank());
      expected.push_back(-i);
    }
    ASSERT_TRUE(c.AllReduceMax(kPhase, values).ok());
    EXPECT_EQ(values, expected) << "rank " << c.rank();
  });
}

TEST_P(CommunicatorTest, RecordsCallsAndBytesByPhase) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    const int64_t n = c.size();
    const PhaseRecord before = c.record(Phase::kMetrics);
    const int64_t other_calls = c.record(Phase::kIdExchange).calls;
    std::vector<char> send(n * 10), receive(n * 10);
    ASSERT_TRUE(c.AllToAll(Phase::kMetrics, send.data(), receive.data(), 10).ok());
    ASSERT_TRUE(c.Barrier(Phase::kMetrics).ok());
    const PhaseRecord& after = c.record(Phase::kMetrics);
    EXPECT_EQ(after.calls - before.calls, 2);
    int64_t steps = 0;
    while (1 << steps < n) ++steps;
    EXPECT_EQ(after.messages_sent - before.messages_sent, n - 1 + steps);
    EXPECT_EQ(after.bytes_sent - before.bytes_sent, (n - 1) * 10);
    EXPECT_EQ(after.bytes_received - before.bytes_received, (n - 1) * 10);
    EXPECT_GE(after.seconds, before.seconds);
    EXPECT_EQ(c.record(Phase::kIdExchange).calls, other_calls);
  });
}

// By the messages of an all-reduce on up to eight ranks: the ranks below the largest power of two
// double, those beyond it have a partner among them.
TEST_P(CommunicatorTest, RecordsMessagesByWork) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    constexpr int64_t kMessages[9][8] = {{},
                                         {0},
                                         {1, 1},
                                         {2, 1, 1},
                                         {2, 2, 2, 2},
                                         {3, 2, 2, 2, 1},
                                         {3, 3, 2, 2, 1, 1},
                                         {3, 3, 3, 2, 1, 1, 1},
                                         {3, 3, 3, 3, 3, 3, 3, 3}};
    if (c.size() > 8) return;
    const PhaseRecord training = c.record(kPhase, Work::kTraining);
    const PhaseRecord evaluation = c.record(kPhase, Work::kEvaluation);
    int64_t value = 1;
    c.Enter(Activity::kSpectrum);
    ASSERT_TRUE(c.AllReduceSum(kPhase, {&value, 1}).ok());
    c.Enter(Activity::kScalars);
    EXPECT_EQ(c.record(kPhase, Work::kTraining).calls, training.calls);
    const PhaseRecord after = c.record(kPhase, Work::kEvaluation);
    EXPECT_EQ(after.calls - evaluation.calls, 1);
    EXPECT_EQ(after.messages_sent - evaluation.messages_sent, kMessages[c.size()][c.rank()]);
    EXPECT_EQ(after.bytes_sent - evaluation.bytes_sent, 8 * kMessages[c.size()][c.rank()]);
    // Blocks without bytes are no messages.
    std::vector<int64_t> none(c.size(), 0);
    ASSERT_TRUE(c.AllToAllV(kPhase, nullptr, none, nullptr, none).ok());
    EXPECT_EQ(c.record(kPhase, Work::kTraining).calls - training.calls, 1);
    EXPECT_EQ(c.record(kPhase, Work::kTraining).messages_sent, training.messages_sent);
  });
}

TEST_P(CommunicatorTest, BroadcastBytesAddUpToOneCopyPerReceiver) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    const PhaseRecord before = c.record(kPhase);
    int64_t data = 5;
    ASSERT_TRUE(c.Broadcast(kPhase, &data, sizeof data, c.size() - 1).ok());
    const PhaseRecord& after = c.record(kPhase);
    int64_t sent_and_received[2] = {after.bytes_sent - before.bytes_sent,
                                    after.bytes_received - before.bytes_received};
    ASSERT_TRUE(c.AllReduceSum(Phase::kScalars, sent_and_received).ok());
    EXPECT_EQ(sent_and_received[0], (c.size() - 1) * 8);
    EXPECT_EQ(sent_and_received[1], (c.size() - 1) * 8);
  });
}

TEST_P(CommunicatorTest, TextsOfAnyLengthComeFromTheRoot) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    for (int root = 0; root < c.size(); ++root) {
      std::string text(static_cast<size_t>(c.rank()) * 3, 'x');
      ASSERT_TRUE(BroadcastText(c, kPhase, root, &text).ok());
      EXPECT_EQ(text, std::string(static_cast<size_t>(root) * 3, 'x'));
    }
  });
}

TEST_P(CommunicatorTest, AgreesOnTextsThatAreAlike) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    EXPECT_TRUE(AgreeOnText(c, "the colour", "blue").ok());
    if (c.size() == 1) return;
    const bool last = c.rank() == c.size() - 1;
    const Status status = AgreeOnText(c, "the colour", last ? "green" : "blue");
    EXPECT_EQ(status.code(), StatusCode::kUser);
    EXPECT_EQ(status.message(), "rank " + std::to_string(c.size() - 1) +
                                    ": the colour is 'green', expected rank 0's 'blue'");
  });
}

TEST_P(CommunicatorTest, AgreesOnTheStatusOfTheLowestFailingRank) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    EXPECT_TRUE(AgreeOnStatus(c, OkStatus()).ok());
    for (int failing = 0; failing < c.size(); ++failing) {
      const Status mine =
          c.rank() >= failing ? UserError("file of rank " + std::to_string(c.rank())) : OkStatus();
      const Status agreed = AgreeOnStatus(c, mine);
      EXPECT_EQ(agreed.code(), StatusCode::kUser);
      EXPECT_EQ(agreed.message(), "file of rank " + std::to_string(failing));
      EXPECT_TRUE(agreed.agreed());
    }
  });
}

// What a CommunicationWorker does: another thread makes the calls while the owner waits.
TEST_P(CommunicatorTest, OwnershipMayMoveToAnotherThreadAndBack) {
  OnEveryRank(GetParam(), [](Communicator& c) {
    int64_t value = c.rank() + 1;
    EXPECT_TRUE(c.AllReduceMax(kPhase, {&value, 1}).ok());
    std::thread other([&] { EXPECT_TRUE(c.AllReduceSum(kPhase, {&value, 1}).ok()); });
    other.join();
    EXPECT_TRUE(c.Barrier(kPhase).ok());
    EXPECT_EQ(value, c.size() * c.size());
  });
}

// The number of ranks that Open MPI's or MPICH's launcher started; null: none did.
const char* LaunchersSize() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  return size != nullptr ? size : std::getenv("PMI_SIZE");
}

std::vector<Ranks> AllRanks() {
  if (LaunchersSize() != nullptr) return {{Kind::kWorld, 0}};
  std::vector<Ranks> all = {{Kind::kSelf, 1}, {Kind::kWorld, 0}};
  for (const int count : {1, 2, 3, 4, 7, 8}) all.push_back({Kind::kThread, count});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ranks, CommunicatorTest, testing::ValuesIn(AllRanks()),
                         testing::PrintToStringParamName());

TEST(WorldCommunicatorTest, HasTheLaunchersSize) {
  const char* size = LaunchersSize();
  EXPECT_EQ(world->size(), size == nullptr ? 1 : std::atoi(size));
}

TEST(ThreadDeadlineTest, NamesRankCallPhaseBytesAndTheMissingRank) {
  constexpr int kRanks = 3;
  constexpr int kAbsent = 1;
  auto communicators = MakeThreadCommunicators(kRanks, {.deadline_seconds = 1});
  std::vector<Status> statuses(kRanks);
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    if (r == kAbsent) continue;
    threads.emplace_back([&, r] {
      std::vector<char> send(kRanks * 10), receive(kRanks * 10);
      statuses[r] = communicators[r]->AllToAll(Phase::kIdExchange, send.data(), receive.data(), 10);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int r : {0, 2}) {
    EXPECT_EQ(statuses[r].code(), StatusCode::kMachine);
    EXPECT_EQ(statuses[r].message(),
              "rank " + std::to_string(r) +
                  ": AllToAll (id_exchange, 40 bytes, call 1) did not complete within 1 s; "
                  "waiting for rank 1");
  }
  // Who comes too late, or calls again, is told at once; an error of its own is kept.
  EXPECT_EQ(communicators[kAbsent]->Barrier(Phase::kSetup).code(), StatusCode::kMachine);
  EXPECT_EQ(communicators[0]->Barrier(Phase::kSetup).code(), StatusCode::kMachine);
  EXPECT_EQ(AgreeOnStatus(*communicators[0], OkStatus()).code(), StatusCode::kMachine);
  EXPECT_EQ(AgreeOnStatus(*communicators[0], UserError("mine")).message(), "mine");
}

TEST(ThreadDeathTest, DifferentCallsAreAProgramError) {
  const auto expect_death = [](const std::function<Status(Communicator&)>& first,
                               const std::function<Status(Communicator&)>& second) {
    EXPECT_DEATH(
        {
          auto communicators = MakeThreadCommunicators(2, {});
          std::thread other([&] { (void)second(*communicators[1]); });
          (void)first(*communicators[0]);
          other.join();
        },
        "makes another call");
  };
  int64_t values[2] = {};
  const auto sum = [&](Communicator& c) { return c.AllReduceSum(Phase::kSetup, {values, 1}); };
  expect_death(sum, [](Communicator& c) { return c.Barrier(Phase::kSetup); });
  expect_death(sum, [&](Communicator& c) { return c.AllReduceSum(Phase::kScalars, {values, 1}); });
  expect_death(sum, [&](Communicator& c) { return c.AllReduceSum(Phase::kSetup, {values, 2}); });
  expect_death([&](Communicator& c) { return c.Broadcast(Phase::kSetup, values, 8, 0); },
               [&](Communicator& c) { return c.Broadcast(Phase::kSetup, values, 8, 1); });
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  auto made = elastor::MakeWorldCommunicator(elastor::Options());
  if (!made.ok()) return 1;
  elastor::world = std::move(made).value();
  const int result = RUN_ALL_TESTS();
  elastor::world.reset();
  return result;
}
