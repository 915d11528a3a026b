#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

TEST(MappedFile, ShowsTheBytes) {
  const TempDir dir;
  const std::string path = dir.Write("f", "content");
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(AsText(file->bytes()), "content");
  EXPECT_EQ(file->path(), path);
}

TEST(MappedFile, TakesAnEmptyFile) {
  const TempDir dir;
  const auto file = MappedFile::Open(dir.Write("f", ""));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file->bytes().empty());
  file->DropPages(file->bytes());
}

TEST(MappedFile, KeepsItsMappingWhenMoved) {
  const TempDir dir;
  auto opened = MappedFile::Open(dir.Write("f", "content"));
  ASSERT_TRUE(opened.ok());
  const ByteSpan before = opened->bytes();
  MappedFile moved = *std::move(opened);
  EXPECT_EQ(moved.bytes().data(), before.data());
  MappedFile other;
  other = std::move(moved);
  EXPECT_EQ(AsText(other.bytes()), "content");
}

TEST(MappedFile, NamesWhatCannotBeOpened) {
  const TempDir dir;
  const std::string pipe = dir.File("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {dir.File("gone"), dir.path(), pipe}) {
    const auto file = MappedFile::Open(path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.error().code, ErrorCode::kEnvironment);
    EXPECT_THAT(file.error().message, HasSubstr(path));
  }
  EXPECT_THAT(MappedFile::Open(dir.File("gone")).error().message,
              HasSubstr("No such file"));
  EXPECT_THAT(MappedFile::Open(pipe).error().message,
              HasSubstr("regular file"));
}

TEST(MappedFile, CanBeReadAfterDroppingPages) {
  const TempDir dir;
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += std::to_string(i);
  const auto file = MappedFile::Open(dir.Write("f", content));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(AsText(file->bytes()), content);
  file->DropPages(file->bytes().subspan(5000, 300'000));
  EXPECT_EQ(AsText(file->bytes()), content);
  file->DropPages({});
  EXPECT_EXIT(file->DropPages(AsBytes("elsewhere")),
              ::testing::ExitedWithCode(70), "");
}

}  // namespace
}  // namespace hexllm
