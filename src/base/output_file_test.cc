#include "base/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ReadWholeFile;
using testing::TempDir;

TEST(OutputFile, AppearsOnlyWhenCommitted) {
  const TempDir dir;
  const std::string path = dir.File("out");
  auto file = OutputFile::Create(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_TRUE(file->Write(AsBytes("hello ")).ok());
  ASSERT_TRUE(file->Write(AsBytes("world")).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(ReadWholeFile(path), "hello world");
  EXPECT_EQ(dir.CountFiles(), 1u);
}

TEST(OutputFile, LeavesNothingBehindWithoutCommit) {
  const TempDir dir;
  dir.Write("out", "old");
  {
    auto file = OutputFile::Create(dir.File("out"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Write(AsBytes("new")).ok());
    const OutputFile moved = *std::move(file);
    // "out", and the new file where a file system needs a name for it.
    EXPECT_LE(dir.CountFiles(), 2u);
  }
  EXPECT_EQ(dir.CountFiles(), 1u);
  EXPECT_EQ(ReadWholeFile(dir.File("out")), "old");
}

TEST(OutputFile, ReplacesAnOldFile) {
  const TempDir dir;
  const std::string path = dir.Write("out", "a much longer old content");
  ASSERT_TRUE(WriteFile(path, AsBytes("new")).ok());
  EXPECT_EQ(ReadWholeFile(path), "new");
}

TEST(OutputFile, PadsAndOverwrites) {
  const TempDir dir;
  auto file = OutputFile::Create(dir.File("out"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->PadTo(8).ok());
  EXPECT_EQ(file->size(), 0u);
  ASSERT_TRUE(file->Write(AsBytes("abc")).ok());
  ASSERT_TRUE(file->PadTo(8).ok());
  EXPECT_EQ(file->size(), 8u);
  ASSERT_TRUE(file->PadTo(8).ok());
  EXPECT_EQ(file->size(), 8u);
  ASSERT_TRUE(file->WriteAt(1, AsBytes("BC")).ok());
  ASSERT_TRUE(file->Write(AsBytes("z")).ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(ReadWholeFile(dir.File("out")), std::string("aBC\0\0\0\0\0z", 9));
}

TEST(OutputFile, ChecksItsUse) {
  const TempDir dir;
  auto file = OutputFile::Create(dir.File("out"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Write(AsBytes("abc")).ok());
  const auto exits = ::testing::ExitedWithCode(70);
  EXPECT_EXIT((void)file->WriteAt(2, AsBytes("xx")).ok(), exits, "");
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EXIT((void)file->Write(AsBytes("x")).ok(), exits, "");
  EXPECT_EXIT((void)file->Commit().ok(), exits, "");
}

TEST(OutputFile, HonoursTheUmask) {
  const TempDir dir;
  const mode_t before = ::umask(027);
  const Status written = WriteFile(dir.File("out"), AsBytes("x"));
  ::umask(before);
  ASSERT_TRUE(written.ok());
  struct stat info = {};
  ASSERT_EQ(::stat(dir.File("out").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(OutputFile, NamesWhatCannotBeCreated) {
  const TempDir dir;
  const std::string in_no_folder = dir.File("gone/out");
  for (const std::string& path :
       {in_no_folder, dir.path(), std::string("/dev/fd/1023")}) {
    const auto file = OutputFile::Create(path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.error().code, ErrorCode::kEnvironment);
    EXPECT_THAT(file.error().message, HasSubstr(path));
  }
  EXPECT_EQ(dir.CountFiles(), 0u);
}

TEST(OutputFile, RefusesAFolderThatIsNotWritable) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0500), 0);
  const auto file = OutputFile::Create(dir.File("out"));
  ASSERT_EQ(::chmod(dir.path().c_str(), 0700), 0);
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("Permission denied"));
}

// Writes 1 MiB where the system allows 64 KiB, prints the error and exits with
// its code: a disk that fills up in the middle of a write.
[[noreturn]] void WriteBeyondTheLimit(const std::string& path) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
  HX_CHECK(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  const std::string content(1 << 20, 'x');
  const Status status = WriteFile(path, AsBytes(content));
  if (status.ok()) std::_Exit(0);
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  std::_Exit(static_cast<int>(status.error().code));
}

TEST(OutputFile, SurvivesAFullDisk) {
  const TempDir dir;
  const std::string path = dir.Write("out", "old");
  EXPECT_EXIT(WriteBeyondTheLimit(path), ::testing::ExitedWithCode(5),
              "out: cannot write: File too large; nothing was written");
  EXPECT_EQ(dir.CountFiles(), 1u);
  EXPECT_EQ(ReadWholeFile(path), "old");
}

// Also behind a link. /dev/full refuses every write.
TEST(OutputFile, WritesToDevices) {
  const TempDir dir;
  std::filesystem::create_symlink("/dev/full", dir.File("out"));
  auto file = OutputFile::Create(dir.File("out"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_TRUE(file->Write(AsBytes("text")).ok());
  const Status full = file->Commit();
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(full.error().message,
              HasSubstr("out: cannot write: No space left on device"));
  EXPECT_TRUE(std::filesystem::is_symlink(dir.File("out")));
  EXPECT_TRUE(WriteFile("/dev/null", AsBytes("text")).ok());
}

// As a shell's redirection to it would, by all its names.
TEST(OutputFile, GoesOnWithAnOpenFile) {
  const TempDir dir;
  const std::string path = dir.File("log");
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  const std::string number = std::to_string(fd);
  std::filesystem::create_symlink("/dev/fd/" + number, dir.File("link"));
  ASSERT_EQ(::write(fd, "first ", 6), 6);
  for (const std::string& name :
       {"/dev/fd/" + number, "/proc/self/fd/" + number, dir.File("link")}) {
    auto file = OutputFile::Create(name);
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_TRUE(file->Write(AsBytes(".... ")).ok());
    ASSERT_TRUE(file->WriteAt(0, AsBytes("text")).ok());
    ASSERT_TRUE(file->Commit().ok());
  }
  ASSERT_EQ(::write(fd, "last", 4), 4);
  ::close(fd);
  EXPECT_EQ(ReadWholeFile(path), "first text text text last");
  EXPECT_EQ(dir.CountFiles(), 2u);
  const int read_only = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(read_only, 0);
  EXPECT_FALSE(
      WriteFile("/dev/fd/" + std::to_string(read_only), AsBytes("x")).ok());
  ::close(read_only);
}

TEST(OutputFile, GoesWhereALinkLeads) {
  const TempDir dir;
  std::filesystem::create_directory(dir.File("there"));
  std::filesystem::create_symlink("there/file", dir.File("second"));
  std::filesystem::create_symlink(dir.File("second"), dir.File("first"));
  for (const std::string text : {"made", "replaced"}) {
    ASSERT_TRUE(WriteFile(dir.File("first"), AsBytes(text)).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(dir.File("first")));
    EXPECT_TRUE(std::filesystem::is_symlink(dir.File("second")));
    EXPECT_EQ(ReadWholeFile(dir.File("there/file")), text);
  }
}

}  // namespace
}  // namespace hexllm
