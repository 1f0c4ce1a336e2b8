#include "core/process/command_line.h"

#include <string>
#include <vector>

#include "core/base/file.h"
#include "gflags/gflags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

DEFINE_string(color, "red", "a text");
DEFINE_int32(count, 1, "a number");
DEFINE_bool(fast, false, "a switch");
DEFINE_string(set, "", "collected");

namespace elastor {
namespace {

using ::testing::ElementsAre;

constexpr char kThisFile[] = "command_line_test.cc";

class CommandLineTest : public testing::Test {
 protected:
  StatusOr<CommandLine> Parse(const std::vector<std::string>& arguments) {
    return ParseCommandLine(arguments, kThisFile);
  }
  std::string MessageOf(const std::vector<std::string>& arguments) {
    const auto parsed = Parse(arguments);
    EXPECT_EQ(parsed.status().code(), StatusCode::kUser);
    return parsed.status().message();
  }
  std::string WriteFile(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + "/" + name;
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  }

 private:
  gflags::FlagSaver saver_;
};

TEST_F(CommandLineTest, FoldersBesideFlags) {
  const auto parsed = ParseCommandLine(std::vector<std::string>{"runs/a", "--color", "blue", "b"},
                                       kThisFile, Folders::kAny);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_THAT(parsed.value().folders, ElementsAre("runs/a", "b"));
  EXPECT_EQ(FLAGS_color, "blue");
  // A flag file holds flags alone.
  const std::string file = WriteFile("folders", "runs/a\n");
  EXPECT_EQ(
      ParseCommandLine(std::vector<std::string>{"--flagfile=" + file}, kThisFile, Folders::kAny)
          .status()
          .message(),
      file + ":1: 'runs/a': expected a flag, --name=value");
}

TEST_F(CommandLineTest, ValuesOfListsAreJoined) {
  constexpr const char* kLists[] = {"color"};
  gflags::SetCommandLineOption("color", "");
  const auto parsed = ParseCommandLine(
      std::vector<std::string>{"--color=red", "--count=2", "--color", "blue,green", "--count=3"},
      kThisFile, Folders::kNone, kLists);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(FLAGS_color, "red,blue,green");
  EXPECT_EQ(FLAGS_count, 3);
}

TEST_F(CommandLineTest, ShortHelp) {
  const auto parsed = Parse({"-h"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_TRUE(parsed.value().help);
}

TEST_F(CommandLineTest, AllForms) {
  const auto parsed = Parse({"--color=a=b", "-count", "-3", "--fast", "--set=x=1", "--set", "y=2"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(FLAGS_color, "a=b");
  EXPECT_EQ(FLAGS_count, -3);
  EXPECT_TRUE(FLAGS_fast);
  EXPECT_THAT(parsed.value().overrides, ElementsAre("x=1", "y=2"));
  EXPECT_FALSE(parsed.value().help);

  ASSERT_TRUE(Parse({"--nofast"}).ok());
  EXPECT_FALSE(FLAGS_fast);
  EXPECT_TRUE(Parse({"--version"}).value().version);
  EXPECT_FALSE(Parse({"--fast"}).value().version);
  EXPECT_TRUE(Parse({"--help"}).value().help);
}

TEST_F(CommandLineTest, AFlagfileStandsInItsPlace) {
  const std::string inner = WriteFile("inner.flags", "--set=b=2\n");
  const std::string outer =
      WriteFile("outer.flags", "# comment\n\n  --color=blue  \r\n--count=5\n--flagfile=" + inner +
                                   "\n--set=c=3\n--fast");
  const auto parsed =
      Parse({"--count=4", "--set=a=1", "--flagfile=" + outer, "--set=d=4", "--color=green"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(FLAGS_count, 5);
  EXPECT_EQ(FLAGS_color, "green");
  EXPECT_TRUE(FLAGS_fast);
  EXPECT_THAT(parsed.value().overrides, ElementsAre("a=1", "b=2", "c=3", "d=4"));
}

TEST_F(CommandLineTest, Mistakes) {
  EXPECT_EQ(MessageOf({"--colour=red"}),
            "--colour: no such flag; there are: --color, --count, --fast, --set, --flagfile");
  EXPECT_EQ(MessageOf({"--nocolor"}),
            "--nocolor: no such flag; there are: --color, --count, --fast, --set, --flagfile");
  // gflags' own, which would end the process or set flags unseen.
  for (const std::string flag : {"--fromenv", "--tryfromenv", "--undefok"}) {
    EXPECT_EQ(MessageOf({flag + "=--count"}),
              flag + ": no such flag; there are: --color, --count, --fast, --set, --flagfile");
  }
  EXPECT_EQ(MessageOf({"--count=two"}), "--count: expected a value of type int32, found 'two'");
  EXPECT_EQ(MessageOf({"--fast=maybe"}), "--fast: expected a value of type bool, found 'maybe'");
  EXPECT_EQ(MessageOf({"--color"}), "--color: expected a value, --color=value");
  EXPECT_EQ(MessageOf({"--color", "--fast"}),
            "--color: expected a value, --color=value, found '--fast'");
  EXPECT_EQ(MessageOf({"train"}), "'train': expected a flag, --name=value");
  EXPECT_EQ(MessageOf({"--"}), "'--': expected a flag, --name=value");
}

TEST_F(CommandLineTest, WhatTheShellShouldHaveReplaced) {
  EXPECT_EQ(MessageOf({"--color=~/red"}),
            "--color=~/red: the shell leaves this ~ as it is; expected $HOME/red");
  EXPECT_EQ(MessageOf({"--set=data.path=~"}),
            "--set=data.path=~: the shell leaves this ~ as it is; expected $HOME");
  EXPECT_TRUE(Parse({"--color=~red", "--set=a=b~/c"}).ok());
}

TEST_F(CommandLineTest, ArgumentsAreUtf8) {
  EXPECT_TRUE(Parse({"--color=caf\xc3\xa9", "--set=name=\xe2\x82\xac\xf0\x9f\x98\x80"}).ok());
  EXPECT_EQ(MessageOf({"--color=caf\xe9"}),
            "byte 12 of '--color=caf\\xe9' is not UTF-8; expected UTF-8 text");
  EXPECT_EQ(MessageOf({"--color", "\xed\xa0\x80"}),
            "--color: byte 1 of '\\xed\\xa0\\x80' is not UTF-8; expected UTF-8 text");
  const std::string path = WriteFile("latin1.flags", "--fast\n--set=name=\xe9\n");
  EXPECT_EQ(MessageOf({"--flagfile=" + path}),
            path + ":2: byte 12 of '--set=name=\\xe9' is not UTF-8; expected UTF-8 text");
}

TEST_F(CommandLineTest, MistakesInAFlagfileAreLocated) {
  const std::string path = WriteFile("bad.flags", "--fast\n--count=two\n");
  EXPECT_EQ(MessageOf({"--flagfile=" + path}),
            path + ":2: --count: expected a value of type int32, found 'two'");

  const std::string missing = testing::TempDir() + "/missing.flags";
  EXPECT_THAT(MessageOf({"--flagfile=" + missing}), testing::HasSubstr(missing));

  const std::string circle = testing::TempDir() + "/circle.flags";
  WriteFile("circle.flags", "--flagfile=" + circle + "\n");
  EXPECT_THAT(MessageOf({"--flagfile=" + circle}), testing::HasSubstr("in a circle"));
}

TEST_F(CommandLineTest, HelpNamesOwnFlags) {
  EXPECT_EQ(FlagsHelp(kThisFile),
            "  --color  a text (default: red)\n"
            "  --count  a number (default: 1)\n"
            "  --fast  a switch (default: false)\n"
            "  --set  collected\n"
            "  --flagfile  a file with one flag a line, put in its place\n"
            "  --version  version and commit of this program, its compiler and its numerics\n");
}

}  // namespace
}  // namespace elastor
