#include <gtest/gtest.h>

#include "tests/support/quant_cases.h"

namespace hexllm::cpu::testing {
namespace {

void ExpectSame(BatchMatMulCase& test, const BatchMatMulShape& shape) {
  const std::vector<float> expected = test.Run(ScalarKernels());
  for (const KernelTable* table : VectorKernels()) {
    EXPECT_EQ(FirstDifference(test.Run(*table), expected), -1)
        << IsaName(table->isa) << " m " << shape.m << " k " << shape.k << " n "
        << shape.n;
  }
}

// Some shapes span several slices of each axis.
BatchMatMulShape RandomSizes(std::mt19937& rng, int i) {
  const bool large = i % 4 == 0;
  return {.m = RandomInt(rng, 1, large ? 200 : 20),
          .k = RandomInt(rng, 0, large ? 300 : 70),
          .n = RandomInt(rng, 1, large ? 300 : 70)};
}

TEST(BatchMatMul, EveryInstructionSetEqualsScalar) {
  std::mt19937 rng(11);
  for (int i = 0; i < 40; ++i) {
    BatchMatMulShape shape = RandomSizes(rng, i);
    if (i % 2 == 0) {
      shape.a_step = 0.00123f;
      shape.b_step = 7.7e-5f;
      shape.dropped_bits = i % 20;
    }
    BatchMatMulCase test(rng, shape);
    ExpectSame(test, shape);
  }
}

TEST(BatchMatMul, AnyBitsEqualScalar) {
  std::mt19937 rng(12);
  for (int i = 0; i < 40; ++i) {
    BatchMatMulShape shape = RandomSizes(rng, i);
    if (i % 3 == 0) shape.a_step = shape.b_step = 0.01f;
    BatchMatMulCase test(rng, shape);
    for (float& x : test.a()) {
      if (rng() % 50 == 0)
        x = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    }
    for (float& x : test.b()) {
      if (rng() % 50 == 0)
        x = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    }
    ExpectSame(test, shape);
  }
}

// Zeros of A, which weights of hidden columns are, wherever they stand.
TEST(BatchMatMul, ZerosInRunsEqualScalar) {
  std::mt19937 rng(14);
  for (int64_t i = 0; i < 16; ++i) {
    const BatchMatMulShape shape = {.m = 100 + 7 * i,
                                    .k = 40 * i + 1,
                                    .n = 33,
                                    .a_step = 0.0013f,
                                    .b_step = 7e-5f,
                                    .dropped_bits = static_cast<int>(i % 3)};
    BatchMatMulCase test(rng, shape);
    const int64_t begin = RandomInt(rng, 0, shape.k);
    const int64_t end = RandomInt(rng, begin, shape.k);
    for (int64_t row = 0; row < shape.m; ++row) {
      for (int64_t k = 0; k < shape.k; ++k) {
        if ((k >= begin && k < end) == (i % 2 == 0))
          test.a()[static_cast<size_t>(row * test.AStride() + k)] = 0;
      }
    }
    ExpectSame(test, shape);
  }
}

// On grids of 16 bits the sums are those of integers, without any rounding.
TEST(BatchMatMul, GridsGiveExactIntegers) {
  constexpr int64_t kDepth = 257;
  const BatchMatMulShape shape = {
      .m = 2, .k = kDepth, .n = 3, .a_step = 3.1e-5f, .b_step = 0.017f};
  std::mt19937 rng(13);
  BatchMatMulCase test(rng, shape);
  std::vector<int64_t> a, b;
  for (float& x : test.a()) {
    a.push_back(65535 - RandomInt(rng, 0, 2));
    x = static_cast<float>(a.back()) * shape.a_step;
  }
  for (float& x : test.b()) {
    b.push_back(RandomInt(rng, 0, 1) * 131070 - 65535);
    x = static_cast<float>(b.back()) * shape.b_step;
  }
  std::vector<const KernelTable*> tables = VectorKernels();
  tables.push_back(&ScalarKernels());
  for (const KernelTable* table : tables) {
    const std::vector<float> out = test.Run(*table);
    for (int64_t m = 0; m < shape.m; ++m) {
      for (int64_t n = 0; n < shape.n; ++n) {
        int64_t sum = 0;
        for (int64_t k = 0; k < kDepth; ++k) {
          sum += a[static_cast<size_t>(m * test.AStride() + k)] *
                 b[static_cast<size_t>(k * test.BStride() + n)];
        }
        const double factor =
            double{shape.a_step} * double{shape.b_step} * 0.125;
        EXPECT_EQ(out[static_cast<size_t>(m * (shape.n + 1) + n)],
                  static_cast<float>(static_cast<double>(sum) * factor))
            << IsaName(table->isa);
      }
    }
  }
}

// 2^60 + 1 - 2^60 in order is 0 in double; in any other order it is 1.
TEST(BatchMatMul, SumsOverKInOrder) {
  const BatchMatMulShape shape = {.m = 1, .k = 3, .n = 1};
  std::mt19937 rng(14);
  BatchMatMulCase test(rng, shape);
  test.a() = {0x1p60f, 8.0f, -0x1p60f, 0, 0, 0};
  std::ranges::fill(test.b(), 1.0f);
  std::vector<const KernelTable*> tables = VectorKernels();
  tables.push_back(&ScalarKernels());
  for (const KernelTable* table : tables) {
    EXPECT_EQ(test.Run(*table)[0], 0.0f) << IsaName(table->isa);
  }
}

}  // namespace
}  // namespace hexllm::cpu::testing
