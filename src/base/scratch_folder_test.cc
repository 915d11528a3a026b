#include "base/scratch_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

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

TEST(ScratchFolder, NeedsAParent) {
  const testing::TempDir dir;
  const auto folder = ScratchFolder::Create(dir.File("missing"));
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::kEnvironment);
  EXPECT_NE(folder.error().message.find("missing"), std::string::npos);
}

}  // namespace
}  // namespace hexllm
