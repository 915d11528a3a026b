#include "runtime/io_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/io_spec.h"

namespace hexllm {
namespace {

using artifact::IoEncoding;
using artifact::IoSpec;

IoSpec Spec(DType dtype, std::optional<IoEncoding> encoding = {}) {
  return testing::MakeIo({RoleKind::kLogits}, dtype, {}, encoding);
}

// Encodes and decodes again.
std::vector<float> RoundTrip(const IoSpec& spec,
                             const std::vector<float>& values) {
  std::vector<std::byte> codes(values.size() * ElementBytes(spec.dtype));
  EncodeFloats(values, spec, codes);
  std::vector<float> out(values.size());
  DecodeFloats(codes, spec, out);
  return out;
}

TEST(IoCodec, FloatTypes) {
  const std::vector<float> values = {0, -1.5f, 1024};
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    EXPECT_EQ(RoundTrip(Spec(dtype), values), values);
  EXPECT_EQ(RoundTrip(Spec(DType::kF16), {1.0f / 3}),
            (std::vector<float>{0.333251953125f}));
}

TEST(IoCodec, CodesRoundToNearestEvenAndClamp) {
  const IoSpec spec = Spec(DType::kU8, IoEncoding{0.5f, 4});
  EXPECT_EQ(RoundTrip(spec, {0, 0.5f, 0.75f, 0.25f, -2, -9, 1000}),
            (std::vector<float>{0, 0.5f, 1, 0, -2, -2, 125.5f}));
}

TEST(IoCodec, SignedAndWideCodes) {
  const IoEncoding encoding{.scale = 0.25f, .zero_point = -3};
  for (const DType dtype : {DType::kI8, DType::kI16}) {
    EXPECT_EQ(RoundTrip(Spec(dtype, encoding), {1, -2.5f}),
              (std::vector<float>{1, -2.5f}));
  }
  const IoSpec wide = Spec(DType::kU16, IoEncoding{1, 0});
  EXPECT_EQ(RoundTrip(wide, {65535, 70000, -1}),
            (std::vector<float>{65535, 65535, 0}));
}

TEST(IoCodec, NotANumberBecomesTheLowestCode) {
  const IoSpec spec = Spec(DType::kU8, IoEncoding{1, 0});
  EXPECT_EQ(RoundTrip(spec, {std::numeric_limits<float>::quiet_NaN()}),
            (std::vector<float>{0}));
}

TEST(IoCodec, SameStorageComparesTheForm) {
  IoSpec a = Spec(DType::kU8, IoEncoding{});
  a.shape = {2};
  IoSpec b = a;
  EXPECT_TRUE(SameStorage(a, b));
  b.encoding->scale = 2;
  EXPECT_FALSE(SameStorage(a, b));
  b = a;
  b.shape = {3};
  EXPECT_FALSE(SameStorage(a, b));
  b = a;
  b.dtype = DType::kI8;
  EXPECT_FALSE(SameStorage(a, b));
}

}  // namespace
}  // namespace hexllm
