#include <gtest/gtest.h>

#include "base/dequantize.h"
#include "tests/support/kernel_cases.h"

namespace hexllm::cpu::testing {
namespace {

std::string Describe(const KernelTable& table, DType dtype,
                     const MatMulShape& s) {
  return std::string(IsaName(table.isa)) + " " + std::string(DTypeName(dtype)) +
         " rows " + std::to_string(s.rows) + " n [" +
         std::to_string(s.n_begin) + "," + std::to_string(s.n_end) + ") of " +
         std::to_string(s.n) + " k " + std::to_string(s.k);
}

class MatMulTest : public ::testing::TestWithParam<DType> {
 protected:
  std::mt19937 rng_{2024u + static_cast<unsigned>(GetParam())};
};

TEST_P(MatMulTest, EveryInstructionSetEqualsScalar) {
  for (int i = 0; i < 30; ++i) {
    // Some k span several slices of the panel kernel.
    const int64_t max_k = i % 5 == 0 ? 1800 : 300;
    const MatMulShape shape = RandomShape(rng_, GetParam(), max_k);
    const MatMulCase test(rng_, GetParam(), shape);
    const std::vector<float> expected = test.Run(ScalarKernels());
    for (const KernelTable* table : VectorKernels()) {
      EXPECT_EQ(FirstDifference(test.Run(*table), expected), -1)
          << Describe(*table, GetParam(), shape);
    }
  }
}

TEST_P(MatMulTest, AnyBitsEqualScalar) {
  for (int i = 0; i < 10; ++i) {
    const MatMulShape shape = RandomShape(rng_, GetParam(), 300);
    MatMulCase test(rng_, GetParam(), shape);
    // Infinities, NaNs and subnormals among the factors and the activations.
    for (std::byte& byte : test.w()) byte = static_cast<std::byte>(rng_());
    for (float& x : test.x()) {
      if (rng_() % 64 == 0)
        x = std::bit_cast<float>(static_cast<uint32_t>(rng_()));
    }
    const std::vector<float> expected = test.Run(ScalarKernels());
    for (const KernelTable* table : VectorKernels()) {
      EXPECT_EQ(FirstDifference(test.Run(*table), expected), -1)
          << Describe(*table, GetParam(), shape);
    }
  }
}

TEST_P(MatMulTest, RowDoesNotDependOnItsNeighbours) {
  for (int i = 0; i < 4; ++i) {
    MatMulShape shape = RandomShape(rng_, GetParam(), 700);
    shape.rows = 7 + 3 * i;
    const MatMulCase test(rng_, GetParam(), shape);
    for (const KernelTable* table : VectorKernels()) {
      const std::vector<float> batch = test.Run(*table);
      const auto stride = static_cast<std::ptrdiff_t>(shape.n + shape.out_gap);
      for (int64_t r = 0; r < shape.rows; ++r) {
        const std::vector<float> alone = test.Run(*table, r, r + 1);
        const std::span<const float> row(alone.begin() + r * stride,
                                         alone.begin() + (r + 1) * stride);
        const std::span<const float> in_batch(batch.begin() + r * stride,
                                              batch.begin() + (r + 1) * stride);
        EXPECT_EQ(FirstDifference(row, in_batch), -1)
            << Describe(*table, GetParam(), shape) << " row " << r;
      }
    }
  }
}

TEST_P(MatMulTest, ColumnsDoNotDependOnTheRange) {
  MatMulShape shape = RandomShape(rng_, GetParam(), 300);
  shape.n = 150;
  for (const int64_t rows : {1, 9}) {
    shape.rows = rows;
    shape.n_begin = 0;
    shape.n_end = shape.n;
    std::mt19937 same(7);
    const MatMulCase whole(same, GetParam(), shape);
    for (const KernelTable* table : VectorKernels()) {
      const std::vector<float> expected = whole.Run(*table);
      for (int64_t n = 0; n < shape.n; n += 37) {
        shape.n_begin = n;
        shape.n_end = n + 1;
        std::mt19937 again(7);
        const MatMulCase part(again, GetParam(), shape);
        const auto at = static_cast<size_t>(n);
        EXPECT_EQ(part.Run(*table)[at], expected[at])
            << Describe(*table, GetParam(), shape);
      }
    }
  }
}

// Against double precision: a lane adds k / 16 rounded steps, the tree four.
TEST_P(MatMulTest, ScalarIsCloseToDouble) {
  const int64_t block = GetDTypeInfo(GetParam()).block_elems;
  const int64_t k_elems = block == 1 ? 347 : 768;
  const MatMulShape shape = {
      .rows = 3, .n = 5, .k = k_elems, .n_begin = 0, .n_end = 5};
  MatMulCase test(rng_, GetParam(), shape);
  const std::vector<float> out = test.Run(ScalarKernels());
  std::vector<float> w(static_cast<size_t>(shape.k));
  for (int64_t n = 0; n < shape.n; ++n) {
    const ByteSpan row = ByteSpan(test.w()).subspan(
        static_cast<size_t>(n * test.w_row_bytes()),
        static_cast<size_t>(WeightRowBytes(GetParam(), shape.k)));
    DequantizeRow(GetParam(), row, w);
    for (int64_t r = 0; r < shape.rows; ++r) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < shape.k; ++k) {
        const double product =
            double{test.x()[static_cast<size_t>(r * shape.k + k)]} *
            double{w[static_cast<size_t>(k)]};
        sum += product;
        magnitude += std::fabs(product);
      }
      const double steps = static_cast<double>(shape.k) / 16 + 1 + 4;
      EXPECT_NEAR(out[static_cast<size_t>(r * shape.n + n)], sum,
                  magnitude * steps * 0x1p-24)
          << DTypeName(GetParam()) << " row " << r << " column " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, MatMulTest,
                         ::testing::ValuesIn(kWeightTypes),
                         [](const auto& test) {
                           return std::string(DTypeName(test.param));
                         });

// The order itself, on numbers small enough to do by hand: lanes, then the
// tree; any other order gives another float.
TEST(MatMul, SumsInTheDocumentedOrder) {
  // Lane 0 holds 2^24 + 1 + 1 = 2^24 when added one by one.
  std::vector<float> x(33, 0.0f);
  x[0] = 0x1p24f;
  x[16] = 1.0f;
  x[32] = 1.0f;
  x[8] = 2.0f;  // the first addition of the tree: 2^24 + 2
  x[1] = 1.0f;  // the last: 2^24 + 3, a tie that goes to 2^24 + 4
  const std::vector<float> ones(33, 1.0f);
  float out = 0;
  Scratch scratch(MatMulScratchFloats(33));
  const MatMulArgs args = {.x = x.data(),
                           .x_stride = 33,
                           .w = reinterpret_cast<const std::byte*>(ones.data()),
                           .w_row_bytes = 33 * 4,
                           .bias = nullptr,
                           .residual = nullptr,
                           .out = &out,
                           .out_stride = 1,
                           .rows = 1,
                           .k = 33,
                           .n_begin = 0,
                           .n_end = 1,
                           .scratch = scratch.data()};
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
    if (FindKernels(isa) == nullptr) continue;
    FindKernels(isa)->matmul[static_cast<size_t>(DType::kF32)](args);
    EXPECT_EQ(out, 0x1p24f + 4.0f) << IsaName(isa);
  }
}

}  // namespace
}  // namespace hexllm::cpu::testing
