#include <gtest/gtest.h>

#include "tests/support/kernel_cases.h"

namespace hexllm::cpu::testing {
namespace {

std::vector<const KernelTable*> AllKernels() {
  std::vector<const KernelTable*> tables = VectorKernels();
  tables.push_back(&ScalarKernels());
  return tables;
}

std::string Describe(const KernelTable& table, const AttentionShape& s) {
  return std::string(IsaName(table.isa)) + " group " + std::to_string(s.group) +
         " head_dim " + std::to_string(s.head_dim) + " past " +
         std::to_string(s.past) + " step " + std::to_string(s.step);
}

AttentionShape RandomAttention(std::mt19937& rng) {
  return {.group = RandomInt(rng, 1, 9),
          .head_dim = RandomInt(rng, 0, 1) == 0 ? 16 * RandomInt(rng, 1, 8)
                                                : RandomInt(rng, 1, 140),
          .past = RandomInt(rng, 0, 4) == 0 ? 0 : RandomInt(rng, 1, 300),
          .step = RandomInt(rng, 1, 40),
          .softcap = RandomInt(rng, 0, 2) == 0 ? 30.0f : 0.0f};
}

TEST(Attention, EveryInstructionSetEqualsScalar) {
  std::mt19937 rng(11);
  for (int i = 0; i < 150; ++i) {
    const AttentionShape shape = RandomAttention(rng);
    AttentionCase test(rng, shape);
    test.HideAtRandom(rng, i % 2 == 0 ? 7 : 200);
    const std::vector<float> expected = test.Run(ScalarKernels());
    for (const KernelTable* table : VectorKernels()) {
      EXPECT_EQ(FirstDifference(test.Run(*table), expected), -1)
          << Describe(*table, shape) << " case " << i;
    }
  }
}

TEST(Attention, NothingVisibleGivesZeros) {
  std::mt19937 rng(12);
  for (const KernelTable* table : AllKernels()) {
    AttentionCase test(rng,
                       {.group = 3, .head_dim = 20, .past = 40, .step = 5});
    for (float& m : test.mask) m = -INFINITY;
    for (const float value : test.Run(*table)) {
      EXPECT_EQ(std::bit_cast<uint32_t>(value), 0u) << IsaName(table->isa);
    }
  }
}

// Hidden keys and values are never used, whatever they hold.
TEST(Attention, HiddenColumnsContributeNothing) {
  std::mt19937 rng(13);
  const AttentionShape shape = {
      .group = 3, .head_dim = 24, .past = 70, .step = 9};
  AttentionCase test(rng, shape);
  test.HideAtRandom(rng, 10);
  std::vector<std::vector<float>> before;
  for (const KernelTable* table : AllKernels()) {
    before.push_back(test.Run(*table));
  }
  for (int64_t c = 0; c < shape.past; ++c) {
    if (test.mask[static_cast<size_t>(c)] == 0.0f) continue;
    for (int64_t d = 0; d < shape.head_dim; ++d) {
      test.k_past[static_cast<size_t>(d * shape.past + c)] = NAN;
      test.v_past[static_cast<size_t>(c * shape.head_dim + d)] = NAN;
    }
  }
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(FirstDifference(test.Run(*AllKernels()[i]), before[i]), -1)
        << IsaName(AllKernels()[i]->isa);
  }
}

// The same visible keys in other places: all in the past, in a longer cache
// with gaps, or the last ones among the new columns.
TEST(Attention, PlaceOfAKeyDoesNotMatter) {
  std::mt19937 rng(14);
  constexpr int64_t kD = 40, kKeys = 100;
  AttentionCase dense(rng,
                      {.group = 2, .head_dim = kD, .past = kKeys, .step = 1});
  dense.mask[kKeys] = -INFINITY;
  AttentionCase spread(rng,
                       {.group = 2, .head_dim = kD, .past = 333, .step = 50});
  spread.q = dense.q;
  for (float& m : spread.mask) m = -INFINITY;
  for (size_t key = 0; key < kKeys; ++key) {
    const bool in_past = key < 80;
    const size_t column = in_past ? key * 3 + key / 7 : (key - 80) * 2;
    spread.mask[in_past ? column : 333 + column] = 0.0f;
    for (size_t d = 0; d < kD; ++d) {
      const float k = dense.k_past[d * kKeys + key];
      const float v = dense.v_past[key * kD + d];
      (in_past ? spread.k_past[d * 333 + column]
               : spread.k_new[d * 50 + column]) = k;
      (in_past ? spread.v_past[column * kD + d]
               : spread.v_new[column * kD + d]) = v;
    }
  }
  for (const KernelTable* table : AllKernels()) {
    EXPECT_EQ(FirstDifference(dense.Run(*table), spread.Run(*table)), -1)
        << IsaName(table->isa);
  }
}

TEST(Attention, HeadDoesNotDependOnItsGroup) {
  std::mt19937 rng(15);
  const AttentionShape shape = {
      .group = 7, .head_dim = 64, .past = 150, .step = 20};
  AttentionCase test(rng, shape);
  test.HideAtRandom(rng, 90);
  for (const KernelTable* table : AllKernels()) {
    const std::vector<float> all = test.Run(*table);
    for (int64_t g = 0; g < shape.group; ++g) {
      AttentionCase alone = test;
      alone.shape.group = 1;
      alone.q.assign(test.q.begin() + g * 64, test.q.begin() + (g + 1) * 64);
      const std::span<const float> in_group(all.begin() + g * 64, 64);
      EXPECT_EQ(FirstDifference(alone.Run(*table), in_group), -1)
          << IsaName(table->isa) << " head " << g;
    }
  }
}

// exp is within 1.01 ulp, sums of 131 columns and 48 dims within a few more.
TEST(Attention, ScalarIsCloseToDouble) {
  std::mt19937 rng(16);
  constexpr int64_t kD = 48, kPast = 120, kStep = 11;
  const AttentionCase test(
      rng, {.group = 1, .head_dim = kD, .past = kPast, .step = kStep});
  const std::vector<float> out = test.Run(ScalarKernels());
  std::vector<double> expected(kD);
  double total = 0;
  for (int64_t c = 0; c < kPast + kStep; ++c) {
    const bool past = c < kPast;
    const int64_t at = past ? c : c - kPast;
    double score = 0;
    for (int64_t d = 0; d < kD; ++d) {
      const auto key = static_cast<size_t>(d * (past ? kPast : kStep) + at);
      score += double{test.q[static_cast<size_t>(d)]} *
               double{past ? test.k_past[key] : test.k_new[key]};
    }
    const double p = std::exp(score / std::sqrt(double{kD}));
    total += p;
    for (int64_t d = 0; d < kD; ++d) {
      const auto value = static_cast<size_t>(at * kD + d);
      expected[static_cast<size_t>(d)] +=
          p * double{past ? test.v_past[value] : test.v_new[value]};
    }
  }
  for (size_t d = 0; d < kD; ++d) {
    EXPECT_NEAR(out[d], expected[d] / total, 2e-6) << d;
  }
}

}  // namespace
}  // namespace hexllm::cpu::testing
