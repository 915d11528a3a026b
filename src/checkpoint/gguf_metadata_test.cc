#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "checkpoint/gguf.h"
#include "tests/support/gguf_builder.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using testing::GgufBuilder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GgufMetadataTest : public ::testing::Test {
 protected:
  GgufMetadataTest()
      : file_(GgufBuilder()
                  .Add<uint8_t>("u8", 255)
                  .Add<int8_t>("i8", -128)
                  .Add<uint16_t>("u16", 65535)
                  .Add<int16_t>("i16", 32767)
                  .Add<uint32_t>("u32", 4294967295)
                  .Add<int32_t>("i32", -7)
                  .Add<uint64_t>("u64", UINT64_MAX)
                  .Add<int64_t>("i64", INT64_MIN)
                  .Add<float>("f32", 1e-5f)
                  .Add<double>("f64", 0.1)
                  .Add<bool>("yes", true)
                  .Add<bool>("no", false)
                  .Add<std::string>("text", "h\xc3\xa9")
                  .AddArray<std::string>("strings", {"a", "", "ccc"})
                  .AddArray<int32_t>("i32s", {-1, 2, INT32_MAX})
                  .AddArray<uint8_t>("u8s", {0, 255})
                  .AddArray<uint64_t>("u64s", {1, UINT64_MAX})
                  .AddArray<float>("f32s", {0.5f, -2.0f})
                  .AddArray<double>("f64s", {0.25})
                  .AddArray<bool>("bools", {true, false})
                  .AddArray<uint16_t>("none", {})
                  .Build()),
        metadata_(ParseGguf(AsBytes(file_)).value().metadata) {}

  std::string file_;
  GgufMetadata metadata_;
};

template <typename T>
void ExpectMismatch(const Result<T>& result, const std::string& message) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(result.error().message, "metadata key " + message);
}

TEST_F(GgufMetadataTest, ReadsIntegersOfAllWidths) {
  EXPECT_EQ(*metadata_.GetUint("u8"), 255u);
  EXPECT_EQ(*metadata_.GetUint("u16"), 65535u);
  EXPECT_EQ(*metadata_.GetUint("i16"), 32767u);
  EXPECT_EQ(*metadata_.GetUint("u32"), 4294967295u);
  EXPECT_EQ(*metadata_.GetUint("u64"), UINT64_MAX);
  ExpectMismatch(metadata_.GetUint("i32"),
                 "'i32': expected a whole number >= 0, found i32 -7");
  ExpectMismatch(metadata_.GetUint("f32"),
                 "'f32': expected a whole number >= 0, found f32");
  ExpectMismatch(metadata_.GetUint("yes"),
                 "'yes': expected a whole number >= 0, found bool");
  ExpectMismatch(metadata_.GetUint("i32s"),
                 "'i32s': expected a whole number >= 0, found array of i32");
}

TEST_F(GgufMetadataTest, ReadsOtherScalars) {
  EXPECT_EQ(*metadata_.GetFloat("f32"), static_cast<double>(1e-5f));
  EXPECT_EQ(*metadata_.GetFloat("f64"), 0.1);
  EXPECT_EQ(*metadata_.GetBool("yes"), true);
  EXPECT_EQ(*metadata_.GetBool("no"), false);
  EXPECT_EQ(*metadata_.GetString("text"), "h\xc3\xa9");
  ExpectMismatch(metadata_.GetFloat("u32"),
                 "'u32': expected f32 or f64, found u32 4294967295");
  ExpectMismatch(metadata_.GetBool("u8"), "'u8': expected bool, found u8 255");
  ExpectMismatch(metadata_.GetString("strings"),
                 "'strings': expected string, found array of string");
}

TEST_F(GgufMetadataTest, ReadsArrays) {
  EXPECT_THAT(*metadata_.GetStringArray("strings"),
              ElementsAre("a", "", "ccc"));
  EXPECT_THAT(*metadata_.GetIntArray("i32s"), ElementsAre(-1, 2, INT32_MAX));
  EXPECT_THAT(*metadata_.GetIntArray("u8s"), ElementsAre(0, 255));
  EXPECT_THAT(*metadata_.GetIntArray("none"), IsEmpty());
  EXPECT_THAT(*metadata_.GetFloatArray("f32s"), ElementsAre(0.5f, -2.0f));
  EXPECT_THAT(*metadata_.GetFloatArray("f64s"), ElementsAre(0.25f));
  ExpectMismatch(metadata_.GetIntArray("u64s"),
                 "'u64s': expected array of whole numbers below 2^63, found "
                 "array of u64");
  ExpectMismatch(metadata_.GetIntArray("bools"),
                 "'bools': expected array of whole numbers below 2^63, found "
                 "array of bool");
  ExpectMismatch(metadata_.GetFloatArray("i32s"),
                 "'i32s': expected array of f32 or f64, found array of i32");
  ExpectMismatch(metadata_.GetStringArray("text"),
                 "'text': expected array of string, found string");
}

TEST_F(GgufMetadataTest, TellsMissingFromWrong) {
  ExpectMismatch(metadata_.GetUint("gone"),
                 "'gone': expected a whole number >= 0, found nothing");
  ExpectMismatch(metadata_.GetStringArray("gone"),
                 "'gone': expected array of string, found nothing");
  EXPECT_EQ(*metadata_.FindUint("gone"), std::nullopt);
  EXPECT_EQ(*metadata_.FindFloat("gone"), std::nullopt);
  EXPECT_EQ(*metadata_.FindBool("gone"), std::nullopt);
  EXPECT_EQ(*metadata_.FindString("gone"), std::nullopt);
  EXPECT_EQ(*metadata_.FindStringArray("gone"), std::nullopt);
  EXPECT_EQ(*metadata_.FindIntArray("gone"), std::nullopt);
  EXPECT_EQ(*metadata_.FindFloatArray("gone"), std::nullopt);
  EXPECT_EQ(*metadata_.FindUint("u8"), std::optional<uint64_t>(255));
  EXPECT_FALSE(metadata_.FindUint("text").ok());
  EXPECT_FALSE(metadata_.FindFloat("text").ok());
  EXPECT_FALSE(metadata_.FindBool("text").ok());
  EXPECT_FALSE(metadata_.FindString("u8").ok());
  EXPECT_FALSE(metadata_.FindStringArray("u8").ok());
  EXPECT_FALSE(metadata_.FindIntArray("u8").ok());
  EXPECT_FALSE(metadata_.FindFloatArray("u8").ok());
  EXPECT_TRUE(metadata_.Has("u8"));
  EXPECT_FALSE(metadata_.Has("gone"));
}

TEST_F(GgufMetadataTest, IteratesInFileOrder) {
  ASSERT_EQ(metadata_.entries().size(), 21u);
  EXPECT_EQ(metadata_.entries().front().key, "u8");
  EXPECT_EQ(metadata_.entries().back().key, "none");
  const GgufEntry* entry = metadata_.FindEntry("bools");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->type, GgufType::kArray);
  const auto& array = std::get<GgufArray>(entry->value);
  EXPECT_EQ(array.count, 2u);
  EXPECT_EQ(GgufElement(array, 0), GgufScalar(true));
  EXPECT_EQ(GgufElement(array, 1), GgufScalar(false));
  EXPECT_EXIT((void)GgufElement(array, 2), ::testing::ExitedWithCode(70), "");
}

TEST_F(GgufMetadataTest, StaysValidWhenMoved) {
  const GgufMetadata moved = std::move(metadata_);
  EXPECT_EQ(*moved.GetString("text"), "h\xc3\xa9");
  EXPECT_EQ(*moved.GetUint("u8"), 255u);
}

}  // namespace
}  // namespace hexllm
