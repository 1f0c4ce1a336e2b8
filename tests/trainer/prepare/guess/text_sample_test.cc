#include "trainer/prepare/guess/text_sample.h"

#include <gtest/gtest.h>

#include "tests/trainer/prepare/scratch.h"

namespace elastor {
namespace {

using Lines = std::vector<std::string>;

TEST(TextSampleTest, HoldsTheLinesOfAllFilesWithoutTheirEndings) {
  const std::string crlf = WriteScratch("crlf",
                                        "\xef\xbb\xbf"
                                        "a,b\r\n\r\n1,2");
  const std::string packed = WriteScratch("packed", Gzip("c\n\nd\n"));
  const auto sample = ReadTextSample({crlf, packed});
  ASSERT_TRUE(sample.ok()) << sample.status().message();
  ASSERT_EQ(sample->lines.size(), 2u);
  EXPECT_EQ(sample->lines[0], (Lines{"a,b", "", "1,2"}));
  EXPECT_EQ(sample->lines[1], (Lines{"c", "", "d"}));
  EXPECT_EQ(sample->paths, (Lines{crlf, packed}));
  EXPECT_EQ(sample->bytes(), 4 + 1 + 4 + 2 + 1 + 2);
}

// 16 MiB of all files together, cut at the end of a line.
TEST(TextSampleTest, EndsBehindTheFirstMegabytes) {
  const std::string line(1023, 'x');
  std::string text;
  for (int i = 0; i < 20 << 10; ++i) text += line + "\n";
  const std::string path = WriteScratch("large", text);
  const auto one = ReadTextSample({path});
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_NEAR(static_cast<double>(one->bytes()), 16 << 20, 1024);
  EXPECT_EQ(one->lines[0].back(), line);
  const auto two = ReadTextSample({path, path});
  ASSERT_TRUE(two.ok()) << two.status().message();
  EXPECT_NEAR(static_cast<double>(two->bytes()), 16 << 20, 2048);
  EXPECT_EQ(two->lines[0].size(), two->lines[1].size());
}

TEST(TextSampleTest, RefusesWhatHasNoLines) {
  const std::string empty = WriteScratch("empty", "");
  EXPECT_EQ(ReadTextSample({empty}).status().message(), empty + ": is empty, expected rows");
  const std::string missing = ScratchPath("missing");
  EXPECT_EQ(ReadTextSample({missing}).status().code(), StatusCode::kUser);
}

}  // namespace
}  // namespace elastor
