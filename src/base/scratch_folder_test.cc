#include "base/scratch_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/scratch_file.h"
#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

TEST(ScratchFolder, IsThereAndGoesWithAllThatIsInIt) {
  const testing::TempDir parent;
  {
    auto made = ScratchFolder::Create(parent.path());
    ASSERT_TRUE(made.ok()) << made.error().message;
    const ScratchFolder folder = std::move(*made);
    EXPECT_TRUE(std::filesystem::is_directory(folder.path()));
    std::filesystem::create_directory(folder.path() + "/inner");
    std::ofstream(folder.path() + "/inner/file") << "x";
    auto second = ScratchFolder::Create(parent.path());
    ASSERT_TRUE(second.ok());
    EXPECT_NE(second->path(), folder.path());
    EXPECT_EQ(parent.CountFiles(), 2U);
  }
  EXPECT_EQ(parent.CountFiles(), 0U);
}

TEST(ScratchFolder, DoesNotOutliveAKilledProcess) {
  const testing::TempDir parent;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto folder = ScratchFolder::Create(parent.path());
    if (folder.ok()) std::ofstream(folder->path() + "/file") << "text";
    ::raise(SIGKILL);
  }
  ASSERT_GT(child, 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto is_empty = [&] {
    return std::filesystem::is_empty(parent.path());
  };
  for (int i = 0; i < 500 && !is_empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(is_empty());
}

TEST(ScratchFolder, NeedsAParent) {
  const testing::TempDir dir;
  const auto folder = ScratchFolder::Create(dir.File("missing"));
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::kEnvironment);
  EXPECT_NE(folder.error().message.find("missing"), std::string::npos);
}

// --- ScratchFile ---

// TMPDIR for as long as it lives.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& path) {
    if (const char* old = std::getenv("TMPDIR")) old_ = old;
    ::setenv("TMPDIR", path.c_str(), 1);
  }
  ~TemporaryFolder() {
    if (old_.empty()) {
      ::unsetenv("TMPDIR");
    } else {
      ::setenv("TMPDIR", old_.c_str(), 1);
    }
  }

 private:
  std::string old_;
};

TEST(ScratchFile, KeepsWhatWasWrittenWithoutAName) {
  const testing::TempDir parent;
  const TemporaryFolder folder(parent.path());
  auto file = ScratchFile::Create("numbers");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(parent.CountFiles(), 0U);
  ASSERT_TRUE(file->Write(AsBytes("first ")).ok());
  ASSERT_TRUE(file->Write(AsBytes("second")).ok());
  EXPECT_EQ(file->size(), 12U);
  const auto mapped = file->Map();
  ASSERT_TRUE(mapped.ok()) << mapped.error().message;
  EXPECT_EQ(AsText(mapped->bytes()), "first second");
}

TEST(ScratchFile, NeedsTheFolder) {
  const TemporaryFolder folder("/nowhere");
  const auto file = ScratchFile::Create("numbers");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kEnvironment);
  EXPECT_NE(file.error().message.find("numbers"), std::string::npos);
}

}  // namespace
}  // namespace hexllm
