#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/safetensors_builder.h"

namespace hexllm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SafetensorsBuilder;
using testing::SafetensorsFromHeader;

const std::string kSixteen = "0123456789abcdef";

// The error for a file, which must be one line of the given kind.
std::string ErrorOf(const std::string& file,
                    ErrorCode code = ErrorCode::kBadInput) {
  const auto parsed = ParseSafetensors(AsBytes(file));
  if (parsed.ok()) return "no error";
  EXPECT_EQ(parsed.error().code, code);
  EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  return parsed.error().message;
}

std::string ErrorOfHeader(std::string_view header) {
  return ErrorOf(SafetensorsFromHeader(header, kSixteen));
}

TEST(ParseSafetensors, GivesSortedViewsAndMetadata) {
  const std::string file = SafetensorsBuilder()
                               .Metadata("format", "pt")
                               .Add("b", "F32", {2, 2}, kSixteen)
                               .Add("a", "U8", {3}, "xyz")
                               .Add("s", "I64", Json::array(), "12345678")
                               .Build();
  const auto parsed = ParseSafetensors(AsBytes(file));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->tensors.size(), 3u);
  const TensorView& a = parsed->tensors[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.dtype, DType::kU8);
  EXPECT_THAT(a.shape, ElementsAre(3));
  EXPECT_EQ(AsText(a.data), "xyz");
  const TensorView& b = parsed->tensors[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_THAT(b.shape, ElementsAre(2, 2));
  EXPECT_EQ(AsText(b.data), kSixteen);
  const TensorView& scalar = parsed->tensors[2];
  EXPECT_TRUE(scalar.shape.empty());
  EXPECT_EQ(AsText(scalar.data), "12345678");
  EXPECT_EQ(parsed->metadata.at("format"), "pt");
  // No copies: the views lie inside the file.
  EXPECT_GE(AsText(a.data).data(), file.data());
  EXPECT_LE(AsText(a.data).data() + 3, file.data() + file.size());
}

TEST(ParseSafetensors, KnowsAllElementTypes) {
  const std::pair<const char*, DType> types[] = {
      {"F64", DType::kF64},   {"F32", DType::kF32}, {"F16", DType::kF16},
      {"BF16", DType::kBF16}, {"I64", DType::kI64}, {"I32", DType::kI32},
      {"I16", DType::kI16},   {"I8", DType::kI8},   {"U64", DType::kU64},
      {"U32", DType::kU32},   {"U16", DType::kU16}, {"U8", DType::kU8},
      {"BOOL", DType::kBool},
  };
  for (const auto& [name, dtype] : types) {
    const std::string data(GetDTypeInfo(dtype).block_bytes, '\0');
    const std::string file =
        SafetensorsBuilder().Add("t", name, {1}, data).Build();
    const auto parsed = ParseSafetensors(AsBytes(file));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(parsed->tensors[0].dtype, dtype);
  }
}

TEST(ParseSafetensors, NamesTheTensorOfAnUnsupportedType) {
  for (const char* name :
       {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "C64", "WHAT"}) {
    EXPECT_THAT(ErrorOf(SafetensorsBuilder().Add("w", name, {1}, "x").Build(),
                        ErrorCode::kUnsupported),
                AllOf(HasSubstr("tensor 'w'"), HasSubstr(name)));
  }
}

TEST(ParseSafetensors, TakesAnEmptyFile) {
  const auto parsed = ParseSafetensors(AsBytes(SafetensorsBuilder().Build()));
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->tensors.empty());
}

TEST(ParseSafetensors, RefusesEveryTruncation) {
  const std::string file = SafetensorsBuilder()
                               .Add("a", "F32", {2, 2}, kSixteen)
                               .Add("b", "F32", {2, 2}, kSixteen)
                               .Build();
  ASSERT_TRUE(ParseSafetensors(AsBytes(file)).ok());
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(ErrorOf(file.substr(0, size)), "no error") << size;
  }
  EXPECT_THAT(ErrorOf(file.substr(0, 7)),
              HasSubstr("at least 8 bytes, found 7"));
  EXPECT_THAT(ErrorOf(file.substr(0, file.size() - 1)),
              AllOf(HasSubstr("tensor 'b'"), HasSubstr("31 bytes"),
                    HasSubstr("found end 32"), HasSubstr("truncated")));
}

TEST(ParseSafetensors, RefusesAHeaderBeyondTheFile) {
  for (const uint64_t length : {uint64_t{3}, uint64_t{1} << 40, UINT64_MAX}) {
    ByteWriter out;
    out.Write(length);
    out.WriteBytes(AsBytes("{}"));
    EXPECT_THAT(ErrorOf(std::move(out).Take()),
                AllOf(HasSubstr("header length: expected at most 2 bytes"),
                      HasSubstr(fmt::format("found {}", length))));
  }
}

TEST(ParseSafetensors, CapsTheHeader) {
  std::string header(kMaxSafetensorsHeader + 1, ' ');
  header[0] = '{';
  header[1] = '}';
  EXPECT_THAT(ErrorOf(SafetensorsFromHeader(header, "")),
              HasSubstr("expected at most 100000000 bytes"));
  header.pop_back();
  EXPECT_EQ(ErrorOf(SafetensorsFromHeader(header, "")), "no error");
}

TEST(ParseSafetensors, RefusesAHeaderThatIsNoObject) {
  EXPECT_THAT(ErrorOfHeader(""), HasSubstr("starts with '{'"));
  EXPECT_THAT(ErrorOfHeader(" {}"), HasSubstr("starts with '{'"));
  EXPECT_THAT(ErrorOfHeader("[]"), HasSubstr("starts with '{'"));
  EXPECT_THAT(ErrorOfHeader("{"), HasSubstr("header: malformed JSON"));
}

TEST(ParseSafetensors, RefusesAWrongEntry) {
  const std::string label = "tensor 'w': ";
  EXPECT_THAT(ErrorOfHeader(R"({"w":7})"),
              HasSubstr(label + "expected an object, found a whole number"));
  EXPECT_THAT(ErrorOfHeader(R"({"w":{}})"),
              HasSubstr(label + "'dtype': expected a string, found nothing"));
  EXPECT_THAT(
      ErrorOfHeader(R"({"w":{"dtype":"U8","data_offsets":[0,16]}})"),
      HasSubstr(label + "'shape': expected an array of sizes, found nothing"));
  EXPECT_THAT(ErrorOfHeader(R"({"w":{"dtype":"U8","shape":[16]}})"),
              HasSubstr(label + "'data_offsets': expected an array"));
  for (const char* offsets : {"[]", "[0]", "[0,1,2]", "[16,0]"}) {
    EXPECT_THAT(
        ErrorOfHeader(fmt::format(
            R"({{"w":{{"dtype":"U8","shape":[16],"data_offsets":{}}}}})",
            offsets)),
        HasSubstr(label + "'data_offsets': expected [begin, end]"));
  }
  for (const char* dim : {"-1", "1.0", "\"4\"", "null", "1e3", "true", "[4]",
                          "18446744073709551615", "9223372036854775808"}) {
    EXPECT_THAT(
        ErrorOfHeader(fmt::format(
            R"({{"w":{{"dtype":"U8","shape":[{}],"data_offsets":[0,16]}}}})",
            dim)),
        HasSubstr(label + "'shape': expected whole numbers"))
        << dim;
  }
}

TEST(ParseSafetensors, RefusesARepeatedName) {
  EXPECT_THAT(
      ErrorOfHeader(R"({"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},
                        "w":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})"),
      HasSubstr("'w' is given twice"));
}

TEST(ParseSafetensors, RefusesAZeroDimension) {
  EXPECT_THAT(
      ErrorOf(SafetensorsBuilder().Add("w", "F32", {4, 0}, "").Build()),
      AllOf(HasSubstr("tensor 'w'"), HasSubstr("at least 1, found [4,0]")));
}

TEST(ParseSafetensors, RefusesAnOverflowingSize) {
  // The product, and the product times the element size.
  EXPECT_THAT(ErrorOf(SafetensorsBuilder()
                          .Add("w", "U8", {1ll << 32, 1ll << 32}, "")
                          .Build()),
              AllOf(HasSubstr("tensor 'w'"), HasSubstr("fits 64 bits")));
  EXPECT_THAT(
      ErrorOf(SafetensorsBuilder().Add("w", "F64", {1ll << 62}, "").Build()),
      HasSubstr("fits 64 bits"));
}

TEST(ParseSafetensors, RefusesASizeThatDisagreesWithTheShape) {
  EXPECT_THAT(
      ErrorOf(SafetensorsBuilder().Add("w", "F32", {3}, kSixteen).Build()),
      HasSubstr("tensor 'w': 'data_offsets': expected 12 bytes for f32 [3], "
                "found 16"));
}

TEST(ParseSafetensors, RefusesOverlapsHolesAndARest) {
  const auto with_second_at = [](int begin) {
    SafetensorsBuilder builder;
    builder.Add("a", "U8", {8}, "aaaaaaaa").Add("b", "U8", {8}, "bbbbbbbb");
    builder.header()["b"]["data_offsets"] = {begin, begin + 8};
    builder.data() += "....";
    return builder.Build();
  };
  EXPECT_THAT(ErrorOf(with_second_at(7)),
              AllOf(HasSubstr("tensor 'b': expected its data to begin at byte "
                              "8, where tensor 'a' ends"),
                    HasSubstr("found 7 (overlap)")));
  EXPECT_THAT(ErrorOf(with_second_at(9)), HasSubstr("found 9 (hole)"));
  EXPECT_THAT(ErrorOf(with_second_at(8)),
              HasSubstr("data section: expected 16 bytes, where tensor 'b' "
                        "ends; found 20"));
  EXPECT_THAT(ErrorOf(with_second_at(0)), HasSubstr("overlap"));
}

TEST(ParseSafetensors, RefusesWrongMetadata) {
  EXPECT_THAT(ErrorOfHeader(R"({"__metadata__":[]})"),
              HasSubstr("'__metadata__': expected an object, found an array"));
  EXPECT_THAT(ErrorOfHeader(R"({"__metadata__":{"k":1}})"),
              HasSubstr("'__metadata__': 'k': expected a string"));
}

TEST(ParseSafetensors, EscapesNamesInMessages) {
  EXPECT_THAT(ErrorOf(SafetensorsBuilder().Add("a\nb", "X", {1}, "").Build(),
                      ErrorCode::kUnsupported),
              HasSubstr("tensor 'a\\x0ab'"));
}

std::string IndexError(std::string_view json) {
  const auto parsed = ParseSafetensorsIndex(json);
  if (parsed.ok()) return "no error";
  EXPECT_EQ(parsed.error().code, ErrorCode::kBadInput);
  return parsed.error().message;
}

TEST(ParseSafetensorsIndex, GivesTheMapAndTheShards) {
  const auto index = ParseSafetensorsIndex(
      R"({"metadata":{"total_size":1},
          "weight_map":{"x":"2.safetensors","y":"1.safetensors",
                        "z":"2.safetensors"}})");
  ASSERT_TRUE(index.ok());
  EXPECT_THAT(index->shards, ElementsAre("1.safetensors", "2.safetensors"));
  EXPECT_EQ(index->weight_map.at("z"), "2.safetensors");
}

TEST(ParseSafetensorsIndex, RefusesDamage) {
  EXPECT_THAT(IndexError("{"), HasSubstr("malformed JSON"));
  EXPECT_THAT(IndexError("[]"),
              HasSubstr("'weight_map': expected an object, found nothing"));
  EXPECT_THAT(IndexError(R"({"weight_map":[]})"), HasSubstr("found an array"));
  EXPECT_THAT(IndexError(R"({"weight_map":{"w":1}})"),
              HasSubstr("tensor 'w': expected a shard's name"));
}

TEST(ParseSafetensorsIndex, RefusesPathsAsShards) {
  for (const char* name :
       {"../x", "/etc/passwd", "a/b", "..", ".", "", "a\\\\b", "a\\u0000b"}) {
    EXPECT_THAT(
        IndexError(fmt::format(R"({{"weight_map":{{"w":"{}"}}}})", name)),
        HasSubstr("tensor 'w': expected a plain file name"))
        << name;
  }
}

}  // namespace
}  // namespace hexllm
