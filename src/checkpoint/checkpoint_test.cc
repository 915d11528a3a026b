#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <type_traits>

#include "tests/support/gguf_builder.h"
#include "tests/support/pytorch_builder.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

using ::testing::AllOf;
using testing::GgufBuilder;
using ::testing::HasSubstr;
using testing::PytorchBuilder;
using testing::SafetensorsBuilder;
using testing::TempDir;

static_assert(!std::is_copy_constructible_v<Checkpoint>);
static_assert(std::is_move_constructible_v<Checkpoint>);

// The error of opening `path`, which must be one line, name the path and have
// the given kind.
std::string ErrorOf(const std::string& path,
                    ErrorCode code = ErrorCode::kBadInput) {
  const auto checkpoint = Checkpoint::Open(path);
  if (checkpoint.ok()) return "no error";
  EXPECT_EQ(checkpoint.error().code, code) << checkpoint.error().message;
  EXPECT_THAT(checkpoint.error().message, HasSubstr(path));
  EXPECT_EQ(checkpoint.error().message.find('\n'), std::string::npos);
  return checkpoint.error().message;
}

std::string OneTensor(const std::string& name) {
  return SafetensorsBuilder().Add(name, "U8", {4}, "data").Build();
}

std::string SmallGguf() {
  return GgufBuilder()
      .Add<std::string>("general.architecture", "llama")
      .Tensor({.name = "w", .dims = {1}, .data = "1234"})
      .Build();
}

// Two shards: "a" and "c" in one.safetensors, "b" in two.safetensors.
void WriteSharded(const TempDir& dir) {
  dir.Write("one.safetensors", SafetensorsBuilder()
                                   .Add("c", "U8", {4}, "cccc")
                                   .Add("a", "U8", {4}, "aaaa")
                                   .Build());
  dir.Write("two.safetensors", OneTensor("b"));
  dir.Write("model.safetensors.index.json",
            R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors",
                              "c":"one.safetensors"}})");
}

TEST(Checkpoint, OpensAFolderWithOneFile) {
  const TempDir dir;
  dir.Write("model.safetensors", OneTensor("w"));
  dir.Write("config.json", "{}");
  dir.Write("pytorch_model.bin", "ignored");
  const auto checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->format(), CheckpointFormat::kSafetensors);
  EXPECT_EQ(checkpoint->path(), dir.path());
  EXPECT_EQ(checkpoint->gguf(), nullptr);
  ASSERT_EQ(checkpoint->tensors().size(), 1u);
  const TensorView* tensor = checkpoint->Find("w");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(AsText(tensor->data), "data");
  for (const char* name : {"", "v", "ww", "x"}) {
    EXPECT_EQ(checkpoint->Find(name), nullptr);
  }
}

TEST(Checkpoint, OpensShardsInNameOrder) {
  const TempDir dir;
  WriteSharded(dir);
  const auto checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->tensors().size(), 3u);
  EXPECT_EQ(checkpoint->tensors()[0].name, "a");
  EXPECT_EQ(checkpoint->tensors()[1].name, "b");
  EXPECT_EQ(checkpoint->tensors()[2].name, "c");
  EXPECT_EQ(AsText(checkpoint->Find("a")->data), "aaaa");
  EXPECT_EQ(AsText(checkpoint->Find("b")->data), "data");
  EXPECT_EQ(checkpoint->files().size(), 2u);
}

TEST(Checkpoint, OpensFilesByContent) {
  const TempDir dir;
  const auto gguf = Checkpoint::Open(dir.Write("x.bin", SmallGguf()));
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  EXPECT_EQ(gguf->format(), CheckpointFormat::kGguf);
  ASSERT_NE(gguf->gguf(), nullptr);
  EXPECT_EQ(*gguf->gguf()->GetString("general.architecture"), "llama");
  EXPECT_EQ(AsText(gguf->Find("w")->data), "1234");

  const auto safetensors =
      Checkpoint::Open(dir.Write("y.gguf", OneTensor("w")));
  ASSERT_TRUE(safetensors.ok()) << safetensors.error().message;
  EXPECT_EQ(safetensors->format(), CheckpointFormat::kSafetensors);
}

// A header's length can begin like JSON (123), a pickle (640) or a zip file.
TEST(Checkpoint, IsNotMisledByTheLengthOfAHeader) {
  const TempDir dir;
  for (const size_t length : {size_t{'{'}, size_t{0x0280}, size_t{'F'}}) {
    std::string header =
        R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
    header.append(length - header.size(), ' ');
    const auto checkpoint = Checkpoint::Open(dir.Write(
        "m.safetensors", testing::SafetensorsFromHeader(header, "data")));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  }
}

TEST(Checkpoint, OpensAFolderWithOneGguf) {
  const TempDir dir;
  dir.Write("model.gguf", SmallGguf());
  dir.Write("README.md", "x");
  const auto checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->format(), CheckpointFormat::kGguf);
  EXPECT_EQ(checkpoint->path(), dir.path());
  dir.Write("other.gguf", SmallGguf());
  EXPECT_THAT(ErrorOf(dir.path()),
              AllOf(HasSubstr("expected one .gguf file, found 2"),
                    HasSubstr("model.gguf, other.gguf")));
}

TEST(Checkpoint, StaysValidWhenMoved) {
  const TempDir dir;
  WriteSharded(dir);
  auto opened = Checkpoint::Open(dir.path());
  ASSERT_TRUE(opened.ok());
  const TensorView* before = opened->Find("b");
  const Checkpoint moved = *std::move(opened);
  EXPECT_EQ(moved.Find("b"), before);
  EXPECT_EQ(AsText(before->data), "data");
}

TEST(Checkpoint, RefusesPathsWithoutACheckpoint) {
  const TempDir dir;
  EXPECT_THAT(ErrorOf(dir.File("gone"), ErrorCode::kEnvironment),
              HasSubstr("No such file"));
  EXPECT_THAT(ErrorOf(dir.path()), HasSubstr("expected model.safetensors"));
  EXPECT_THAT(ErrorOf(dir.Write("empty", "")), HasSubstr("found 0"));
  EXPECT_THAT(ErrorOf(dir.Write("config.json", R"({"model_type":"llama"})")),
              HasSubstr("found JSON"));
}

TEST(Checkpoint, OpensPytorchFiles) {
  TempDir dir;
  const std::string file = PytorchBuilder().Add("w", {1}, "1234").Build();
  dir.Write("tokenizer.bin", "ignored");
  for (const std::string name :
       {"stories.pt", "consolidated.00.pth", "pytorch_model.bin"}) {
    dir.Write(name, file);
    for (const std::string& path : {dir.path(), dir.File(name)}) {
      const auto checkpoint = Checkpoint::Open(path);
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
      EXPECT_EQ(checkpoint->format(), CheckpointFormat::kPytorch);
      EXPECT_EQ(checkpoint->files()[0].mapping.path(), dir.File(name));
      EXPECT_EQ(checkpoint->side_directory(), dir.path());
      EXPECT_NE(checkpoint->Find("w"), nullptr);
    }
  }
}

TEST(Checkpoint, OpensShardsOfPytorchFiles) {
  TempDir dir;
  dir.Write("one.bin", PytorchBuilder().Add("a", {1}, "1234").Build());
  dir.Write("two.bin", PytorchBuilder().Add("b", {1}, "5678").Build());
  dir.Write("pytorch_model.bin.index.json",
            R"({"weight_map":{"a":"one.bin","b":"two.bin"}})");
  const auto checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->format(), CheckpointFormat::kPytorch);
  EXPECT_EQ(AsText(checkpoint->Find("b")->data), "5678");
}

TEST(Checkpoint, SaysWhyAPytorchFileIsNoCheckpoint) {
  TempDir dir;
  EXPECT_THAT(ErrorOf(dir.Write("x.pth", "PK\x03\x04 and more bytes")),
              HasSubstr("truncated file?"));
  EXPECT_THAT(ErrorOf(dir.Write("old.pt", "\x80\x02}q\x01 and more bytes"),
                      ErrorCode::kUnsupported),
              HasSubstr("before 1.6"));
  // Two, and nothing says which.
  EXPECT_THAT(ErrorOf(dir.path()),
              AllOf(HasSubstr("old.pt"), HasSubstr("name the one you mean")));
}

TEST(Checkpoint, RefusesASplitGguf) {
  const TempDir dir;
  const auto with_parts = [](uint16_t parts) {
    return GgufBuilder().Add<uint16_t>("split.count", parts).Build();
  };
  EXPECT_EQ(ErrorOf(dir.Write("m.gguf", with_parts(1))), "no error");
  EXPECT_THAT(
      ErrorOf(dir.Write("m.gguf", with_parts(3)), ErrorCode::kUnsupported),
      AllOf(HasSubstr("3 parts"), HasSubstr("--merge")));
}

TEST(Checkpoint, NamesTheDamagedFile) {
  const TempDir dir;
  std::string file = OneTensor("w");
  file.pop_back();
  EXPECT_THAT(
      ErrorOf(dir.Write("m.safetensors", file)),
      AllOf(HasSubstr("m.safetensors: tensor 'w'"), HasSubstr("truncated")));
  file = SmallGguf();
  file.pop_back();
  EXPECT_THAT(ErrorOf(dir.Write("m.gguf", file)),
              AllOf(HasSubstr("m.gguf: tensor 'w'"), HasSubstr("truncated")));
}

TEST(Checkpoint, RefusesShardsThatDisagreeWithTheIndex) {
  const TempDir dir;
  WriteSharded(dir);
  dir.Write("two.safetensors", SafetensorsBuilder()
                                   .Add("b", "U8", {4}, "bbbb")
                                   .Add("extra", "U8", {1}, "x")
                                   .Build());
  EXPECT_THAT(ErrorOf(dir.path()),
              HasSubstr("two.safetensors: tensor 'extra': not in "
                        "model.safetensors.index.json"));
  dir.Write("two.safetensors", SafetensorsBuilder()
                                   .Add("a", "U8", {4}, "bbbb")
                                   .Add("b", "U8", {1}, "x")
                                   .Build());
  EXPECT_THAT(ErrorOf(dir.path()),
              HasSubstr("two.safetensors: tensor 'a': expected in "
                        "'one.safetensors'"));
  dir.Write("two.safetensors", SafetensorsBuilder().Build());
  EXPECT_THAT(ErrorOf(dir.path()),
              HasSubstr("model.safetensors.index.json: tensor 'b': expected "
                        "in 'two.safetensors', found nothing"));
  dir.Write("two.safetensors", "short");
  EXPECT_THAT(ErrorOf(dir.path()), HasSubstr("two.safetensors: expected a "
                                             "safetensors file"));
  std::filesystem::remove(dir.File("two.safetensors"));
  EXPECT_THAT(ErrorOf(dir.path()),
              HasSubstr("model.safetensors.index.json: expected the shard "
                        "'two.safetensors' beside it"));
  dir.Write("model.safetensors.index.json",
            R"({"weight_map":{"a":"../one.safetensors"}})");
  EXPECT_THAT(ErrorOf(dir.path()),
              HasSubstr("model.safetensors.index.json: tensor 'a': expected a "
                        "plain file name"));
}

// Where config.json and the tokenizer are looked for.
TEST(Checkpoint, NamesTheFolderOfItsSideFiles) {
  const TempDir dir;
  const std::string file = dir.Write("model.safetensors", OneTensor("w"));
  for (const std::string& path : {dir.path(), file}) {
    const auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok());
    EXPECT_EQ(checkpoint->side_directory(), dir.path());
  }
  const auto gguf = Checkpoint::Open(dir.Write("m.gguf", SmallGguf()));
  ASSERT_TRUE(gguf.ok());
  EXPECT_EQ(gguf->side_directory(), "");
}

TEST(Checkpoint, DropsPagesOfItsTensorsOnly) {
  const TempDir dir;
  const std::string bytes(1 << 16, 'x');
  dir.Write("model.safetensors",
            SafetensorsBuilder().Add("w", "U8", {1 << 16}, bytes).Build());
  const auto checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok());
  const TensorView& tensor = *checkpoint->Find("w");
  EXPECT_EQ(AsText(tensor.data), bytes);
  checkpoint->DropPages(tensor);
  EXPECT_EQ(AsText(tensor.data), bytes);
  const TensorView other = {
      .name = "w", .dtype = DType::kU8, .shape = {4}, .data = AsBytes("none")};
  EXPECT_EXIT(checkpoint->DropPages(other), ::testing::ExitedWithCode(70), "");
}

}  // namespace
}  // namespace hexllm
