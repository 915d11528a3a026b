#include "quant/range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/encode.h"

namespace hexllm::quant {
namespace {

TEST(ActivationEncoding, HoldsTheWholeRangeAndZero) {
  for (const int bits : {8, 16}) {
    for (const Range range : {Range{-1, 3}, Range{2, 5}, Range{-7, -6}}) {
      const ir::Encoding encoding = ActivationEncoding(range, bits, false);
      const Range held = RangeOf(encoding);
      const float step = encoding.scales[0];
      EXPECT_LE(held.min, range.min + 0.51f * step);
      EXPECT_GE(held.max, range.max - 0.51f * step);
      EXPECT_EQ(ir::DecodeOne(encoding, ir::EncodeOne(encoding, 0)), 0);
    }
  }
}

TEST(ActivationEncoding, SymmetricHasTheMiddleCode) {
  const ir::Encoding encoding = ActivationEncoding({-2, 0.5f}, 8, true);
  EXPECT_EQ(encoding.dtype, DType::kU8);
  EXPECT_EQ(encoding.zero_points[0], 128);
  EXPECT_EQ(ir::EncodeOne(encoding, -2), 1);
  EXPECT_EQ(ir::EncodeOne(encoding, 2), 255);
}

TEST(ActivationEncoding, WidestRangeHasAFiniteScale) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const bool symmetric : {false, true}) {
    const ir::Encoding encoding =
        ActivationEncoding({-kMost, kMost}, 16, symmetric);
    EXPECT_TRUE(std::isfinite(encoding.scales[0]));
  }
}

TEST(ActivationEncoding, ChecksItsRange) {
  const auto exits = ::testing::ExitedWithCode(70);
  EXPECT_EXIT(ActivationEncoding({1, 0}, 16, false), exits, "");
  EXPECT_EXIT(ActivationEncoding({NAN, 0}, 16, false), exits, "");
  EXPECT_EXIT(ActivationEncoding({0, 1}, 4, false), exits, "");
}

TEST(ProbabilityEncoding, StepsAreAPowerOfTwo) {
  EXPECT_EQ(ProbabilityEncoding(16).scales[0], 1.0f / 65536);
  EXPECT_EQ(ProbabilityEncoding(8).scales[0], 1.0f / 256);
  EXPECT_EQ(RangeOf(ProbabilityEncoding(8)), (Range{0, 255.0f / 256}));
}

}  // namespace
}  // namespace hexllm::quant
