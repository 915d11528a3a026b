// The file sink leaves a whole file or nothing.
#include "artifact/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "artifact/artifact_testing.h"
#include "tests/support/temp_dir.h"

namespace hexllm::artifact {
namespace {

using ::testing::HasSubstr;

// While alive, no file of this process may grow beyond `bytes`: the closest
// thing to a full disk that needs no privileges.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    HX_CHECK(::getrlimit(RLIMIT_FSIZE, &saved_) == 0);
    rlimit limit = saved_;
    limit.rlim_cur = bytes;
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    HX_CHECK(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    (void)::setrlimit(RLIMIT_FSIZE, &saved_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit saved_ = {};
  void (*handler_)(int) = nullptr;
};

Status WriteTestFile(const std::string& path) {
  HX_ASSIGN_OR_RETURN(FileSink sink, FileSink::Create(path));
  HX_ASSIGN_OR_RETURN(Manifest manifest, AddTestSegments(sink));
  return sink.Finish(std::move(manifest));
}

TEST(FileSinkTest, FullDiskLeavesNothingBehind) {
  const testing::TempDir folder;
  const size_t whole = MakeTestFile().size();
  for (const size_t room : {size_t{0}, size_t{64}, size_t{4096}, size_t{5000},
                            size_t{9000}, whole - 1}) {
    SCOPED_TRACE(room);
    const FileSizeLimit limit(room);
    const Status status = WriteTestFile(folder.File("test.hxl"));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kEnvironment);
    EXPECT_THAT(status.error().message, HasSubstr("test.hxl"));
    EXPECT_EQ(folder.CountFiles(), 0u);
  }
  const FileSizeLimit limit(whole);
  EXPECT_TRUE(WriteTestFile(folder.File("test.hxl")).ok());
  EXPECT_EQ(folder.CountFiles(), 1u);
}

TEST(FileSinkTest, AnOlderFileSurvivesAFailure) {
  const testing::TempDir folder;
  const std::string path = folder.File("test.hxl");
  ASSERT_TRUE(WriteTestFile(path).ok());
  {
    const FileSizeLimit limit(5000);
    ASSERT_FALSE(WriteTestFile(path).ok());
  }
  EXPECT_TRUE(Artifact::Open(path).ok());
  EXPECT_EQ(folder.CountFiles(), 1u);
}

TEST(FileSinkTest, MissingFolderIsAnEnvironmentError) {
  const testing::TempDir folder;
  const auto sink = FileSink::Create(folder.File("none/test.hxl"));
  ASSERT_FALSE(sink.ok());
  EXPECT_EQ(sink.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(sink.error().message, HasSubstr("none/test.hxl"));
}

TEST(FileSinkTest, AFolderIsNotOverwritten) {
  const testing::TempDir folder;
  const std::string path = folder.File("test.hxl");
  std::filesystem::create_directory(path);
  EXPECT_FALSE(FileSink::Create(path).ok());
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST(FileSinkTest, UnfinishedAndInvalidOnesLeaveNothing) {
  const testing::TempDir folder;
  {
    auto sink = FileSink::Create(folder.File("a.hxl"));
    ASSERT_TRUE(sink.ok());
    ASSERT_TRUE(AddTestSegments(*sink).ok());
  }
  EXPECT_EQ(folder.CountFiles(), 0u);
  {
    auto sink = FileSink::Create(folder.File("b.hxl"));
    ASSERT_TRUE(sink.ok());
    auto manifest = AddTestSegments(*sink);
    ASSERT_TRUE(manifest.ok());
    manifest->vocab_size = 0;
    EXPECT_FALSE(sink->Finish(*manifest).ok());
  }
  EXPECT_EQ(folder.CountFiles(), 0u);
}

TEST(MemorySinkTest, InvalidManifestIsRefused) {
  MemorySink sink;
  auto manifest = AddTestSegments(sink);
  ASSERT_TRUE(manifest.ok());
  manifest->graphs[0].program = 99;
  const auto artifact = sink.Finish(*manifest, nullptr);
  ASSERT_FALSE(artifact.ok());
  EXPECT_THAT(artifact.error().message, HasSubstr("prefill_4"));
}

TEST(MemorySinkTest, EmptySegmentsAreKept) {
  MemorySink sink;
  auto manifest = AddTestSegments(sink);
  ASSERT_TRUE(manifest.ok());
  const auto index = sink.Add({"empty", SegmentKind::kText}, {});
  ASSERT_TRUE(index.ok());
  const auto artifact = sink.Finish(*manifest, nullptr);
  ASSERT_TRUE(artifact.ok()) << artifact.error().message;
  EXPECT_TRUE((*artifact)->Segment(*index).empty());
}

TEST(SegmentSinkDeathTest, ARepeatedNameIsABug) {
  MemorySink sink;
  ASSERT_TRUE(sink.Add({"a", SegmentKind::kText}, AsBytes("1")).ok());
  EXPECT_EXIT((void)sink.Add({"a", SegmentKind::kText}, AsBytes("2")),
              ::testing::ExitedWithCode(70), "internal error");
}

}  // namespace
}  // namespace hexllm::artifact
