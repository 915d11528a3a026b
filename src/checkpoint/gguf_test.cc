#include "checkpoint/gguf.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gguf_builder.h"

namespace hexllm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::GgufBuilder;
using ::testing::HasSubstr;

// The error for a file, which must be one line of the given kind.
std::string ErrorOf(const std::string& file,
                    ErrorCode code = ErrorCode::kBadInput) {
  const auto parsed = ParseGguf(AsBytes(file));
  if (parsed.ok()) return "no error";
  EXPECT_EQ(parsed.error().code, code) << parsed.error().message;
  EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  return parsed.error().message;
}

const std::string kEightFloats(32, 'f');

GgufBuilder TwoTensors() {
  return GgufBuilder()
      .Add<std::string>("general.architecture", "llama")
      .Tensor({.name = "b", .dims = {4, 2}, .data = kEightFloats})
      .Tensor(
          {.name = "a", .dims = {32}, .type = 2, .data = std::string(18, 'q')});
}

TEST(ParseGguf, GivesSortedViewsWithDimensionsTurnedRound) {
  for (const uint32_t version : {2u, 3u}) {
    const std::string file =
        TwoTensors()
            .Tensor({.name = "c", .dims = {4, 2}, .data = kEightFloats})
            .Version(version)
            .Build();
    const auto parsed = ParseGguf(AsBytes(file));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(parsed->version, version);
    ASSERT_EQ(parsed->tensors.size(), 3u);
    EXPECT_EQ(parsed->tensors[0].name, "a");
    EXPECT_EQ(parsed->tensors[0].dtype, DType::kQ4_0);
    EXPECT_EQ(AsText(parsed->tensors[0].data), std::string(18, 'q'));
    EXPECT_EQ(parsed->tensors[1].name, "b");
    EXPECT_THAT(parsed->tensors[1].shape, ElementsAre(2, 4));
    EXPECT_EQ(AsText(parsed->tensors[1].data), kEightFloats);
    EXPECT_EQ(AsText(parsed->tensors[2].data), kEightFloats);
  }
}

TEST(ParseGguf, KnowsAllTypesOfTheTable) {
  size_t known = 0;
  for (const DTypeInfo& info : AllDTypes()) {
    if (info.gguf_type < 0) continue;
    ++known;
    const std::string data(info.block_bytes, 'x');
    const std::string file =
        GgufBuilder()
            .Tensor({.name = "t",
                     .dims = {info.block_elems},
                     .type = static_cast<uint32_t>(info.gguf_type),
                     .data = data})
            .Build();
    const auto parsed = ParseGguf(AsBytes(file));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(parsed->tensors[0].dtype, info.dtype);
    EXPECT_EQ(AsText(parsed->tensors[0].data), data);
  }
  EXPECT_EQ(known, 18u);
}

TEST(ParseGguf, NamesTheTensorOfAnUnsupportedType) {
  const std::pair<uint32_t, const char*> types[] = {
      {16, "IQ2_XXS"}, {20, "IQ4_NL"}, {23, "IQ4_XS"},
      {29, "IQ1_M"},   {34, "TQ1_0"},  {39, "MXFP4"},
      {9, "Q8_1"},     {4, "Q4_2"},    {77, "number 77"}};
  for (const auto& [type, name] : types) {
    EXPECT_THAT(ErrorOf(GgufBuilder()
                            .Tensor({.name = "blk.0.w",
                                     .dims = {256},
                                     .type = type,
                                     .data = std::string(256, 'x')})
                            .Build(),
                        ErrorCode::kUnsupported),
                AllOf(HasSubstr("tensor 'blk.0.w'"), HasSubstr(name)));
  }
}

TEST(ParseGguf, TakesAVocabularyAlone) {
  const auto file = GgufBuilder().Add<uint32_t>("k", 1).Build();
  const auto parsed = ParseGguf(AsBytes(file));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_TRUE(parsed->tensors.empty());
}

TEST(ParseGguf, RefusesEveryTruncation) {
  const std::string file = TwoTensors().Build();
  ASSERT_TRUE(ParseGguf(AsBytes(file)).ok());
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(ErrorOf(file.substr(0, size)), "no error") << size;
  }
  EXPECT_THAT(ErrorOf(file.substr(0, file.size() - 1)),
              AllOf(HasSubstr("tensor 'a'"), HasSubstr("truncated")));
}

TEST(ParseGguf, RefusesOtherVersionsAndByteOrders) {
  EXPECT_THAT(ErrorOf("GGML" + std::string(60, '\0')),
              HasSubstr("starts with 'GGUF', found 'GGML'"));
  for (const uint32_t version : {0u, 1u, 4u, 1000u}) {
    EXPECT_THAT(ErrorOf(GgufBuilder().Version(version).Build(),
                        ErrorCode::kUnsupported),
                HasSubstr(fmt::format("version {}", version)));
  }
  EXPECT_THAT(
      ErrorOf(GgufBuilder().Version(3u << 24).Build(), ErrorCode::kUnsupported),
      HasSubstr("big-endian"));
}

TEST(ParseGguf, RefusesCountsBeyondTheFile) {
  for (const uint64_t count : {uint64_t{3}, uint64_t{1} << 61, UINT64_MAX}) {
    EXPECT_NE(ErrorOf(TwoTensors().ClaimTensors(count).Build()), "no error");
    EXPECT_NE(ErrorOf(TwoTensors().ClaimEntries(count).Build()), "no error");
  }
  EXPECT_THAT(ErrorOf(TwoTensors().ClaimTensors(UINT64_MAX).Build()),
              HasSubstr("tensors: expected at most"));
  EXPECT_THAT(ErrorOf(TwoTensors().ClaimEntries(UINT64_MAX).Build()),
              HasSubstr("metadata entries: expected at most"));
  ByteWriter value;
  value.Write<uint32_t>(testing::GgufTypeNumber<uint64_t>());
  value.Write<uint64_t>((uint64_t{1} << 61) + 1);  // times 8 overflows
  EXPECT_THAT(
      ErrorOf(
          GgufBuilder()
              .AddRaw("k", testing::kGgufArrayNumber, std::move(value).Take())
              .Build()),
      AllOf(HasSubstr("metadata key 'k'"), HasSubstr("expected at most 0")));
}

TEST(ParseGguf, RefusesDamagedMetadata) {
  EXPECT_THAT(ErrorOf(GgufBuilder().AddRaw("k", 13, "12345678").Build()),
              HasSubstr("metadata key 'k': value type: expected 0 to 12, "
                        "found 13"));
  EXPECT_THAT(ErrorOf(GgufBuilder()
                          .Add<uint8_t>("twice", 1)
                          .Add<uint8_t>("twice", 1)
                          .Build()),
              HasSubstr("metadata key 'twice': given twice"));
  // A string longer than the file.
  ByteWriter value;
  value.Write<uint64_t>(UINT64_MAX);
  EXPECT_THAT(
      ErrorOf(GgufBuilder().AddRaw("k", 8, std::move(value).Take()).Build()),
      AllOf(HasSubstr("metadata key 'k'"), HasSubstr("ends early")));
  ByteWriter nested;
  nested.Write<uint32_t>(testing::kGgufArrayNumber);
  nested.Write<uint64_t>(0);
  EXPECT_THAT(ErrorOf(GgufBuilder()
                          .AddRaw("k", testing::kGgufArrayNumber,
                                  std::move(nested).Take())
                          .Build(),
                      ErrorCode::kUnsupported),
              HasSubstr("metadata key 'k': arrays of arrays"));
}

std::string ShapeError(const std::vector<uint64_t>& dims, uint32_t type = 0) {
  return ErrorOf(GgufBuilder()
                     .Tensor({.name = "w",
                              .dims = dims,
                              .type = type,
                              .data = std::string(64, 'x')})
                     .Build());
}

TEST(ParseGguf, RefusesWrongShapes) {
  EXPECT_THAT(ShapeError({}),
              HasSubstr("tensor 'w': expected 1 to 4 dimensions, found 0"));
  EXPECT_THAT(ShapeError({1, 1, 1, 1, 1}), HasSubstr("dimensions, found 5"));
  EXPECT_THAT(ShapeError({4, 0}),
              HasSubstr("tensor 'w': shape: expected dimensions from 1 to "
                        "2^63 - 1, found [0,4]"));
  EXPECT_THAT(ShapeError({UINT64_MAX}), HasSubstr("dimensions from 1"));
  EXPECT_THAT(ShapeError({1ull << 32, 1ull << 32}), HasSubstr("overflows"));
  EXPECT_THAT(ShapeError({1ull << 62}), HasSubstr("overflows"));
  EXPECT_THAT(ShapeError({33, 2}, 2),
              HasSubstr("tensor 'w': shape [2,33]: expected rows of a multiple "
                        "of 32 elements for q4_0, found 33"));
}

TEST(ParseGguf, RefusesWrongOffsets) {
  const auto with_second_at = [](uint64_t offset) {
    return GgufBuilder()
        .Tensor({.name = "a", .dims = {16}, .data = std::string(64, 'a')})
        .Tensor({.name = "b",
                 .dims = {16},
                 .data = std::string(64, 'b'),
                 .offset = offset})
        .Build();
  };
  EXPECT_EQ(ErrorOf(with_second_at(64)), "no error");
  EXPECT_THAT(ErrorOf(with_second_at(32)),
              HasSubstr("tensor 'b': expected its data at byte 64 or later, "
                        "where tensor 'a' ends; found 32 (overlap)"));
  EXPECT_THAT(ErrorOf(with_second_at(0)), HasSubstr("overlap"));
  EXPECT_THAT(ErrorOf(with_second_at(65)),
              HasSubstr("tensor 'b': expected an offset that is a multiple of "
                        "32, found 65"));
  EXPECT_THAT(ErrorOf(with_second_at(96)),
              AllOf(HasSubstr("tensor 'b'"), HasSubstr("128 bytes"),
                    HasSubstr("found end 160")));
  EXPECT_THAT(ErrorOf(with_second_at(UINT64_MAX - 31)), HasSubstr("overflows"));
}

TEST(ParseGguf, RefusesARepeatedTensor) {
  EXPECT_THAT(ErrorOf(TwoTensors()
                          .Tensor({.name = "b", .dims = {1}, .data = "1234"})
                          .Build()),
              HasSubstr("tensor 'b': given twice"));
}

TEST(ParseGguf, HonoursTheAlignment) {
  for (const uint32_t alignment : {8u, 64u, 4096u}) {
    const std::string file = TwoTensors()
                                 .Add<uint32_t>("general.alignment", alignment)
                                 .Align(alignment)
                                 .Build();
    const auto parsed = ParseGguf(AsBytes(file));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(AsText(parsed->tensors[1].data), kEightFloats);
    EXPECT_EQ(AsText(parsed->tensors[0].data), std::string(18, 'q'));
  }
  for (const uint32_t alignment : {0u, 1u, 4u, 48u, 1u << 31}) {
    EXPECT_THAT(
        ErrorOf(
            TwoTensors().Add<uint32_t>("general.alignment", alignment).Build()),
        HasSubstr(fmt::format("'general.alignment': expected a power of two "
                              "from 8 to 2^30, found {}",
                              alignment)));
  }
  EXPECT_THAT(
      ErrorOf(TwoTensors().Add<std::string>("general.alignment", "8").Build()),
      HasSubstr("'general.alignment': expected a whole number >= 0, found "
                "string"));
}

}  // namespace
}  // namespace hexllm
