#include "checkpoint/meta_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.h"
#include "tests/support/pytorch_builder.h"
#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::PytorchBuilder;
using testing::TempDir;

// `text` with four times each character: one f32 a character.
std::string F32(std::string_view text) {
  std::string out;
  for (const char c : text) out.append(4, c);
  return out;
}

// The shard of one of two GPUs; `wide` shares the embedding by columns, as
// Llama 2 does, else by rows.
std::string Shard(char name, bool wide) {
  const auto fill = [&](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i)
      text.push_back(static_cast<char>(name + static_cast<char>(i)));
    return F32(text);
  };
  return PytorchBuilder()
      .Add("tok_embeddings.weight",
           wide ? std::vector<int32_t>{4, 1} : std::vector<int32_t>{2, 2},
           fill(4))
      .Add("output.weight", {2, 2}, fill(4))
      .Add("norm.weight", {2}, F32("nn"))
      .Add("layers.0.attention.wq.weight", {1, 2}, fill(2))
      .Add("layers.0.attention.wo.weight", {2, 1}, fill(2))
      .Build();
}

std::string DataOf(const Checkpoint& checkpoint, std::string_view name) {
  const TensorView* tensor = checkpoint.Find(name);
  return tensor == nullptr ? "none" : std::string(AsText(tensor->data));
}

std::string ErrorOf(const std::string& path) {
  const auto checkpoint = Checkpoint::Open(path);
  if (checkpoint.ok()) return "no error";
  EXPECT_EQ(checkpoint.error().message.find('\n'), std::string::npos);
  return checkpoint.error().message;
}

TEST(MetaShards, JoinsRowsAndColumns) {
  TempDir dir;
  dir.Write("consolidated.00.pth", Shard('a', /*wide=*/false));
  const std::string second =
      dir.Write("consolidated.01.pth", Shard('p', /*wide=*/false));
  for (const std::string& path : {dir.path(), second}) {
    const auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->format(), CheckpointFormat::kPytorch);
    EXPECT_EQ(checkpoint->tensors().size(), 5u);
    EXPECT_EQ(DataOf(*checkpoint, "tok_embeddings.weight"), F32("abcdpqrs"));
    EXPECT_THAT(checkpoint->Find("tok_embeddings.weight")->shape,
                ElementsAre(4, 2));
    EXPECT_EQ(DataOf(*checkpoint, "layers.0.attention.wq.weight"), F32("abpq"));
    const TensorView* columns =
        checkpoint->Find("layers.0.attention.wo.weight");
    EXPECT_EQ(AsText(columns->data), F32("apbq"));
    EXPECT_THAT(columns->shape, ElementsAre(2, 2));
    EXPECT_EQ(DataOf(*checkpoint, "norm.weight"), F32("nn"));
    // Joined or not, they can be let go of.
    for (const TensorView& tensor : checkpoint->tensors())
      checkpoint->DropPages(tensor);
    EXPECT_EQ(DataOf(*checkpoint, "output.weight"), F32("abcdpqrs"));
  }
}

TEST(MetaShards, JoinsTheEmbeddingByColumnsWhereItIsNarrow) {
  TempDir dir;
  dir.Write("consolidated.00.pth", Shard('a', /*wide=*/true));
  dir.Write("consolidated.01.pth", Shard('p', /*wide=*/true));
  const auto checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(DataOf(*checkpoint, "tok_embeddings.weight"), F32("apbqcrds"));
}

TEST(MetaShards, NamesAMissingShard) {
  TempDir dir;
  dir.Write("consolidated.00.pth", Shard('a', false));
  dir.Write("consolidated.02.pth", Shard('p', false));
  EXPECT_THAT(ErrorOf(dir.path()),
              AllOf(HasSubstr(dir.path()),
                    HasSubstr("expected the shard consolidated.01.pth")));
}

TEST(MetaShards, RefusesShardsThatDiffer) {
  TempDir dir;
  const auto norm = [](std::vector<int32_t> shape, const std::string& data) {
    return PytorchBuilder().Add("norm.weight", std::move(shape), data);
  };
  const auto error = [&](const PytorchBuilder& second) {
    dir.Write("consolidated.01.pth", second.Build());
    return ErrorOf(dir.path());
  };
  dir.Write("consolidated.00.pth", norm({2}, F32("nn")).Build());
  EXPECT_THAT(error(norm({3}, F32("nnn"))),
              AllOf(HasSubstr("01.pth: tensor 'norm.weight': expected f32[2]"),
                    HasSubstr("found f32[3]")));
  EXPECT_THAT(error(norm({2}, F32("nn")).Add("more", {1}, F32("x"))),
              AllOf(HasSubstr("01.pth: tensor 'more'"), HasSubstr("one more")));
  EXPECT_THAT(error(PytorchBuilder()), HasSubstr("found none"));
  EXPECT_THAT(error(norm({2}, F32("no"))),
              AllOf(HasSubstr("01.pth: tensor 'norm.weight'"),
                    HasSubstr("found others")));
  // The same shape of another type.
  namespace pickle = testing::pickle;
  dir.Write(
      "consolidated.01.pth",
      testing::PytorchFrom(pickle::kStart +
                               pickle::Dict(pickle::Text("norm.weight") +
                                            pickle::Of({.type = "HalfStorage",
                                                        .elements = 2,
                                                        .shape = {2},
                                                        .strides = {1}})) +
                               pickle::kStop,
                           {"nnnn"}));
  EXPECT_THAT(ErrorOf(dir.path()), HasSubstr("found f16[2]"));
}

TEST(MetaShards, RefusesTensorsWithoutARule) {
  TempDir dir;
  for (const char* name : {"consolidated.00.pth", "consolidated.01.pth"})
    dir.Write(name, PytorchBuilder().Add("lora.a", {1}, F32("x")).Build());
  EXPECT_THAT(ErrorOf(dir.path()),
              AllOf(HasSubstr("'lora.a'"), HasSubstr("no rule")));
}

}  // namespace
}  // namespace hexllm
