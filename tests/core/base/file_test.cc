#include "core/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "core/base/mapped_file.h"
#include "tests/core/base/file_limit.h"

namespace elastor {
namespace {

// A directory of the test's own.
class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = testing::TempDir() + "/file_test_" + info->name() + std::to_string(getpid());
    ASSERT_TRUE(MakeDirectory(directory_).ok());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::string Contents(const std::string& name) const {
    const StatusOr<std::string> bytes = ReadFile(Path(name));
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    return bytes.ok() ? *bytes : "";
  }

  std::string directory_;
};

TEST_F(FileTest, ReadsWhatWasWritten) {
  std::string bytes(3 << 20, 'x');
  bytes[0] = '\0';
  bytes[1 << 20] = '\n';
  ASSERT_TRUE(WriteFileAtomically(Path("f"), bytes).ok());
  EXPECT_EQ(Contents("f"), bytes);
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "").ok());
  EXPECT_EQ(Contents("f"), "");
}

TEST_F(FileTest, ReadsFilesWithoutASize) {
  const StatusOr<std::string> bytes = ReadFile("/proc/self/status");
  ASSERT_TRUE(bytes.ok());
  EXPECT_GT(bytes->size(), 100u);
}

TEST_F(FileTest, MissingFileIsAUserErrorThatNamesIt) {
  const StatusOr<std::string> bytes = ReadFile(Path("missing"));
  EXPECT_EQ(bytes.status().code(), StatusCode::kUser);
  EXPECT_EQ(bytes.status().message(), Path("missing") + ": open: No such file or directory");
}

TEST_F(FileTest, ReadingADirectoryIsAUserError) {
  EXPECT_EQ(ReadFile(directory_).status().message(), directory_ + ": open: Is a directory");
  EXPECT_EQ(ReadFile(directory_).status().code(), StatusCode::kUser);
}

// None of these calls waits for the other end of a pipe.
TEST_F(FileTest, WhatIsNoFileIsRefused) {
  const std::string pipe = Path("pipe"), socket = Path("socket");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string refused = pipe + ": a named pipe; expected a file";
  EXPECT_EQ(ReadFile(pipe).status().message(), refused);
  EXPECT_EQ(ReadFile(pipe).status().code(), StatusCode::kUser);
  EXPECT_EQ(ReadFileInPieces(pipe, 1, [](std::string_view) {}).message(), refused);
  EXPECT_EQ(MappedFile::Open(pipe, MappedFile::Links::kFollow).status().message(), refused);
  EXPECT_EQ(WriteFileAtomically(pipe, "x").message(), refused);
  for (const int flags : {O_RDONLY, O_WRONLY | O_APPEND, O_RDWR | O_CREAT}) {
    EXPECT_EQ(OpenFile(pipe, flags).status().message(), refused) << flags;
  }
  EXPECT_EQ(ReadFile("/dev/zero").status().message(), "/dev/zero: a device; expected a file");
  EXPECT_EQ(WriteFileAtomically("/dev/null", "x").message(),
            "/dev/null: a device; expected a file");
  ASSERT_EQ(mknod(socket.c_str(), S_IFSOCK | 0600, 0), 0);
  EXPECT_EQ(ReadFile(socket).status().message(), socket + ": a socket; expected a file");
  // Files of /proc that wait for events, such as /proc/kmsg, are not waited for.
  const StatusOr<int> file = OpenFile("/proc/self/status", O_RDONLY);
  ASSERT_TRUE(file.ok());
  EXPECT_NE(fcntl(*file, F_GETFL) & O_NONBLOCK, 0);
  close(*file);
}

// As a shell makes for <(command).
TEST_F(FileTest, ReadsAPipeWithoutAName) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "text", 4), 4);
  close(ends[1]);
  EXPECT_EQ(*ReadFile("/dev/fd/" + std::to_string(ends[0])), "text");
  close(ends[0]);
}

TEST_F(FileTest, PlantedLinksAreNotFollowed) {
  ASSERT_TRUE(WriteFileAtomically(Path("target"), "precious").ok());
  for (const char* name : {"f.tmp", "lock"}) {
    ASSERT_EQ(symlink(Path("target").c_str(), Path(name).c_str()), 0);
  }
  EXPECT_EQ(WriteFileAtomically(Path("f"), "x").message(),
            Path("f.tmp") + ": a symbolic link; expected the file itself");
  EXPECT_EQ(OpenFile(Path("lock"), O_RDWR | O_CREAT).status().message(),
            Path("lock") + ": a symbolic link; expected the file itself");
  EXPECT_EQ(Contents("target"), "precious");
  // A second name of a file is removed, and the file stays.
  ASSERT_EQ(link(Path("target").c_str(), Path("g.tmp").c_str()), 0);
  EXPECT_TRUE(WriteFileAtomically(Path("g"), "x").ok());
  EXPECT_EQ(Contents("target"), "precious");
}

TEST_F(FileTest, LeavesNoTemporaryFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "new").ok());
  EXPECT_FALSE(std::filesystem::exists(Path("f.tmp")));
}

TEST_F(FileTest, UncommittedWriterLeavesTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "old").ok());
  {
    StatusOr<AtomicFileWriter> writer = AtomicFileWriter::Open(Path("f"));
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->Append("half of the new").ok());
    EXPECT_EQ(Contents("f"), "old");
  }
  EXPECT_EQ(Contents("f"), "old");
  EXPECT_FALSE(std::filesystem::exists(Path("f.tmp")));
}

TEST_F(FileTest, AppendsInOrder) {
  StatusOr<AtomicFileWriter> writer = AtomicFileWriter::Open(Path("f"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Append("one,").ok());
  ASSERT_TRUE(writer->Append("").ok());
  ASSERT_TRUE(writer->Append("two").ok());
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(Contents("f"), "one,two");
}

TEST_F(FileTest, LeftoverOfAnInterruptedWriteIsNoObstacle) {
  ASSERT_TRUE(WriteFileAtomically(Path("f.tmp"), "a longer leftover of a crashed write").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "new").ok());
  EXPECT_EQ(Contents("f"), "new");
}

// A file size limit stands in for a full disk: write fails after part of the bytes.
TEST_F(FileTest, WriteThatFailsHalfwayLeavesTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "old").ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 1000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Status status = WriteFileAtomically(Path("f"), std::string(5000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(status.code(), StatusCode::kMachine);
  EXPECT_EQ(status.message(), Path("f.tmp") + ": write: File too large");
  EXPECT_EQ(Contents("f"), "old");
  EXPECT_FALSE(std::filesystem::exists(Path("f.tmp")));
}

TEST_F(FileTest, WritingOverADirectoryIsAUserError) {
  ASSERT_TRUE(MakeDirectory(Path("d")).ok());
  const Status status = WriteFileAtomically(Path("d"), "x");
  EXPECT_EQ(status.code(), StatusCode::kUser);
  EXPECT_EQ(status.message(), Path("d") + ": rename: Is a directory");
  EXPECT_FALSE(std::filesystem::exists(Path("d.tmp")));
}

TEST_F(FileTest, MakesParentsAndAcceptsWhatExists) {
  for (const char* name : {"a/b/c", "a/b/c", "a//b/d/", "a"}) {
    EXPECT_TRUE(MakeDirectory(Path(name)).ok()) << name;
    EXPECT_TRUE(std::filesystem::is_directory(Path(name))) << name;
  }
}

TEST_F(FileTest, DirectoryInPlaceOfAFileIsAUserError) {
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "x").ok());
  EXPECT_EQ(MakeDirectory(Path("f")).message(), Path("f") + ": mkdir: File exists");
  EXPECT_EQ(MakeDirectory(Path("f/g")).code(), StatusCode::kUser);
  EXPECT_EQ(MakeDirectory("").code(), StatusCode::kUser);
}

TEST_F(FileTest, ListsADirectory) {
  for (const char* name : {"b", ".hidden", "a"}) {
    ASSERT_TRUE(WriteFileAtomically(Path(name), "x").ok());
  }
  EXPECT_EQ(*NamesIn(directory_), (std::set<std::string>{".hidden", "a", "b"}));
  EXPECT_EQ(*NamesIn(Path("missing")), std::set<std::string>());
  EXPECT_EQ(NamesIn(Path("a")).status().message(), Path("a") + ": list: Not a directory");
  EXPECT_EQ(NamesIn(Path("a")).status().code(), StatusCode::kUser);
}

TEST_F(FileTest, TellsWhatIsThere) {
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "x").ok());
  EXPECT_TRUE(*IsThere(Path("f")));
  EXPECT_TRUE(*IsThere(directory_));
  EXPECT_FALSE(*IsThere(Path("missing")));
  EXPECT_FALSE(*IsThere(Path("f/below_a_file")));
  const std::string loop = Path("loop");
  ASSERT_EQ(symlink(loop.c_str(), loop.c_str()), 0);
  EXPECT_EQ(IsThere(loop).status().message(), loop + ": stat: Too many levels of symbolic links");
}

TEST_F(FileTest, NoMoreOpenFilesIsTheMachines) {
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "x").ok());
  const FileLimit limit(0);
  EXPECT_EQ(ReadFile(Path("f")).status().message(), Path("f") + ": open: Too many open files");
  EXPECT_EQ(ReadFile(Path("f")).status().code(), StatusCode::kMachine);
  EXPECT_EQ(NamesIn(directory_).status().message(), directory_ + ": list: Too many open files");
  EXPECT_EQ(NamesIn(directory_).status().code(), StatusCode::kMachine);
  EXPECT_EQ(WriteFileAtomically(Path("f"), "y").code(), StatusCode::kMachine);
  EXPECT_TRUE(*IsThere(Path("f")));
}

// In a folder that others may write to, the name may be taken.
TEST_F(FileTest, AnOwnDirectoryIsNobodyElses) {
  EXPECT_TRUE(MakeOwnDirectory(Path("own")).ok());
  ASSERT_EQ(symlink(Path("own").c_str(), Path("link").c_str()), 0);
  for (const char* name : {"own", "link"}) {
    EXPECT_EQ(MakeOwnDirectory(Path(name)).message(), Path(name) + ": mkdir: File exists");
  }
}

TEST_F(FileTest, PublishesADirectoryOnce) {
  ASSERT_TRUE(MakeDirectory(Path("new.partial")).ok());
  ASSERT_TRUE(WriteFileAtomically(Path("new.partial/f"), "bytes").ok());
  ASSERT_TRUE(PublishDirectory(Path("new.partial"), Path("new")).ok());
  EXPECT_EQ(Contents("new/f"), "bytes");
  EXPECT_FALSE(std::filesystem::exists(Path("new.partial")));

  ASSERT_TRUE(MakeDirectory(Path("new.partial")).ok());
  const Status used = PublishDirectory(Path("new.partial"), Path("new"));
  EXPECT_EQ(used.code(), StatusCode::kUser);
  EXPECT_EQ(used.message(), Path("new") + ": rename: Directory not empty");
  EXPECT_EQ(Contents("new/f"), "bytes");
}

TEST_F(FileTest, ReplacesADirectory) {
  const auto publish = [&](const std::string& bytes) {
    EXPECT_TRUE(MakeDirectory(Path("new.partial")).ok());
    EXPECT_TRUE(WriteFileAtomically(Path("new.partial/f"), bytes).ok());
    return ReplaceDirectory(Path("new.partial"), Path("new"));
  };
  EXPECT_EQ(DirectoryToRead(Path("new")), Path("new"));
  EXPECT_EQ(publish("1").message(), "");
  EXPECT_EQ(publish("2").message(), "");
  EXPECT_EQ(Contents("new/f"), "2");
  EXPECT_FALSE(std::filesystem::exists(Path("new.old")));
  // Killed between the two renames, and then tried again.
  std::filesystem::rename(Path("new"), Path("new.old"));
  EXPECT_EQ(DirectoryToRead(Path("new")), Path("new.old"));
  EXPECT_EQ(publish("3").message(), "");
  EXPECT_EQ(DirectoryToRead(Path("new")), Path("new"));
  EXPECT_EQ(Contents("new/f"), "3");
  EXPECT_FALSE(std::filesystem::exists(Path("new.old")));
}

TEST_F(FileTest, RemovesADirectoryWithAllThatIsInIt) {
  ASSERT_TRUE(MakeDirectory(Path("d/e")).ok());
  ASSERT_TRUE(WriteFileAtomically(Path("d/e/f"), "x").ok());
  EXPECT_TRUE(RemoveDirectory(Path("d")).ok());
  EXPECT_FALSE(std::filesystem::exists(Path("d")));
  EXPECT_TRUE(RemoveDirectory(Path("d")).ok());
}

}  // namespace
}  // namespace elastor
