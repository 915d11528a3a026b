// Rounding to encodings: every formula against numbers worked out by hand, and
// against ones that numpy gave.
#include "ir/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/constant.h"
#include "ir/pseudo_random.h"
#include "tests/support/ir_tensors.h"

namespace hexllm::ir {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<int32_t> Encoded(const Encoding& encoding,
                             const std::vector<float>& values) {
  std::vector<int32_t> codes;
  for (const float value : values) codes.push_back(EncodeOne(encoding, value));
  return codes;
}

std::vector<float> Rounded(const Encoding& encoding, const Shape& shape,
                           std::vector<float> values) {
  RoundToEncoding(encoding, shape, values);
  return values;
}

TEST(EncodeTest, RangesOfCodes) {
  struct Row {
    DType dtype;
    int32_t bits, least, most;
  };
  for (const Row& row :
       {Row{DType::kU8, 0, 0, 255}, Row{DType::kU16, 0, 0, 65535},
        Row{DType::kU16, 12, 0, 4095}, Row{DType::kI8, 0, -127, 127},
        Row{DType::kI8, 4, -7, 7}, Row{DType::kI8, 2, -1, 1},
        Row{DType::kI16, 0, -32767, 32767},
        Row{DType::kI32, 0, -2147483647, 2147483647}}) {
    const Encoding encoding{
        .dtype = row.dtype, .bits = row.bits, .scales = {1}};
    EXPECT_TRUE(HasCodes(encoding));
    EXPECT_EQ(CodesOf(encoding).least, row.least) << DTypeName(row.dtype);
    EXPECT_EQ(CodesOf(encoding).most, row.most) << DTypeName(row.dtype);
  }
  for (const DType dtype : {DType::kF16, DType::kQ4_1, DType::kQ8_0})
    EXPECT_FALSE(HasCodes({.dtype = dtype}));
}

TEST(EncodeTest, UnsignedCodesRoundHalfToEvenAndClamp) {
  const Encoding encoding{
      .dtype = DType::kU8, .scales = {0.5f}, .zero_points = {10}};
  EXPECT_EQ(Encoded(encoding, {0, 0.25f, 0.75f, -0.25f, -0.75f, 0.3f}),
            (std::vector<int32_t>{10, 10, 12, 10, 8, 11}));
  EXPECT_EQ(Encoded(encoding, {-5, -5.3f, -1e9f, 122.5f, 123, 1e9f}),
            (std::vector<int32_t>{0, 0, 0, 255, 255, 255}));
  EXPECT_EQ(Encoded(encoding, {kInf, -kInf, kNan}),
            (std::vector<int32_t>{255, 0, 10}));
  EXPECT_EQ(DecodeOne(encoding, 0), -5);
  EXPECT_EQ(DecodeOne(encoding, 255), 122.5f);
}

// -10 * 0.3f is -3.0000002 as 0.3f is a bit more than 0.3.
TEST(EncodeTest, ValuesAreProductsInFloat) {
  const Encoding encoding{
      .dtype = DType::kU16, .scales = {0.3f}, .zero_points = {10}};
  EXPECT_EQ(DecodeOne(encoding, 0), -10 * 0.3f);
  EXPECT_EQ(DecodeOne(encoding, 65535), 65525 * 0.3f);
  // x / scale overflows to infinity: the ends of the range.
  const Encoding small{.dtype = DType::kU16, .scales = {1e-30f}};
  EXPECT_EQ(Encoded(small, {1e20f, -1e20f}), (std::vector<int32_t>{65535, 0}));
}

TEST(EncodeTest, SignedCodesLeaveOutTheLowest) {
  const Encoding int4{.dtype = DType::kI8, .bits = 4, .scales = {0.25f}};
  EXPECT_EQ(Encoded(int4, {-9, -1.75f, -0.125f, 0.125f, 0.375f, 0.4f, 9}),
            (std::vector<int32_t>{-7, -7, 0, 0, 2, 2, 7}));
  const Encoding int8{.dtype = DType::kI8, .scales = {0.0101f}};
  EXPECT_EQ(Encoded(int8, {-2, 1, 0.51f, kNan}),
            (std::vector<int32_t>{-127, 99, 50, 0}));
}

TEST(EncodeTest, EveryCodeComesBack) {
  for (const float scale : {1.0f / 65535, 0.37f, 1e-9f, 123.0f}) {
    const Encoding encoding{
        .dtype = DType::kU16, .scales = {scale}, .zero_points = {31000}};
    for (int32_t code = 0; code <= 65535; ++code)
      ASSERT_EQ(EncodeOne(encoding, DecodeOne(encoding, code)), code) << scale;
  }
}

// Computed by numpy, in float32.
TEST(EncodeTest, NumpyActivations) {
  const std::vector<float> x = {9.5f,        -6.25f,       1e-6f,
                                0.34357253f, -1.20098186f, -2.08770609f};
  const Encoding u8{
      .dtype = DType::kU8, .scales = {0.0617647059f}, .zero_points = {101}};
  EXPECT_EQ(Encoded(u8, x), (std::vector<int32_t>{255, 0, 101, 107, 82, 67}));
  EXPECT_EQ(Rounded(u8, {6}, x),
            (std::vector<float>{9.51176453f, -6.23823547f, 0, 0.370588243f,
                                -1.17352939f, -2.0999999f}));
  const Encoding u16{.scales = {0.000240329595f}, .zero_points = {26006}};
  EXPECT_EQ(Encoded(u16, x),
            (std::vector<int32_t>{65535, 0, 26006, 27436, 21009, 17319}));
  EXPECT_EQ(Rounded(u16, {6}, x),
            (std::vector<float>{9.49998856f, -6.25001144f, 0, 0.343671322f,
                                -1.20092702f, -2.08774328f}));
}

// The border of two blocks of 32, with the factors 1 and 16.
TEST(EncodeTest, NumpyBlocks) {
  const Encoding lpbq{.dtype = DType::kI8,
                      .bits = 4,
                      .axis = 0,
                      .block = 4,
                      .scales = {0.00193842908f},
                      .block_scales = {1, 16}};
  const std::vector<float> w = {
      -9.50604808e-05f, -4.39613068e-05f, 4.32388515e-05f, 6.49784633e-05f,
      -0.0118528716f,   0.0905421898f,    0.11710342f,     0.143178448f};
  std::vector<int32_t> codes(8);
  EncodeRow(lpbq, 0, w, codes);
  EXPECT_EQ(codes, (std::vector<int32_t>{0, 0, 0, 0, 0, 3, 4, 5}));
  EXPECT_EQ(Rounded(lpbq, {1, 8}, w),
            (std::vector<float>{0, 0, 0, 0, 0, 0.0930445939f, 0.124059461f,
                                0.155074328f}));
}

TEST(EncodeTest, RowsOfChannels) {
  const Encoding channels{.dtype = DType::kI8, .axis = 0, .scales = {1, 0.5f}};
  std::vector<int32_t> codes(3);
  const std::vector<float> row = {1, -2.5f, 200};
  EncodeRow(channels, 0, row, codes);
  EXPECT_EQ(codes, (std::vector<int32_t>{1, -2, 127}));
  EncodeRow(channels, 1, row, codes);
  EXPECT_EQ(codes, (std::vector<int32_t>{2, -5, 127}));
  const Encoding tensor{.dtype = DType::kI16, .scales = {0.1f}};
  EncodeRow(tensor, 1, row, codes);
  EXPECT_EQ(codes, (std::vector<int32_t>{10, -25, 2000}));
}

// The order of stored rows has no say, and every code of every grid comes back.
TEST(EncodeTest, ChosenCodesAreWhatRowsGive) {
  const std::vector<std::byte> codes = {std::byte{1}, std::byte{0xF9},
                                        std::byte{0}, std::byte{7}};
  ConstantStore store;
  const ConstantId id =
      store.Add(MakeRandomConstant("w", {DType::kF32, {2, 2}}));
  Constant turned = store[id];
  turned.rows = {1, 0};
  const ConstantId copy = store.Add(turned);
  for (const ConstantId w : {id, copy}) {
    store.SetEncoding(
        w,
        {.dtype = DType::kI8, .bits = 4, .axis = 0, .scales = {0.1f, 0.0013f}});
    store.SetCodes(w, codes, nullptr);
    std::vector<float> values(2);
    std::vector<int32_t> found(2);
    ReadRow(store[w], 0, values);
    EXPECT_EQ(values, (std::vector<float>{0.1f, -7 * 0.1f}));
    EncodeRow(*store[w].encoding, 0, values, found);
    EXPECT_EQ(found, (std::vector<int32_t>{1, -7}));
    ReadRow(store[w], 1, values);
    EncodeRow(*store[w].encoding, 1, values, found);
    EXPECT_EQ(found, (std::vector<int32_t>{0, 7}));
  }
  store.SetEncoding(id, *store[id].encoding);
  EXPECT_TRUE(store[id].codes.empty());
}

// Channel 1, block 1: scale 3 * 0.5 = 1.5.
TEST(EncodeTest, BlocksScaleByTheirFactor) {
  const Encoding blocks{.dtype = DType::kI8,
                        .bits = 4,
                        .axis = 0,
                        .block = 2,
                        .scales = {1, 0.5f},
                        .block_scales = {1, 16, 2, 3}};
  const std::vector<float> row = {1, 2, 6, 40};
  std::vector<int32_t> codes(4);
  EncodeRow(blocks, 0, row, codes);
  EXPECT_EQ(codes, (std::vector<int32_t>{1, 2, 0, 2}));
  EncodeRow(blocks, 1, row, codes);
  EXPECT_EQ(codes, (std::vector<int32_t>{1, 2, 4, 7}));
  EXPECT_EQ(Rounded(blocks, {2, 4}, {1, 2, 6, 40, 1, 2, 6, 40}),
            (std::vector<float>{1, 2, 0, 32, 1, 2, 6, 10.5f}));
}

TEST(EncodeTest, RoundsAlongAnyAxis) {
  const Encoding first{.dtype = DType::kI8, .axis = 0, .scales = {1, 2}};
  EXPECT_EQ(Rounded(first, {2, 2}, {1.1f, 3, 1.1f, 3}),
            (std::vector<float>{1, 3, 2, 4}));
  const Encoding last{.dtype = DType::kI8, .axis = 1, .scales = {1, 2}};
  EXPECT_EQ(Rounded(last, {2, 2}, {1.1f, 3, 1.4f, 5.1f}),
            (std::vector<float>{1, 4, 1, 6}));
  const Encoding middle{.dtype = DType::kU8,
                        .axis = 1,
                        .scales = {1, 2},
                        .zero_points = {0, 128}};
  EXPECT_EQ(Rounded(middle, {2, 2, 1}, {-3, -3.1f, 1.4f, 500}),
            (std::vector<float>{0, -4, 1, 254}));
  EXPECT_EQ(Rounded(first, {2, 0}, {}), std::vector<float>());
}

TEST(EncodeTest, HalfPrecision) {
  const auto out = Rounded({.dtype = DType::kF16}, {5},
                           {1.0f / 3, 65519, 1e6f, 1e-9f, kNan});
  EXPECT_EQ(out[0], 0.33325195f);
  EXPECT_EQ(out[1], 65504);
  EXPECT_EQ(out[2], kInf);
  EXPECT_EQ(out[3], 0);
  EXPECT_TRUE(std::isnan(out[4]));
}

TEST(EncodeTest, RoundingTwiceIsRoundingOnce) {
  PseudoRandom random("twice");
  const std::vector<float> x =
      hexllm::testing::RandomF32({4, 64}, random).floats;
  for (const Encoding& encoding :
       {Encoding{.scales = {0.0003f}, .zero_points = {4000}},
        Encoding{
            .dtype = DType::kI8, .axis = 0, .scales = {.1f, .2f, .3f, .4f}},
        Encoding{.dtype = DType::kF16}, Encoding{.dtype = DType::kQ8_0}}) {
    const std::vector<float> once = Rounded(encoding, {4, 64}, x);
    EXPECT_NE(once, x);
    EXPECT_EQ(Rounded(encoding, {4, 64}, once), once)
        << DTypeName(encoding.dtype);
  }
}

TEST(EncodeTest, BiasesAreCodesOfTheAccumulator) {
  EXPECT_EQ(EncodeBias(1, 0.25), 4);
  EXPECT_EQ(EncodeBias(0.125f, 0.25), 0);
  EXPECT_EQ(EncodeBias(-0.375f, 0.25), -2);
  EXPECT_EQ(EncodeBias(3e9f, 1), INT32_MAX);
  EXPECT_EQ(EncodeBias(-kInf, 1), INT32_MIN);
  EXPECT_EQ(EncodeBias(kNan, 1), 0);
  // The quotient is taken in double: floats would lose the last digits.
  EXPECT_EQ(EncodeBias(1, 1.0 / 123456789), 123456789);
}

// The least codes of u16 that the HTP makes `made` of, in its simulator.
TEST(EncodeTest, ConversionsAreTheMeasuredOnes) {
  const Encoding from{.scales = {8.0f / 65535}, .zero_points = {32768}};
  struct Measured {
    float width;
    int32_t zero;
    int32_t made;
    int32_t code;
  };
  for (const Measured& row :
       {Measured{6.2f, 128, 16, 10358}, Measured{6.2f, 128, 112, 29479},
        Measured{6.2f, 128, 240, 54974}, Measured{8, 128, 128, 32638},
        Measured{4.4f, 105, 16, 20116}, Measured{4.4f, 105, 240, 51777}}) {
    const auto conversion = FindConversion(from, {.dtype = DType::kU8,
                                                  .scales = {row.width / 255},
                                                  .zero_points = {row.zero}});
    ASSERT_TRUE(conversion.has_value());
    EXPECT_EQ(ConvertCode(*conversion, row.code - 1), row.made - 1);
    EXPECT_EQ(ConvertCode(*conversion, row.code), row.made);
  }
}

TEST(EncodeTest, OtherConversionsAreUnknown) {
  const Encoding from{.scales = {1}};
  const Encoding to{.dtype = DType::kU8, .scales = {100}};
  EXPECT_TRUE(FindConversion(from, to).has_value());
  EXPECT_FALSE(FindConversion(to, from).has_value());
  EXPECT_FALSE(FindConversion(from, {.dtype = DType::kU8, .scales = {16}}));
  EXPECT_FALSE(FindConversion(from, {.dtype = DType::kU8, .scales = {1e9f}}));
  EXPECT_FALSE(FindConversion(from, {.dtype = DType::kF16}));
}

}  // namespace
}  // namespace hexllm::ir
