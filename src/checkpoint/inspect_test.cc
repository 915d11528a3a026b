#include "checkpoint/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gguf_builder.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

using testing::GgufBuilder;
using testing::SafetensorsBuilder;
using testing::TempDir;

std::string GgufWithEverything() {
  return GgufBuilder()
      .Add<std::string>("general.name", "two\nlines")
      .Add<float>("eps", 1e-5f)
      .Add<double>("wide", 0.1)
      .Add<bool>("flag", true)
      .Add<int32_t>("minus", -1)
      .AddArray<uint32_t>("short", {1, 2})
      .AddArray<std::string>("long",
                             {"0", "1", "2", "3", "4", "5", "6", "7", "8"})
      .Tensor({.name = "blk.0.w",
               .dims = {32, 2},
               .type = 2,
               .data = std::string(36, 'q')})
      .Tensor({.name = "b", .dims = {4}, .data = std::string(16, 'f')})
      .Build();
}

TEST(DescribeCheckpoint, ListsAGguf) {
  const TempDir dir;
  const std::string path = dir.Write("m.gguf", GgufWithEverything());
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const std::string bytes = std::to_string(GgufWithEverything().size());
  EXPECT_EQ(
      DescribeCheckpoint(*checkpoint),
      "format: GGUF\n"
      "file: " +
          path + ", " + bytes +
          " bytes\n"
          "metadata\n"
          "  general.name = string \"two\\x0alines\"\n"
          "  eps = f32 1e-05\n"
          "  wide = f64 0.1\n"
          "  flag = bool true\n"
          "  minus = i32 -1\n"
          "  short = array of 2 u32 [1, 2]\n"
          "  long = array of 9 string [\"0\", \"1\", \"2\", \"3\", \"4\", "
          "\"5\", \"6\", \"7\", ...]\n"
          "tensors\n"
          "  name     dtype  shape          bytes\n"
          "  b        f32    [4]               16\n"
          "  blk.0.w  q4_0   [2,32]            36\n"
          "total: 2 tensors, 68 elements, 52 bytes\n");
}

TEST(DescribeCheckpoint, ListsSafetensors) {
  const TempDir dir;
  const std::string content = SafetensorsBuilder()
                                  .Metadata("format", "pt")
                                  .Add("w", "BF16", {1, 2}, "1234")
                                  .Add("s", "U8", Json::array(), "1")
                                  .Build();
  const std::string path = dir.Write("m.safetensors", content);
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(DescribeCheckpoint(*checkpoint),
            "format: safetensors\n"
            "file: " +
                path + ", " + std::to_string(content.size()) +
                " bytes\n"
                "metadata\n"
                "  format = string \"pt\"\n"
                "tensors\n"
                "  name  dtype  shape         bytes\n"
                "  s     u8     []                1\n"
                "  w     bf16   [1,2]             4\n"
                "total: 2 tensors, 3 elements, 5 bytes\n");
}

TEST(CheckpointToJson, HoldsTheSameFacts) {
  const TempDir dir;
  const std::string path = dir.Write("m.gguf", GgufWithEverything());
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  // Through text, as a script reads it.
  const auto json = ParseJson(DumpJson(CheckpointToJson(*checkpoint)));
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ((*json)["format"], "GGUF");
  EXPECT_EQ((*json)["files"][0]["path"], path);
  const Json& metadata = (*json)["metadata"];
  ASSERT_EQ(metadata.size(), 7u);
  EXPECT_EQ(metadata[0], (Json{{"key", "general.name"},
                               {"type", "string"},
                               {"value", "two\nlines"}}));
  EXPECT_EQ(metadata[3]["value"], true);
  EXPECT_EQ(metadata[4]["value"], -1);
  EXPECT_EQ(metadata[5]["first"], Json({1, 2}));
  EXPECT_EQ(metadata[6]["type"], "array of string");
  EXPECT_EQ(metadata[6]["count"], 9);
  EXPECT_EQ(metadata[6]["first"].size(), 8u);
  EXPECT_EQ((*json)["tensors"][1], (Json{{"name", "blk.0.w"},
                                         {"dtype", "q4_0"},
                                         {"shape", {2, 32}},
                                         {"bytes", 36}}));
  EXPECT_EQ((*json)["total"],
            (Json{{"tensors", 2}, {"elements", 68}, {"bytes", 52}}));
}

}  // namespace
}  // namespace hexllm
