#include "base/nibbles.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace hexllm {
namespace {

TEST(Nibbles, EvenElementsAreLow) {
  const std::vector<int32_t> codes = {-7, 2, 5, -1};
  std::vector<std::byte> packed(2);
  PackNibbles(codes, packed);
  EXPECT_EQ(packed[0], std::byte{0x29});
  EXPECT_EQ(packed[1], std::byte{0xf5});
}

TEST(Nibbles, EveryPairComesBack) {
  for (int32_t low = -8; low < 8; ++low) {
    for (int32_t high = -8; high < 8; ++high) {
      const std::vector<int32_t> codes = {low, high};
      std::vector<std::byte> packed(1);
      PackNibbles(codes, packed);
      std::vector<int32_t> back(2);
      UnpackNibbles(packed, back);
      EXPECT_EQ(back, codes);
    }
  }
}

TEST(Nibbles, ChecksSizes) {
  const std::vector<int32_t> codes(3);
  std::vector<std::byte> packed(1);
  EXPECT_EXIT(PackNibbles(codes, packed), ::testing::ExitedWithCode(70), "");
}

}  // namespace
}  // namespace hexllm
