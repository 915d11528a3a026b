#include "backend/cpu/lower_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hexllm::cpu {
namespace {

constexpr uint64_t kAlign = 64;

bool Overlap(const BufferLife& a, uint64_t a_at, const BufferLife& b,
             uint64_t b_at) {
  const bool in_time = a.first <= b.last && b.first <= a.last;
  const bool in_space = a_at < b_at + b.bytes && b_at < a_at + a.bytes;
  return in_time && in_space;
}

TEST(PlanArena, NothingNeedsNothing) {
  const ArenaLayout layout = PlanArena({}, kAlign);
  EXPECT_EQ(layout.bytes, 0u);
  EXPECT_TRUE(layout.offsets.empty());
}

TEST(PlanArena, BuffersThatFollowEachOtherShareMemory) {
  const std::vector<BufferLife> lives = {
      {.bytes = 256, .first = 0, .last = 1},
      {.bytes = 256, .first = 2, .last = 3},
      {.bytes = 128, .first = 0, .last = 3},
  };
  const ArenaLayout layout = PlanArena(lives, kAlign);
  EXPECT_EQ(layout.offsets, (std::vector<uint64_t>{0, 0, 256}));
  EXPECT_EQ(layout.bytes, 384u);
}

// The last reader of one buffer may write another: both are alive then.
TEST(PlanArena, ReaderAndWriterOfOneInstructionAreApart) {
  const std::vector<BufferLife> lives = {
      {.bytes = 64, .first = 0, .last = 1},
      {.bytes = 64, .first = 1, .last = 2},
  };
  EXPECT_EQ(PlanArena(lives, kAlign).bytes, 128u);
}

TEST(PlanArena, OffsetsAreAlignedForOddSizes) {
  const std::vector<BufferLife> lives = {
      {.bytes = 100, .first = 0, .last = 1},
      {.bytes = 4, .first = 0, .last = 1},
  };
  const ArenaLayout layout = PlanArena(lives, kAlign);
  EXPECT_EQ(layout.offsets, (std::vector<uint64_t>{0, 128}));
  EXPECT_EQ(layout.bytes, 192u);
}

// 512 and 64 live on both sides of a gap of 256 that the third one fits in.
TEST(PlanArena, FillsGaps) {
  const std::vector<BufferLife> lives = {
      {.bytes = 512, .first = 0, .last = 9},
      {.bytes = 256, .first = 0, .last = 2},
      {.bytes = 128, .first = 0, .last = 9},
      {.bytes = 192, .first = 4, .last = 6},
  };
  const ArenaLayout layout = PlanArena(lives, kAlign);
  EXPECT_EQ(layout.bytes, 512u + 256u + 128u);
  EXPECT_EQ(layout.offsets[3], 512u);
}

// Random lives never overlap, and the arena stays near the lower bound: the
// largest sum of sizes alive at one time.
TEST(PlanArena, RandomLivesStayApart) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<BufferLife> lives(100);
    for (BufferLife& life : lives) {
      life.bytes = (random() % 64 + 1) * 16;
      life.first = static_cast<int64_t>(random() % 200);
      life.last = life.first + static_cast<int64_t>(random() % 8);
    }
    const ArenaLayout layout = PlanArena(lives, kAlign);
    uint64_t bound = 0;
    for (int64_t t = 0; t < 208; ++t) {
      uint64_t alive = 0;
      for (const BufferLife& life : lives) {
        if (life.first <= t && t <= life.last) {
          alive += (life.bytes + kAlign - 1) / kAlign * kAlign;
        }
      }
      bound = std::max(bound, alive);
    }
    for (size_t i = 0; i < lives.size(); ++i) {
      EXPECT_EQ(layout.offsets[i] % kAlign, 0u);
      EXPECT_LE(layout.offsets[i] + lives[i].bytes, layout.bytes);
      for (size_t j = 0; j < i; ++j) {
        ASSERT_FALSE(
            Overlap(lives[i], layout.offsets[i], lives[j], layout.offsets[j]))
            << "round " << round << ": buffers " << j << " and " << i;
      }
    }
    EXPECT_LE(layout.bytes, bound + bound / 2) << "round " << round;
  }
}

}  // namespace
}  // namespace hexllm::cpu
