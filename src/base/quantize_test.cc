#include "base/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/dequantize.h"
#include "base/half.h"

namespace hexllm {
namespace {

constexpr DType kTypes[] = {DType::kQ4_1, DType::kQ8_0};

std::vector<std::byte> Quantize(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> out(values.size() / 32 *
                             GetDTypeInfo(dtype).block_bytes);
  QuantizeRow(dtype, values, out);
  return out;
}

std::vector<float> Dequantize(DType dtype, const std::vector<std::byte>& bytes,
                              size_t count) {
  std::vector<float> out(count);
  DequantizeRow(dtype, bytes, out);
  return out;
}

std::vector<float> Normal(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.01f, 0.05f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double SquaredError(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += error * error;
  }
  return sum;
}

float HalfAt(const std::vector<std::byte>& bytes, size_t offset) {
  uint16_t bits;
  std::memcpy(&bits, bytes.data() + offset, sizeof(bits));
  return F16ToF32(bits);
}

TEST(QuantizeRow, Q8_0RoundsWithTheStoredScale) {
  std::vector<float> values(32, 0.0f);
  values[0] = 1.27f;
  values[1] = -0.4f;
  const auto bytes = Quantize(DType::kQ8_0, values);
  const float d = F16ToF32(F32ToF16(1.27f / 127));
  EXPECT_EQ(HalfAt(bytes, 0), d);
  EXPECT_EQ(static_cast<int8_t>(bytes[2]), std::lrint(1.27f / d));
  EXPECT_EQ(static_cast<int8_t>(bytes[3]), std::lrint(-0.4f / d));
  EXPECT_EQ(static_cast<int8_t>(bytes[4]), 0);
}

TEST(QuantizeRow, ErrorsAreAtMostHalfAStep) {
  const auto values = Normal(32 * 50, 1);
  const auto bytes = Quantize(DType::kQ8_0, values);
  const auto back = Dequantize(DType::kQ8_0, bytes, values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    // The greatest magnitude may lose what rounding d to half precision took.
    const float d = HalfAt(bytes, i / 32 * 34);
    EXPECT_LE(std::abs(values[i] - back[i]), d * 0.57f) << i;
  }
}

// What blocks hold already stays as it is: stored models do not change.
TEST(QuantizeRow, ValuesOfFullBlocksComeBackExactly) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::byte> q8(34), q4(20);
    const uint16_t d =
        F32ToF16(std::uniform_real_distribution<float>(1e-3f, 2.0f)(random));
    const uint16_t m =
        F32ToF16(std::uniform_real_distribution<float>(-8.0f, 8.0f)(random));
    for (std::byte& byte : q8) byte = static_cast<std::byte>(random() % 255);
    for (size_t i = 2; i < q8.size(); ++i)
      if (q8[i] == std::byte{0x80}) q8[i] = std::byte{0};
    q8[7] = std::byte{127};
    for (std::byte& byte : q4) byte = static_cast<std::byte>(random() % 256);
    q4[9] = std::byte{0xf0};  // both ends of the grid
    std::memcpy(q8.data(), &d, 2);
    std::memcpy(q4.data(), &d, 2);
    std::memcpy(q4.data() + 2, &m, 2);

    EXPECT_EQ(Quantize(DType::kQ8_0, Dequantize(DType::kQ8_0, q8, 32)), q8);
    const auto values = Dequantize(DType::kQ4_1, q4, 32);
    EXPECT_EQ(Quantize(DType::kQ4_1, values), q4);
  }
}

// q4_1 with d and m from the extremes alone.
std::vector<float> RoundByExtremes(std::span<const float> x) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const float d = F16ToF32(F32ToF16((*high - *low) / 15));
  const float m = F16ToF32(F32ToF16(*low));
  std::vector<float> out;
  for (const float value : x)
    out.push_back(d * std::clamp(std::nearbyint((value - m) / d), 0.0f, 15.0f) +
                  m);
  return out;
}

TEST(QuantizeRow, Q4_1IsNeverWorseThanTheExtremesAndBetterOnTheWhole) {
  const auto values = Normal(32 * 400, 3);
  const auto back =
      Dequantize(DType::kQ4_1, Quantize(DType::kQ4_1, values), values.size());
  double searched = 0;
  double plain = 0;
  for (size_t at = 0; at < values.size(); at += 32) {
    const auto x = std::span(values).subspan(at, 32);
    const double error = SquaredError(x, std::span(back).subspan(at, 32));
    const double by_extremes = SquaredError(x, RoundByExtremes(x));
    EXPECT_LE(error, by_extremes * 1.0001) << at;
    searched += error;
    plain += by_extremes;
  }
  EXPECT_LT(searched, 0.9 * plain);
}

TEST(QuantizeRow, ConstantBlocksAreExact) {
  for (const DType dtype : kTypes) {
    for (const float value : {0.0f, 0.5f, -2.0f}) {
      if (dtype == DType::kQ8_0 && value != 0) continue;  // needs 127 * d
      const std::vector<float> values(64, value);
      EXPECT_EQ(Dequantize(dtype, Quantize(dtype, values), 64), values);
    }
  }
}

TEST(QuantizeRow, ExtremeFiniteValuesStayFinite) {
  const float most = std::numeric_limits<float>::max();
  for (const DType dtype : kTypes) {
    for (const float magnitude : {most, 1e-30f, 7e4f}) {
      std::vector<float> values(32, magnitude);
      values[3] = -magnitude;
      for (const float value : Dequantize(dtype, Quantize(dtype, values), 32))
        EXPECT_TRUE(std::isfinite(value)) << DTypeName(dtype) << magnitude;
    }
  }
}

TEST(QuantizeRow, ChecksSizesAndType) {
  const std::vector<float> values(32);
  std::vector<std::byte> out(34);
  const auto exits = ::testing::ExitedWithCode(70);
  EXPECT_EXIT(QuantizeRow(DType::kQ4_0, values, out), exits, "");
  EXPECT_EXIT(QuantizeRow(DType::kQ4_1, values, out), exits, "");
  EXPECT_EXIT(QuantizeRow(DType::kQ8_0, std::span(values).first(31), out),
              exits, "");
}

}  // namespace
}  // namespace hexllm
