#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace hexllm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The value of an f16 from its definition; `bits` is no NaN.
double ValueOfF16(uint32_t bits) {
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  const int exponent = static_cast<int>((bits >> 10) & 0x1f);
  const double mantissa = bits & 0x3ffu;
  if (exponent == 31) return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

bool IsNanF16(uint32_t bits) { return (bits & 0x7fffu) > 0x7c00u; }
bool IsNanBF16(uint32_t bits) { return (bits & 0x7fffu) > 0x7f80u; }

uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }

TEST(F16, WidensAllValuesExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = F16ToF32(static_cast<uint16_t>(bits));
    if (IsNanF16(bits)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(BitsOf(value), BitsOf(static_cast<float>(ValueOfF16(bits))))
          << bits;
    }
  }
}

TEST(F16, RoundTripsAllValues) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t back = F32ToF16(F16ToF32(static_cast<uint16_t>(bits)));
    if (IsNanF16(bits)) {
      ASSERT_TRUE(IsNanF16(back)) << bits;
      ASSERT_EQ(back & 0x8000u, bits & 0x8000u) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

// Between each pair of neighbours: just below the midpoint goes down, just
// above goes up, the midpoint itself to the even one. Infinity counts as the
// neighbour of the largest value, as in IEEE 754.
TEST(F16, RoundsToNearestEven) {
  for (uint32_t low = 0; low < 0x7c00; ++low) {
    const double a = ValueOfF16(low);
    const double b = low == 0x7bff ? 65536.0 : ValueOfF16(low + 1);
    const auto middle = static_cast<float>((a + b) / 2);
    const uint32_t even = low % 2 == 0 ? low : low + 1;
    for (const uint32_t sign : {0u, 0x8000u}) {
      const float m = sign == 0 ? middle : -middle;
      ASSERT_EQ(F32ToF16(m), sign | even) << low;
      ASSERT_EQ(F32ToF16(std::nextafter(m, 0.0f)), sign | low) << low;
      ASSERT_EQ(F32ToF16(std::nextafter(m, sign == 0 ? kInf : -kInf)),
                sign | (low + 1))
          << low;
    }
  }
}

TEST(F16, HandlesTheEnds) {
  EXPECT_EQ(F32ToF16(65519.9961f), 0x7bff);
  EXPECT_EQ(F32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(F32ToF16(1e30f), 0x7c00);
  EXPECT_EQ(F32ToF16(-kInf), 0xfc00);
  EXPECT_EQ(F32ToF16(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(F32ToF16(-std::numeric_limits<float>::denorm_min()), 0x8000);
  // A NaN whose payload lies in the bits that are dropped stays a NaN.
  EXPECT_TRUE(IsNanF16(F32ToF16(std::bit_cast<float>(0x7f800001u))));
}

TEST(BF16, WidensAndRoundTripsAllValues) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = BF16ToF32(static_cast<uint16_t>(bits));
    ASSERT_EQ(BitsOf(value), bits << 16);
    const uint16_t back = F32ToBF16(value);
    if (IsNanBF16(bits)) {
      ASSERT_TRUE(IsNanBF16(back)) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

TEST(BF16, RoundsToNearestEven) {
  for (uint32_t low = 0; low < 0x7f80; ++low) {
    const uint32_t middle = (low << 16) | 0x8000u;
    const uint32_t even = low % 2 == 0 ? low : low + 1;
    for (const uint32_t sign : {0u, 0x8000u}) {
      const auto narrow = [sign](uint32_t magnitude) -> uint32_t {
        return F32ToBF16(std::bit_cast<float>((sign << 16) | magnitude));
      };
      ASSERT_EQ(narrow(middle), sign | even) << low;
      ASSERT_EQ(narrow(middle - 1), sign | low) << low;
      ASSERT_EQ(narrow(middle + 1), sign | (low + 1)) << low;
    }
  }
}

TEST(BF16, KeepsNan) {
  EXPECT_TRUE(IsNanBF16(F32ToBF16(std::bit_cast<float>(0x7f800001u))));
  EXPECT_TRUE(IsNanBF16(F32ToBF16(std::bit_cast<float>(0xffffffffu))));
  EXPECT_EQ(F32ToBF16(kInf), 0x7f80);
}

}  // namespace
}  // namespace hexllm
