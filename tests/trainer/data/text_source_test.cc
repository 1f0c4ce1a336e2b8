#include "trainer/data/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/prepare/scratch.h"
#include "trainer/data/input_list.h"

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

TEST(TextSourceTest, FramesToSkipAndZerosBehindMembersAreNoText) {
  using namespace std::string_literals;
  // As pzstd writes: the size of the next frame before each frame.
  const std::string skipped = "\x50\x2a\x4d\x18\4\0\0\0\x12\x34\0\0"s, text = Lines(2000);
  const std::string frames =
      skipped + Zstd(text.substr(0, 1000)) + skipped + Zstd(text.substr(1000));
  const std::string zeros(1000, '\0');
  for (const int64_t bytes : {1, 4096, 1 << 20}) {
    EXPECT_EQ(*ReadPieces(WriteScratch("pzstd", frames), bytes), text);
    EXPECT_EQ(*ReadPieces(WriteScratch("padded", Gzip(text) + zeros), bytes), text);
    EXPECT_EQ(*ReadPieces(WriteScratch("members", Gzip(text) + zeros + Gzip(text)), bytes),
              text + text);
  }
  EXPECT_THAT(
      ReadPieces(WriteScratch("tail", Gzip("x\n") + zeros + "else"), 4096).status().message(),
      HasSubstr("tail: damaged gzip data at byte"));
  EXPECT_THAT(
      TextSource::Open(WriteScratch("twice", Gzip(skipped + Zstd("x\n")))).status().message(),
      HasSubstr("twice: found zstd data within gzip data"));
}

TEST(TextSourceTest, LinesOfCarriageReturnsAloneAreRefused) {
  for (const std::string& bytes : {std::string("0\tx\r1\ty\r"), Gzip("0\tx\r1\ty")}) {
    EXPECT_THAT(
        TextSource::Open(WriteScratch("mac", bytes)).status().message(),
        HasSubstr("mac: lines end in CR alone, expected LF or CR LF; convert them with tr"));
  }
  EXPECT_EQ(*ReadPieces(WriteScratch("one", "0\tx\r"), 100), "0\tx\r\n");
  EXPECT_EQ(*ReadPieces(WriteScratch("two", "0\tx\ry\n"), 100), "0\tx\ry\n");
}

TEST(InputListTest, ACommaMayBelongToAName) {
  const auto names = [](const std::string& text) { return ListedInputs(text); };
  const std::string a = WriteScratch("a", ""), b = WriteScratch("b", "");
  EXPECT_THAT(names(a + "," + b), testing::ElementsAre(a, b));
  EXPECT_THAT(names("," + a + ",,-,"), testing::ElementsAre(a, "-"));
  EXPECT_THAT(names(a + ".no," + b), testing::ElementsAre(a + ".no", b));
  const std::string both = WriteScratch("c,d.csv", ""), c = ScratchPath("c");
  EXPECT_THAT(names(a + "," + both + "," + b), testing::ElementsAre(a, both, b));
  EXPECT_THAT(names(a + "," + both), testing::ElementsAre(a, both));
  EXPECT_THAT(names(""), testing::IsEmpty());
  // Files of both parts are there: they are meant.
  WriteScratch("c", "");
  EXPECT_THAT(names(both), testing::ElementsAre(c, "d.csv"));
}

TEST(InputListTest, FoldersAndPatternsStandForTheirFiles) {
  const std::string folder = ScratchPath("folder");
  std::filesystem::create_directories(folder + "/sub");
  for (const char* name : {"b.csv", "a.csv", "c.txt", "_SUCCESS", ".hidden"}) {
    std::ofstream(folder + "/" + name) << "x\n";
  }
  const std::string a = folder + "/a.csv", b = folder + "/b.csv", c = folder + "/c.txt";
  EXPECT_THAT(ListedInputs(folder), testing::ElementsAre(a, b, c));
  EXPECT_THAT(ListedInputs(folder + "/*.csv," + c), testing::ElementsAre(a, b, c));
  EXPECT_THAT(ListedInputs(folder + "/?.txt"), testing::ElementsAre(c));
  EXPECT_THAT(ListedInputs(folder + "/*.gz"), testing::ElementsAre(folder + "/*.gz"));
  EXPECT_THAT(ListedInputs(folder + "/sub"), testing::ElementsAre(folder + "/sub"));
  std::ofstream(folder + "/sub/d.csv") << "x\n";
  EXPECT_THAT(ListedInputs(folder + "/s*"), testing::ElementsAre(folder + "/sub/d.csv"));
  std::vector<std::string> warnings;
  ListedInputs(folder, [&](const std::string& warning) { warnings.push_back(warning); });
  EXPECT_THAT(warnings, testing::ElementsAre(folder + ": the files in its folders are not read; '" +
                                             folder + "/*/*' stands for them"));
  const std::string star = folder + "/*.csv";
  std::ofstream(star) << "x\n";
  EXPECT_THAT(ListedInputs(star), testing::ElementsAre(star));
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
  std::string text = Lines(2000), records;
  for (int i = 0; i < 2000; ++i) records += "1,\"a\n\n" + std::string(i % 90, 'b') + "\n\"\n";
  for (const auto& [name, bytes] :
       {std::pair("plain", text), std::pair("packed", Gzip(text)), std::pair("frame", Zstd(text)),
        std::pair("quoted", records), std::pair("packed quoted", Gzip(records))}) {
    const std::string path = WriteScratch(name, bytes);
    auto first = TextSource::Open(path), second = TextSource::Open(path);
    ASSERT_TRUE(first.ok() && second.ok());
    if (std::string(name).ends_with("quoted")) {
      (*first)->ReadRecords(",", 0);
      (*second)->ReadRecords(",", 0);
    }
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
      {"\xff\xfe\0\0\x30\0\0\0"s, "UTF-32 text"},
      {"c\0l\0,\0a\0\n\0\x31\0,\0\x32\0"s, "UTF-16 text"},
      {"\0c\0l\0,\0a\0\n\0\x31\0,\0\x32"s, "UTF-16 text"},
      {"c\0\0\0l\0\0\0,\0\0\0a\0\0\0"s, "UTF-32 text"},
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

// Where the records of a text end, character by character.
std::vector<size_t> PlainEnds(const std::string& text, const std::string& delimiter) {
  std::vector<size_t> ends;
  bool begins = true, inside = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (inside) {
      const bool doubled = text.compare(at, 2, "\"\"") == 0;
      if (text[at] == '"' && !doubled) inside = false;
      at += doubled;
    } else if (text[at] == '\n') {
      ends.push_back(at + 1);
      begins = true;
    } else if (text.compare(at, delimiter.size(), delimiter) == 0) {
      at += delimiter.size() - 1;
      begins = true;
    } else {
      inside = begins && text[at] == '"';
      begins = false;
    }
  }
  return ends;
}

TEST(RecordScannerTest, RandomTextInPiecesOfAnySize) {
  uint64_t state = 5;
  const auto random = [&state](uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % below;
  };
  int64_t within_quotes = 0;
  for (const std::string delimiter : {",", "::", "\t"}) {
    const std::vector<std::string> pieces = {
        delimiter, delimiter, "\"", "\"", "\"\"",
        "\n",      "\r\n",    "a",  ":",  "longer than a step of thirty-two bytes"};
    // Quotes that are mostly in place, and quotes anywhere.
    for (int round = 0; round < 400; ++round) {
      std::string text;
      for (int i = 0; i < 60; ++i) {
        const std::string& piece = pieces[random(pieces.size())];
        text += round % 2 == 0 ? piece
                : piece[0] == '"'
                    ? (random(6) == 0 ? "x\"y" : "\"a" + delimiter + "\n\"\"b\"" + delimiter)
                    : piece;
      }
      text += '\n';
      const std::vector<size_t> ends = PlainEnds(text, delimiter);
      within_quotes += std::ranges::count(text, '\n') - static_cast<int64_t>(ends.size());
      for (size_t begin = 0, i = 0; i <= ends.size(); ++i) {
        const size_t end = EndOfRecord(text, begin, delimiter);
        ASSERT_EQ(end, i < ends.size() ? ends[i] : text.npos) << text;
        begin = end;
      }
      RecordScanner scanner(delimiter, 0);
      size_t begin = 0;
      for (size_t size = 0; size < text.size();) {
        size = std::min(text.size(), size + 1 + random(70));
        const size_t found = scanner.Scan(std::string_view(text).substr(begin, size - begin));
        const auto next = std::ranges::upper_bound(ends, size);
        const size_t expected = next == ends.begin() ? 0 : *std::prev(next);
        ASSERT_EQ(begin + found, std::max(expected, begin)) << text;
        if (random(2) == 0) continue;
        scanner.Drop(found);
        begin += found;
      }
      EXPECT_EQ(scanner.Scan(std::string_view(text).substr(begin)) < text.size() - begin,
                ends.empty() || ends.back() < text.size());
    }
  }
  EXPECT_GT(within_quotes, 1000);
}

TEST(TextSourceTest, RecordsArePiecesAndTheRestIsToldByLine) {
  const std::string mark = "\xef\xbb\xbf";
  const std::string text = mark + "\"a\nb\",1\n\"c\n\nd\",2\n";
  for (const std::string& path :
       {WriteScratch("plain", text), WriteScratch("packed", Gzip(text))}) {
    const auto source = TextSource::Open(path);
    ASSERT_TRUE(source.ok());
    (*source)->ReadRecords(",", 0);
    for (const char* expected : {"\"a\nb\",1\n", "\"c\n\nd\",2\n", ""}) {
      std::string record;
      ASSERT_TRUE((*source)->Next(1, &record).ok());
      EXPECT_EQ(record.starts_with(mark) ? record.substr(3) : record, expected);
    }
  }
  // A title with a quote, records of two lines each, then a quote that nothing closes.
  std::string open = "a \" title\n";
  for (int i = 0; i < 40000; ++i) open += "\"x\ny" + std::to_string(i) + "\",z\n";
  const std::string rest = "1,\"open\n" + std::string(600000, 'x') + "\n";
  const auto message_of = [](const std::string& path) {
    const auto source = TextSource::Open(path);
    EXPECT_TRUE(source.ok());
    (*source)->ReadRecords(",", 1);
    std::string piece = "more";
    Status status;
    while (status.ok() && !piece.empty()) status = (*source)->Next(100000, &piece);
    EXPECT_EQ(status.code(), StatusCode::kUser);
    return status.message();
  };
  EXPECT_THAT(message_of(WriteScratch("end", Gzip(open + rest))),
              HasSubstr("end:80002: a quote opens a value of the row that begins here, and none "
                        "closes it within the rest of the file"));
  EXPECT_THAT(message_of(WriteScratch("long", open + rest + rest.substr(3) + "\"\n" + open)),
              HasSubstr("long:80002: a quote opens a value of the row that begins here, and none "
                        "closes it within 1 MiB"));
}

}  // namespace
}  // namespace elastor
