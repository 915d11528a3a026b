#include "runtime/mask.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "tests/support/io_spec.h"

namespace hexllm {
namespace {

struct MaskCase {
  uint32_t step_tokens;
  uint32_t context;
  uint32_t window;
};

artifact::IoSpec Spec(const MaskCase& c, DType dtype) {
  return testing::MakeMaskIo(0, dtype, {c.step_tokens, c.context});
}

// Rows of 'x' and '.', one for each token.
std::vector<std::string> Draw(const MaskCase& c, MaskStep step) {
  std::vector<std::byte> out(size_t{c.step_tokens} * c.context);
  MaskWriter(Spec(c, DType::kU8), c.window, out).Write(step);
  std::vector<std::string> rows;
  for (uint32_t t = 0; t < c.step_tokens; ++t)
    rows.emplace_back(AsText(out).substr(t * c.context, c.context));
  return rows;
}

using Rows = std::vector<std::string>;

TEST(Mask, PaddedBlock) {
  EXPECT_EQ(Draw({4, 8, 0}, {.past_tokens = 2, .first_row = 1}),
            (Rows{"....x...",  //
                  "xx...x..",  //
                  "xx...xx.",  //
                  "xx...xxx"}));
  EXPECT_EQ(Draw({3, 5, 2}, {.past_tokens = 1, .first_row = 2}),
            (Rows{"..x..",  //
                  "...x.",  //
                  "x...x"}));
}

TEST(Mask, WindowCountsPositions) {
  EXPECT_EQ(Draw({4, 8, 3}, {.past_tokens = 2, .first_row = 1}),
            (Rows{"....x...",  //
                  "xx...x..",  //
                  ".x...xx.",  //
                  ".....xxx"}));
  EXPECT_EQ(Draw({2, 5, 1}, {.past_tokens = 3, .first_row = 0}),
            (Rows{"...x.", "....x"}));
}

// The header's tree, and what a window of 2 leaves of it; the past
// right-aligned.
TEST(Mask, Trees) {
  const std::vector<uint32_t> parents = {kNoParent, 0, 0, 1};
  EXPECT_EQ(Draw({4, 8, 0}, {.past_tokens = 2, .parents = parents}),
            (Rows{"xx..x...",  //
                  "xx..xx..",  //
                  "xx..x.x.",  //
                  "xx..xx.x"}));
  EXPECT_EQ(Draw({4, 8, 2},
                 {.past_tokens = 2, .first_column = 2, .parents = parents}),
            (Rows{"...xx...",  //
                  "....xx..",  //
                  "....x.x.",  //
                  ".....x.x"}));
}

TEST(Mask, WholeContextInOneStep) {
  EXPECT_EQ(Draw({3, 3, 0}, {}), (Rows{"x..", "xx.", "xxx"}));
}

TEST(Mask, EveryElementSize) {
  for (const DType dtype :
       {DType::kU8, DType::kI16, DType::kF16, DType::kF32, DType::kI64}) {
    const size_t size = GetDTypeInfo(dtype).block_bytes;
    const MaskCase c{2, 4, 0};
    artifact::IoSpec spec = Spec(c, dtype);
    spec.mask_visible = size == 1 ? 0x11 : 0x1122;
    spec.mask_hidden = size == 8 ? 0x8877665544332211 : 0x33;
    std::vector<std::byte> out(8 * size);
    MaskWriter(spec, 0, out).Write({.past_tokens = 1, .first_row = 0});
    const std::string expected = "x.x.x.xx";
    for (size_t i = 0; i < expected.size(); ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, out.data() + i * size, size);
      EXPECT_EQ(bits, expected[i] == 'x' ? spec.mask_visible : spec.mask_hidden)
          << DTypeName(dtype) << " element " << i;
    }
  }
}

// Going on from the last mask gives what a fresh writer gives, for every
// window, and touches two elements at most; with the past's first column where
// it was, or moving.
TEST(Mask, AdvancingEqualsStartingAfresh) {
  for (const bool moves : {false, true})
    for (const uint32_t window : {0U, 1U, 2U, 3U, 8U, 9U, 10U, 4000000000U}) {
      const MaskCase c{1, 9, window};
      std::vector<std::byte> out(c.context);
      MaskWriter writer(Spec(c, DType::kU8), window, out);
      const std::vector<uint32_t> pasts = {0, 1, 2, 3, 4, 5, 6, 7, 8,
                                           3, 3, 4, 5, 0, 1, 7, 8};
      for (size_t i = 0; i < pasts.size(); ++i) {
        const std::vector<std::byte> before = out;
        const MaskStep step{.past_tokens = pasts[i],
                            .first_column = moves ? 8 - pasts[i] : 0};
        writer.Write(step);
        EXPECT_EQ(AsText(out), Draw(c, step)[0])
            << "window " << window << " past " << pasts[i];
        if (i == 0 || pasts[i] != pasts[i - 1] + 1) continue;
        int touched = 0;
        for (size_t b = 0; b < out.size(); ++b) touched += out[b] != before[b];
        EXPECT_LE(touched, 2);
      }
    }
}

}  // namespace
}  // namespace hexllm
