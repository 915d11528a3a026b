#include "backend/htp/qnn_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace hexllm::htp {
namespace {

using ::testing::HasSubstr;

TensorSpec Weight() {
  return {.name = "w",
          .use = TensorUse::kStatic,
          .dtype = DType::kI8,
          .shape = {1, 1, 64, 2},
          .encoding =
              TensorEncoding{.bits = 4, .axis = 3, .scales = {0.5F, 0.25F}}};
}

TEST(QnnTensorTest, NarrowCodesPerChannel) {
  const TensorSpec spec = Weight();
  ASSERT_TRUE(CheckTensorSpec(spec).ok());
  const TensorRecord record(spec);
  const abi::TensorV1& raw = record.raw().v1;
  EXPECT_EQ(raw.data_type, abi::DataType::kSfixed8);
  EXPECT_EQ(raw.quantization.encoding, abi::Encoding::kNarrowAxis);
  const abi::NarrowAxisScales& scales = raw.quantization.narrow_axis;
  EXPECT_EQ(scales.bits, 4U);
  EXPECT_EQ(scales.axis, 3);
  ASSERT_EQ(scales.count, 2U);
  EXPECT_EQ(scales.scales[1], 0.25F);
  EXPECT_EQ(scales.offsets[1], 0);
}

TEST(QnnTensorTest, Blocks) {
  TensorSpec spec = Weight();
  spec.encoding->block_scales = {1, 16, 3, 4};
  ASSERT_TRUE(CheckTensorSpec(spec).ok());
  const TensorRecord record(spec);
  const abi::Quantization& raw = record.raw().v1.quantization;
  ASSERT_EQ(raw.encoding, abi::Encoding::kBlockExpansion);
  EXPECT_EQ(raw.blocks->blocks, 2U);
  EXPECT_EQ(raw.blocks->factors[1], 16);
  EXPECT_EQ(raw.blocks->scales[0].scale, 0.5F);
}

TEST(QnnTensorTest, ZeroPointsBecomeOffsetsAndBack) {
  const TensorSpec spec{
      .name = "x",
      .use = TensorUse::kOutput,
      .dtype = DType::kU16,
      .shape = {3},
      .encoding = TensorEncoding{.scales = {0.5F}, .zero_points = {100}}};
  const TensorRecord record(spec);
  EXPECT_EQ(record.raw().v1.quantization.scale_offset.offset, -100);
  const auto read = ReadTensor(record.raw());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->bytes, 6U);
  EXPECT_EQ(read->spec.name, "x");
  EXPECT_EQ(read->spec.use, TensorUse::kOutput);
  EXPECT_EQ(read->spec.shape, spec.shape);
  EXPECT_EQ(read->spec.encoding, spec.encoding);
}

TEST(QnnTensorTest, PlainNumbersHaveNoEncoding) {
  const TensorRecord record({.name = "i",
                             .use = TensorUse::kInput,
                             .dtype = DType::kI32,
                             .shape = {2, 5}});
  EXPECT_EQ(record.raw().v1.data_type, abi::DataType::kInt32);
  EXPECT_EQ(record.raw().v1.quantization.definition, abi::kUndefined);
  EXPECT_FALSE(ReadTensor(record.raw())->spec.encoding.has_value());
}

TEST(QnnTensorTest, ABiasMayLeaveItsScaleToTheNode) {
  const TensorRecord record({.name = "b",
                             .use = TensorUse::kStatic,
                             .dtype = DType::kI32,
                             .shape = {8},
                             .encoding = TensorEncoding{}});
  EXPECT_EQ(record.raw().v1.data_type, abi::DataType::kSfixed32);
  EXPECT_EQ(record.raw().v1.quantization.definition, abi::kUndefined);
}

TEST(QnnTensorTest, RefusesWhatTheLibraryWouldMisread) {
  struct Case {
    std::string_view message;
    std::function<void(TensorSpec&)> change;
  };
  const Case cases[] = {
      {"not a name", [](TensorSpec& t) { t.name.clear(); }},
      {"not a name", [](TensorSpec& t) { t.name = std::string("a\0b", 3); }},
      {"no type for q4_0", [](TensorSpec& t) { t.dtype = DType::kQ4_0; }},
      {"dimension", [](TensorSpec& t) { t.shape[2] = 0; }},
      {"dimension", [](TensorSpec& t) { t.shape[2] = -4; }},
      {"4 GiB", [](TensorSpec& t) { t.shape[2] = int64_t{1} << 31; }},
      {"f16 has no codes", [](TensorSpec& t) { t.dtype = DType::kF16; }},
      {"4 bits in u8", [](TensorSpec& t) { t.dtype = DType::kU8; }},
      {"3 bits", [](TensorSpec& t) { t.encoding->bits = 3; }},
      {"scales along axis 2", [](TensorSpec& t) { t.encoding->axis = 2; }},
      {"scales along axis 7", [](TensorSpec& t) { t.encoding->axis = 7; }},
      {"leave its scale", [](TensorSpec& t) { t.encoding->scales.clear(); }},
      {"not positive", [](TensorSpec& t) { t.encoding->scales[1] = 0; }},
      {"not positive", [](TensorSpec& t) { t.encoding->scales[1] = NAN; }},
      {"symmetric",
       [](TensorSpec& t) {
         t.encoding->zero_points = {0, 1};
       }},
      {"1 zero points", [](TensorSpec& t) { t.encoding->zero_points = {0}; }},
      {"factor 0",
       [](TensorSpec& t) {
         t.encoding->block_scales = {1, 0};
       }},
      {"factor 17",
       [](TensorSpec& t) {
         t.encoding->block_scales = {17, 1};
       }},
      {"evenly",
       [](TensorSpec& t) {
         t.encoding->block_scales = {1, 2, 3};
       }},
  };
  for (const Case& test : cases) {
    TensorSpec spec = Weight();
    test.change(spec);
    const Status status = CheckTensorSpec(spec);
    ASSERT_FALSE(status.ok()) << test.message;
    EXPECT_EQ(status.error().code, ErrorCode::kUsage);
    EXPECT_THAT(status.error().message, HasSubstr(test.message));
  }
}

TEST(QnnTensorTest, ReadsNoTypeItDoesNotKnow) {
  TensorRecord record({.name = "i", .dtype = DType::kI32, .shape = {2}});
  record.raw().v1.data_type = abi::DataType::kString;
  EXPECT_EQ(ReadTensor(record.raw()).error().code, ErrorCode::kUnsupported);
  record.raw().v1.data_type = abi::DataType::kInt32;
  record.raw().v1.rank = 100;
  EXPECT_EQ(ReadTensor(record.raw()).error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace hexllm::htp
