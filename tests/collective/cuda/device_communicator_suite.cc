// Work before and after a call is enqueued without waiting, so a call that is not in stream order
// moves other bytes.
#include "tests/collective/cuda/device_communicator_suite.h"

#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace elastor::cuda {
namespace {

constexpr Phase kPhase = Phase::kRowExchange;
constexpr int64_t kLongBytes = 1'000'003;

template <typename T>
std::vector<T> Download(Stream& stream, const T* data, int64_t size) {
  std::vector<T> values(size);
  Copy(stream, values.data(), data, size);
  stream.Synchronize();
  return values;
}

// Byte `index` of what rank `from` sends to rank `to`.
char Pattern(int from, int to, int64_t index) {
  return static_cast<char>(from * 37 + to * 101 + index * 7 + (index >> 8));
}

void AppendBlock(int from, int to, int64_t bytes, std::vector<char>* blocks) {
  blocks->resize(blocks->size() + bytes);
  char* const block = blocks->data() + blocks->size() - bytes;
  for (int64_t i = 0; i < bytes; ++i) block[i] = Pattern(from, to, i);
}

class DeviceCommunicatorTest : public testing::TestWithParam<int> {};

TEST_P(DeviceCommunicatorTest, AllToAllVWithUnequalAndEmptyBlocks) {
  OnEveryRank(GetParam(), [](DeviceCommunicator& c, Stream& stream) {
    // Every pair has a length of its own; some are empty, one is long.
    const auto length = [&c](int from, int to, int repeat) -> int64_t {
      if (from == c.size() - 1 && to == 0) return kLongBytes;
      return (from + 2 * to + repeat) % 3 == 0 ? 0 : 13 * from + 5 * to + 1;
    };
    Buffer<char> sent(&stream), received(&stream);
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<char> send, expected;
      std::vector<int64_t> send_bytes, receive_bytes;
      for (int r = 0; r < c.size(); ++r) {
        send_bytes.push_back(length(c.rank(), r, repeat));
        receive_bytes.push_back(length(r, c.rank(), repeat));
        AppendBlock(c.rank(), r, send_bytes.back(), &send);
        AppendBlock(r, c.rank(), receive_bytes.back(), &expected);
      }
      Upload(stream, send, &sent);
      Upload(stream, std::vector<char>(expected.size(), 'x'), &received);
      ASSERT_TRUE(
          c.AllToAllV(kPhase, stream, sent.data(), send_bytes, received.data(), receive_bytes)
              .ok());
      EXPECT_EQ(Download(stream, received.data(), received.size()), expected)
          << "rank " << c.rank() << ", repeat " << repeat;
    }
  });
}

TEST_P(DeviceCommunicatorTest, CallsOnDifferentStreamsKeepTheirBytes) {
  OnEveryRank(GetParam(), [](DeviceCommunicator& c, Stream& first) {
    Stream second;
    Stream* const streams[] = {&first, &second};
    const std::vector<int64_t> bytes(c.size(), 1000);
    std::vector<std::unique_ptr<Buffer<char>>> sent, received;
    for (int call = 0; call < 6; ++call) {
      Stream& stream = *streams[call % 2];
      std::vector<char> send;
      for (int r = 0; r < c.size(); ++r) AppendBlock(c.rank() + call, r, 1000, &send);
      sent.push_back(std::make_unique<Buffer<char>>(&stream));
      Upload(stream, send, sent.back().get());
      received.push_back(std::make_unique<Buffer<char>>(&stream, 1000 * c.size()));
      ASSERT_TRUE(
          c.AllToAllV(kPhase, stream, sent.back()->data(), bytes, received.back()->data(), bytes)
              .ok());
    }
    for (int call = 0; call < 6; ++call) {
      std::vector<char> expected;
      for (int r = 0; r < c.size(); ++r) AppendBlock(r + call, c.rank(), 1000, &expected);
      EXPECT_EQ(Download(*streams[call % 2], received[call]->data(), received[call]->size()),
                expected)
          << "rank " << c.rank() << ", call " << call;
    }
  });
}

// bytes of every rank; into other memory and in place.
void TestAllGatherV(DeviceCommunicator& c, Stream& stream, const std::vector<int64_t>& bytes) {
  std::vector<char> expected, mine;
  for (int r = 0; r < c.size(); ++r) AppendBlock(r, 0, bytes[r], &expected);
  AppendBlock(c.rank(), 0, bytes[c.rank()], &mine);
  const int64_t own_begin = std::accumulate(bytes.begin(), bytes.begin() + c.rank(), int64_t{0});
  Buffer<char> sent(&stream), received(&stream);
  Upload(stream, mine, &sent);
  Upload(stream, std::vector<char>(expected.size(), 'x'), &received);
  ASSERT_TRUE(c.AllGatherV(kPhase, stream, sent.data(), received.data(), bytes).ok());
  EXPECT_EQ(Download(stream, received.data(), received.size()), expected) << "rank " << c.rank();

  std::vector<char> in_place(expected.size(), 'x');
  std::copy(mine.begin(), mine.end(), in_place.begin() + own_begin);
  Upload(stream, in_place, &received);
  char* const own = received.data() + own_begin;
  ASSERT_TRUE(c.AllGatherV(kPhase, stream, own, received.data(), bytes).ok());
  EXPECT_EQ(Download(stream, received.data(), received.size()), expected)
      << "in place, rank " << c.rank();
}

TEST_P(DeviceCommunicatorTest, AllGatherVFromElsewhereAndInPlace) {
  OnEveryRank(GetParam(), [](DeviceCommunicator& c, Stream& stream) {
    for (const int64_t base : {int64_t{1}, int64_t{4096}, kLongBytes / 8}) {
      std::vector<int64_t> unequal;
      for (int r = 0; r < c.size(); ++r) unequal.push_back(r % 3 == 1 ? 0 : base + 3 * r);
      TestAllGatherV(c, stream, unequal);
      TestAllGatherV(c, stream, std::vector<int64_t>(c.size(), base));
    }
    TestAllGatherV(c, stream, std::vector<int64_t>(c.size(), 0));
  });
}

TEST_P(DeviceCommunicatorTest, AllReduceSumsIntegersAndWraps) {
  OnEveryRank(GetParam(), [](DeviceCommunicator& c, Stream& stream) {
    const int64_t n = c.size();
    Buffer<int64_t> device(&stream);
    for (const int64_t length : {0, 1, 33, 5001}) {
      std::vector<int64_t> values, expected;
      for (int64_t i = 0; i < length; ++i) {
        values.push_back((c.rank() + 1) * (i * 1000003 - 500));
        expected.push_back(n * (n + 1) / 2 * (i * 1000003 - 500));
      }
      Upload(stream, values, &device);
      ASSERT_TRUE(c.AllReduceSum(kPhase, stream, device.data(), length).ok());
      EXPECT_EQ(Download(stream, device.data(), length), expected) << "rank " << c.rank();
    }
    Upload(stream, {std::numeric_limits<int64_t>::max()}, &device);
    ASSERT_TRUE(c.AllReduceSum(kPhase, stream, device.data(), 1).ok());
    const uint64_t expected = static_cast<uint64_t>(n) << 63;  // n (2^63 - 1) = n 2^63 - n
    EXPECT_EQ(static_cast<uint64_t>(Download(stream, device.data(), 1)[0]),
              expected - static_cast<uint64_t>(n));
  });
}

// Of small integers, so that no order of additions rounds.
TEST_P(DeviceCommunicatorTest, AllReduceSumsFloats) {
  OnEveryRank(GetParam(), [](DeviceCommunicator& c, Stream& stream) {
    std::vector<float> values, expected;
    for (int i = 0; i < 3001; ++i) {
      values.push_back(static_cast<float>((c.rank() + 1) * (i - 7)) / 8);
      expected.push_back(static_cast<float>(c.size() * (c.size() + 1) / 2 * (i - 7)) / 8);
    }
    Buffer<float> device(&stream);
    Upload(stream, values, &device);
    ASSERT_TRUE(c.AllReduceSum(kPhase, stream, device.data(), device.size()).ok());
    EXPECT_EQ(Download(stream, device.data(), device.size()), expected) << "rank " << c.rank();
    ASSERT_TRUE(c.AllReduceSum(kPhase, stream, device.data(), 0).ok());
  });
}

TEST_P(DeviceCommunicatorTest, WaitsForTheCallAndCountsItsBytes) {
  OnEveryRank(GetParam(), [](DeviceCommunicator& c, Stream& stream) {
    const auto counted = [&] {
      PhaseRecord sum = c.record(Phase::kMetrics, Work::kOther);
      const PhaseRecord host = c.host()->record(Phase::kMetrics);
      sum.bytes_sent += host.bytes_sent;
      sum.bytes_received += host.bytes_received;
      return sum;
    };
    const PhaseRecord before = counted();
    const std::vector<int64_t> bytes(c.size(), 10);
    Buffer<char> sent(&stream, 10 * c.size()), received(&stream, 10 * c.size());
    FillZero(stream, sent.data(), sent.size());
    ASSERT_TRUE(
        c.AllToAllV(Phase::kMetrics, stream, sent.data(), bytes, received.data(), bytes).ok());
    Event done;
    done.Record(stream);
    ASSERT_TRUE(c.Wait(done, "the test's exchange").ok());
    EXPECT_TRUE(done.Done());
    stream.Synchronize();
    EXPECT_EQ(counted().bytes_sent - before.bytes_sent, 10 * (c.size() - 1));
    EXPECT_EQ(counted().bytes_received - before.bytes_received, 10 * (c.size() - 1));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceCommunicatorTest, testing::ValuesIn(SuiteRanks()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace elastor::cuda
