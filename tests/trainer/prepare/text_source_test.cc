#include "trainer/prepare/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/trainer/prepare/scratch.h"

namespace elastor {
namespace {

using testing::HasSubstr;

// All text of a file read in pieces; every piece must be whole lines.
StatusOr<std::string> ReadPieces(const std::string& path, int64_t bytes) {
  ELASTOR_ASSIGN_OR_RETURN(const auto source, TextSource::Open(path));
  std::string all, piece;
  while (true) {
    ELASTOR_RETURN_IF_ERROR(source->Next(bytes, &piece));
    if (piece.empty()) break;
    EXPECT_EQ(piece.back(), '\n');
    all += piece;
  }
  EXPECT_EQ(source->consumed_bytes(), source->file_bytes());
  return all;
}

std::string Lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::string(i % 50, 'a') + std::to_string(i) + "\n";
  return text;
}

TEST(TextSourceTest, PlainAndGzipInPiecesOfAnySize) {
  const std::string text = Lines(2000);
  const std::string plain = WriteScratch("plain", text);
  const std::string packed =
      WriteScratch("packed", Gzip(text.substr(0, 1000)) + Gzip("") + Gzip(text.substr(1000)));
  for (const int64_t bytes : {1, 7, 100, 4096, 1 << 20}) {
    for (const std::string& path : {plain, packed}) {
      const auto read = ReadPieces(path, bytes);
      ASSERT_TRUE(read.ok()) << read.status().message();
      EXPECT_EQ(*read, text);
    }
  }
}

TEST(TextSourceTest, LastLineGetsItsFeed) {
  EXPECT_EQ(*ReadPieces(WriteScratch("a", "x\ny"), 100), "x\ny\n");
  EXPECT_EQ(*ReadPieces(WriteScratch("b", Gzip("x\ny")), 1), "x\ny\n");
  EXPECT_EQ(*ReadPieces(WriteScratch("c", ""), 100), "");
}

TEST(TextSourceTest, CutOffGzipNamesTheByte) {
  const std::string packed = Gzip(Lines(2000));
  for (const size_t kept : {size_t{2}, size_t{10}, packed.size() / 2, packed.size() - 1}) {
    const Status status = ReadPieces(WriteScratch("cut", packed.substr(0, kept)), 4096).status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    EXPECT_THAT(status.message(),
                HasSubstr("cut: gzip data cut off at byte " + std::to_string(kept)));
  }
}

TEST(TextSourceTest, DamagedGzipNamesTheByte) {
  std::string packed = Gzip(Lines(2000));
  packed[packed.size() - 6] ^= 1;  // in the checksum of the trailer
  EXPECT_THAT(ReadPieces(WriteScratch("crc", packed), 4096).status().message(),
              HasSubstr("crc: damaged gzip data at byte"));
  EXPECT_THAT(
      ReadPieces(WriteScratch("tail", Gzip("x\n") + "something else"), 4096).status().message(),
      HasSubstr("tail: damaged gzip data at byte"));
}

TEST(TextSourceTest, SkippedChunksAreLikeReadOnes) {
  const std::string text = Lines(2000);
  for (const std::string& path :
       {WriteScratch("plain", text), WriteScratch("packed", Gzip(text))}) {
    auto first = TextSource::Open(path), second = TextSource::Open(path);
    ASSERT_TRUE(first.ok() && second.ok());
    std::string read, after_skip;
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE((*first)->Next(1000, &read).ok());
      if (i % 3 != 1) {
        ASSERT_TRUE((*second)->Skip(static_cast<int64_t>(read.size()), 1000).ok());
        continue;
      }
      ASSERT_TRUE((*second)->Next(1000, &after_skip).ok());
      EXPECT_EQ(after_skip, read);
    }
  }
}

TEST(TextSourceTest, FoldersAreRefused) {
  EXPECT_EQ(TextSource::Open(testing::TempDir()).status().code(), StatusCode::kUser);
}

}  // namespace
}  // namespace elastor
