#include "checkpoint/side_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TempDir;

TEST(ReadSideFile, TellsMissingFromEmpty) {
  const TempDir dir;
  dir.Write("config.json", "text");
  dir.Write("empty", "");
  EXPECT_EQ(*ReadSideFile(dir.path(), "config.json"), "text");
  EXPECT_EQ(*ReadSideFile(dir.path(), "empty"), "");
  EXPECT_EQ(*ReadSideFile(dir.path(), "tokenizer.json"), std::nullopt);
  EXPECT_EQ(*ReadSideFile(dir.File("gone"), "config.json"), std::nullopt);
}

TEST(ReadSideFile, TakesPlainNamesOnly) {
  const TempDir dir;
  EXPECT_EXIT((void)ReadSideFile(dir.path(), "../config.json").ok(),
              ::testing::ExitedWithCode(70), "");
}

TEST(ReadSideFile, BoundsTheSize) {
  const TempDir dir;
  dir.Write("tokenizer.json", "");
  std::filesystem::resize_file(dir.File("tokenizer.json"),
                               kMaxSideFileBytes + 1);  // sparse
  const auto big = ReadSideFile(dir.path(), "tokenizer.json");
  ASSERT_FALSE(big.ok());
  EXPECT_EQ(big.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(big.error().message,
              AllOf(HasSubstr("tokenizer.json: expected at most"),
                    HasSubstr(fmt::format("found {}", kMaxSideFileBytes + 1))));
}

TEST(ReadSideFile, NamesWhatCannotBeRead) {
  const TempDir dir;
  std::filesystem::create_directory(dir.File("config.json"));
  const auto folder = ReadSideFile(dir.path(), "config.json");
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(folder.error().message, HasSubstr(dir.File("config.json")));
}

TEST(ReadSideJson, ParsesAndNamesTheFile) {
  const TempDir dir;
  dir.Write("config.json", R"({"a":1})");
  dir.Write("broken.json", "{");
  const auto json = ReadSideJson(dir.path(), "config.json");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ((**json)["a"], 1);
  const auto missing = ReadSideJson(dir.path(), "gone.json");
  ASSERT_TRUE(missing.ok());
  EXPECT_FALSE(missing->has_value());
  const auto broken = ReadSideJson(dir.path(), "broken.json");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(broken.error().message,
              HasSubstr(dir.File("broken.json") + ": malformed JSON"));
}

}  // namespace
}  // namespace hexllm
