#include "trainer/data/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <utility>

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

TEST(TextSourceTest, PlainAndPackedInPiecesOfAnySize) {
  const std::string text = Lines(2000);
  const std::string plain = WriteScratch("plain", text);
  const std::string packed =
      WriteScratch("packed", Gzip(text.substr(0, 1000)) + Gzip("") + Gzip(text.substr(1000)));
  const std::string frames =
      WriteScratch("frames", Zstd(text.substr(0, 1000)) + Zstd("") + Zstd(text.substr(1000)));
  for (const int64_t bytes : {1, 7, 100, 4096, 1 << 20}) {
    for (const std::string& path : {plain, packed, frames}) {
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

TEST(TextSourceTest, CutOffDataNameTheByte) {
  for (const char* kind : {"gzip", "zstd"}) {
    const std::string packed = kind[0] == 'g' ? Gzip(Lines(2000)) : Zstd(Lines(2000));
    for (const size_t kept : {size_t{4}, size_t{10}, packed.size() / 2, packed.size() - 1}) {
      const Status status = ReadPieces(WriteScratch("cut", packed.substr(0, kept)), 4096).status();
      EXPECT_EQ(status.code(), StatusCode::kUser);
      EXPECT_THAT(status.message(), HasSubstr(std::string("cut: ") + kind +
                                              " data cut off at byte " + std::to_string(kept)));
    }
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
  EXPECT_THAT(
      ReadPieces(WriteScratch("frame", Zstd("x\n") + "something else"), 4096).status().message(),
      HasSubstr("frame: damaged zstd data at byte"));
}

TEST(TextSourceTest, SkippedChunksAreLikeReadOnes) {
  const std::string text = Lines(2000);
  for (const std::string& path : {WriteScratch("plain", text), WriteScratch("packed", Gzip(text)),
                                  WriteScratch("frame", Zstd(text))}) {
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

// A pipe without a writer would be waited for.
TEST(TextSourceTest, FoldersAndPipesAreRefusedAtOnce) {
  const std::string folder = testing::TempDir(), pipe = ScratchPath("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [path, what] :
       {std::pair(folder, "is a folder"), std::pair(pipe, "is a pipe or a device")}) {
    for (const Status& status : {TextSource::Open(path).status(), CheckInputFile(path)}) {
      EXPECT_EQ(status.code(), StatusCode::kUser);
      EXPECT_THAT(status.message(), HasSubstr(what));
    }
  }
}

TEST(TextSourceTest, AFailedReadIsTheMachines) {
  const std::string path = "/proc/self/mem";  // a file whose first byte cannot be read
  const Status status = TextSource::Open(path).status();
  EXPECT_EQ(status.code(), StatusCode::kMachine);
  EXPECT_THAT(status.message(), HasSubstr("/proc/self/mem: cannot read: "));
}

TEST(TextSourceTest, WhatIsNoTextIsNamed) {
  using namespace std::string_literals;
  const std::string tar = "train.txt"s + std::string(248, '\0') + "ustar";
  const struct {
    std::string bytes;
    const char* what;
  } kFiles[] = {
      {"PK\3\4rest"s, "a zip archive, expected text, plain, gzip or zstd; unpack it with unzip"},
      {"\xfd\x37zXZ\0"s, "xz data"},
      {"BZh91AY&SY"s, "bzip2 data"},
      {"\x04\x22\x4d\x18"s, "lz4 data"},
      {tar, "a tar archive"},
      {"PAR1\x15\x04"s, "a Parquet file"},
      {"\xff\xfe\x30\0"s, "UTF-16 text"},
      {"\n <!DOCTYPE HTML>"s, "an HTML or XML page"},
      {"version https://git-lfs.github.com/spec/v1\n"s, "a pointer of Git LFS"},
      {std::string(9, '\0'), "zero bytes"},
      {Gzip(tar), "a tar archive within gzip data"},
      {Gzip(Gzip("0\t1\n")), "gzip data within gzip data"},
      {Gzip(Zstd("0\t1\n")), "zstd data within gzip data"},
      {Zstd(tar), "a tar archive within zstd data"},
  };
  for (const auto& file : kFiles) {
    const Status status = TextSource::Open(WriteScratch("file", file.bytes)).status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    EXPECT_THAT(status.message(), HasSubstr(std::string("file: found ") + file.what));
  }
  for (const char* text : {"PK\t1\n", "BZh9\t1\n", "PAR1\tx\n",
                           "\xef\xbb\xbf"
                           "0\n",
                           "ustar"}) {
    EXPECT_TRUE(TextSource::Open(WriteScratch("text", text)).ok()) << text;
  }
}

}  // namespace
}  // namespace elastor
