#include "trainer/prepare/rows/segments.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/hash_text.h"
#include "tests/trainer/prepare/scratch.h"
#include "trainer/prepare/values/encoding_state.h"

namespace elastor {
namespace {

TextSegment SegmentOf(uint32_t seed) {
  TextSegment segment;
  segment.chunks.resize(seed);
  for (uint32_t i = 0; i < seed; ++i) segment.chunks[i].number = seed + i;
  segment.runs.resize(2);
  segment.runs[1].size = seed;
  segment.cut_values = {0, 100 + seed};
  return segment;
}

TEST(SegmentLogTest, WhatWasAppendedIsReadAgainUpToATornRecord) {
  const std::string path = ScratchPath("journal");
  {
    SegmentList list;
    auto log = SegmentLog::Open(path, &list);
    ASSERT_TRUE(log.ok()) << log.status().message();
    EXPECT_TRUE(list.segments.empty());
    ASSERT_TRUE((*log)->Append(SegmentOf(3)).ok());
    ASSERT_TRUE((*log)->AppendEnd(1, 7).ok());
    ASSERT_TRUE((*log)->Append(SegmentOf(5)).ok());
  }
  const std::string whole = FileBytes(path);
  for (size_t kept = 0; kept <= whole.size(); ++kept) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, kept);
    SegmentList list;
    ASSERT_TRUE(SegmentLog::Open(path, &list).ok());
    const std::string left = FileBytes(path);
    EXPECT_LE(left.size(), kept);
    EXPECT_EQ(left, whole.substr(0, left.size()));
    if (kept < whole.size()) {
      EXPECT_LT(list.segments.size(), 2u);
      continue;
    }
    ASSERT_EQ(list.segments.size(), 2u);
    EXPECT_EQ(list.segments[0].chunks.size(), 3u);
    EXPECT_EQ(list.segments[1].chunks[4].number, 9u);
    EXPECT_EQ(list.segments[1].runs[1].size, 5);
    EXPECT_EQ(list.segments[1].cut_values[1], 105);
    ASSERT_EQ(list.ended.size(), 1u);
    EXPECT_EQ(list.ended[0], std::make_pair(1u, 7u));
  }
  std::string flipped = whole;
  flipped[whole.size() / 4] ^= 1;  // in the first record: nothing behind it counts either
  std::ofstream(path, std::ios::binary) << flipped;
  SegmentList list;
  ASSERT_TRUE(SegmentLog::Open(path, &list).ok());
  EXPECT_TRUE(list.segments.empty());
  EXPECT_TRUE(list.ended.empty());
}

// Whole records, by their hash, that no log has written.
TEST(SegmentLogTest, RecordsOfAnotherShapeEndTheJournal) {
  const std::string path = ScratchPath("shapes");
  const uint64_t many = uint64_t{1} << 60;
  const std::string counts(reinterpret_cast<const char*>(std::array{many, many}.data()), 16);
  for (const std::string& payload : {std::string("short"), counts + std::string(80, '\0')}) {
    const uint64_t head[2] = {payload.size(), XXH3_64bits(payload.data(), payload.size())};
    std::ofstream(path, std::ios::binary)
        << std::string_view(reinterpret_cast<const char*>(head), sizeof(head)) << payload;
    SegmentList list;
    ASSERT_TRUE(SegmentLog::Open(path, &list).ok());
    EXPECT_TRUE(list.segments.empty());
    EXPECT_EQ(FileBytes(path), "");
  }
}

// Sealed, as it was written or with a part too few or too many.
TEST(EncodingStateTest, StatesOfAnotherShapeAreDamaged) {
  const std::string path = ScratchPath("state");
  EncodingState state;
  state.scales = {{"log2", 0.5, 2}};
  state.unknown_shares = {{"field", 0.25}};
  const std::string text = StateJson(state);
  const auto read = [&](const std::string& from, const std::string& to) {
    std::string edited = text;
    edited.replace(edited.find(from), from.size(), to);
    std::ofstream(path, std::ios::binary) << SealJson(edited.substr(0, edited.rfind("\": \"") + 4));
    return ReadState(path);
  };
  const auto same = read("log2", "log2");
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_EQ(StateJson(*same), text);
  // A part more, a part less, a part of another kind.
  const std::pair<const char*, const char*> edits[] = {
      {"0.25", "0.25,\n 7"}, {"0.25", ""}, {"0.5", "0.5,\n 7"}, {"\"log2\"", "0.5"}};
  for (const auto& [from, to] : edits) {
    const Status status = read(from, to).status();
    EXPECT_EQ(status.code(), StatusCode::kMachine) << from << " as " << to;
    EXPECT_EQ(status.message(), path + ": damaged; begin anew with --restart");
  }
}

}  // namespace
}  // namespace elastor
