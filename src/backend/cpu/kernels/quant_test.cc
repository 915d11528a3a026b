#include <gtest/gtest.h>

#include "base/dequantize.h"
#include "tests/support/quant_cases.h"

namespace hexllm::cpu::testing {
namespace {

constexpr DType kPackedTypes[] = {DType::kQ4_1, DType::kQ8_0};

std::string Describe(const KernelTable& table, const MatMulShape& s) {
  return std::string(IsaName(table.isa)) + " rows " + std::to_string(s.rows) +
         " n [" + std::to_string(s.n_begin) + "," + std::to_string(s.n_end) +
         ") of " + std::to_string(s.n) + " k " + std::to_string(s.k);
}

void ExpectSameRows(const KernelTable& table, std::span<const float> x,
                    int64_t rows, int64_t k) {
  const RoundedRows expected(ScalarKernels(), x, rows, k);
  const RoundedRows got(table, x, rows, k);
  EXPECT_EQ(got.codes, expected.codes) << IsaName(table.isa);
  EXPECT_EQ(got.sums, expected.sums) << IsaName(table.isa);
  EXPECT_EQ(FirstDifference(got.scales, expected.scales), -1)
      << IsaName(table.isa);
}

TEST(QuantizeRows, EveryInstructionSetEqualsScalar) {
  std::mt19937 rng(1);
  for (int i = 0; i < 40; ++i) {
    const int64_t rows = RandomInt(rng, 1, 5);
    const int64_t k = kQuantBlock * RandomInt(rng, 1, 20);
    const std::vector<float> x = RandomFloats(rng, rows * k);
    for (const KernelTable* table : VectorKernels()) {
      ExpectSameRows(*table, x, rows, k);
    }
  }
}

// Bits at random (most exponents are extreme), then one special value among
// ordinary ones.
TEST(QuantizeRows, AnyBitsEqualScalar) {
  std::mt19937 rng(2);
  std::vector<float> x(kQuantBlock);
  const auto expect_same = [&] {
    for (const KernelTable* table : VectorKernels()) {
      ExpectSameRows(*table, x, 1, kQuantBlock);
    }
  };
  for (int i = 0; i < 2000; ++i) {
    for (float& value : x) {
      value = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    }
    // All small, or only the signs differ: subnormal scales, ties.
    const uint32_t mask = i % 3 == 0 ? 0x80ffffffu : 0xffffffffu;
    for (float& value : x) {
      value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & mask);
    }
    expect_same();
  }
  for (const float special : {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-45f,
                              1e-38f, 3e-37f, 3.4e38f, -3.4e38f}) {
    for (size_t at = 0; at < x.size(); ++at) {
      x = RandomFloats(rng, kQuantBlock);
      x[at] = special;
      expect_same();
      std::ranges::fill(x, 0.0f);
      x[at] = special;
      expect_same();
    }
  }
}

TEST(QuantizeRows, DocumentedValues) {
  std::vector<float> x(3 * kQuantBlock, 0.0f);
  x[0] = -2.54f;  // scale 0.02
  x[1] = 0.029f;  // 1.45
  x[2] = 0.05f;   // 2.5: half to even
  x[3] = 0.07f;   // 3.5
  x[kQuantBlock] = 1.0f;
  x[kQuantBlock + 1] = NAN;
  RoundedRows rows(ScalarKernels(), x, 1, 3 * kQuantBlock);
  EXPECT_EQ(rows.codes[0], -127);
  EXPECT_EQ(rows.codes[1], 1);
  EXPECT_NEAR(rows.codes[2], 2, 1);
  EXPECT_EQ(rows.sums[0],
            rows.codes[0] + rows.codes[1] + rows.codes[2] + rows.codes[3]);
  EXPECT_EQ(rows.scales[0], 2.54f / 127.0f);
  EXPECT_TRUE(std::isnan(rows.scales[1]));
  EXPECT_EQ(rows.sums[1], 0);
  EXPECT_EQ(rows.scales[2], 0.0f);
}

class MatMulQTest : public ::testing::TestWithParam<DType> {
 protected:
  std::mt19937 rng_{77u + static_cast<unsigned>(GetParam())};

  void ExpectSame(MatMulQCase& test, const MatMulShape& shape) {
    const std::vector<float> expected = test.Run(ScalarKernels());
    for (const KernelTable* table : VectorKernels()) {
      EXPECT_EQ(FirstDifference(test.Run(*table), expected), -1)
          << Describe(*table, shape);
    }
  }
};

TEST_P(MatMulQTest, EveryInstructionSetEqualsScalar) {
  for (int i = 0; i < 60; ++i) {
    const MatMulShape shape = RandomPackedShape(rng_, i % 10 == 0 ? 4096 : 320);
    MatMulQCase test(rng_, GetParam(), shape);
    ExpectSame(test, shape);
  }
}

TEST_P(MatMulQTest, EveryNumberOfRowsEqualsScalar) {
  for (int64_t rows = 1; rows <= 70; ++rows) {
    const MatMulShape shape = {
        .rows = rows, .n = 37, .k = 96, .n_begin = 0, .n_end = 37};
    MatMulQCase test(rng_, GetParam(), shape);
    ExpectSame(test, shape);
  }
}

// Infinities, NaNs, subnormals and zeros among factors and activations.
TEST_P(MatMulQTest, AnyBitsEqualScalar) {
  for (int i = 0; i < 40; ++i) {
    const MatMulShape shape = RandomPackedShape(rng_, 320);
    MatMulQCase test(rng_, GetParam(), shape);
    for (std::byte& byte : test.stored()) byte = static_cast<std::byte>(rng_());
    test.Pack();
    for (float& x : test.x()) {
      if (rng_() % 100 == 0) {
        x = std::bit_cast<float>(static_cast<uint32_t>(rng_()));
      }
    }
    ExpectSame(test, shape);
  }
}

// The codes of largest magnitude, where sums of fewer bits would overflow; and
// d = 0.
TEST_P(MatMulQTest, ExtremeCodesEqualScalar) {
  const auto row = static_cast<size_t>(WeightRowBytes(GetParam(), 64));
  const size_t factor_bytes = GetParam() == DType::kQ4_1 ? 4 : 2;
  const size_t block_bytes = GetDTypeInfo(GetParam()).block_bytes;
  for (const int code : {0x00, 0x0f, 0xff, 0x7f, 0x80, 0x81}) {
    for (const int sign : {-1, 0, 1}) {
      for (const int64_t rows : {1, 2, 7, 13}) {
        const MatMulShape shape = {
            .rows = rows, .n = 19, .k = 64, .n_begin = 0, .n_end = 19};
        MatMulQCase test(rng_, GetParam(), shape);
        for (size_t i = 0; i < test.stored().size(); ++i) {
          const bool factor = i % block_bytes < factor_bytes;
          if (!factor) test.stored()[i] = static_cast<std::byte>(code);
          if (factor && i / row % 5 == 0) test.stored()[i] = std::byte{0};
        }
        test.Pack();
        for (size_t i = 0; i < test.x().size(); ++i) {
          test.x()[i] = sign != 0 ? static_cast<float>(sign)
                                  : (i % 2 == 0 ? 3.0f : -3.0f);
        }
        ExpectSame(test, shape);
      }
    }
  }
}

TEST_P(MatMulQTest, RowDoesNotDependOnItsNeighbours) {
  const MatMulShape shape = {
      .rows = 30, .n = 40, .k = 160, .n_begin = 0, .n_end = 40};
  MatMulQCase test(rng_, GetParam(), shape);
  for (const KernelTable* table : VectorKernels()) {
    RoundedRows rows(*table, test.x(), shape.rows, shape.k);
    std::vector<float> all(static_cast<size_t>(shape.rows * shape.n));
    MatMulQArgs args = test.Args(rows, all.data());
    table->matmul_q[static_cast<size_t>(GetParam())](args);
    std::vector<float> alone(all.size());
    args.out = alone.data();
    args.rows = 1;
    for (int64_t r = 0; r < shape.rows; ++r, args.out += shape.n) {
      table->matmul_q[static_cast<size_t>(GetParam())](args);
      args.x.codes += shape.k;
      args.x.scales += shape.k / kQuantBlock;
      args.x.sums += shape.k / kQuantBlock;
    }
    EXPECT_EQ(FirstDifference(alone, all), -1) << IsaName(table->isa);
  }
}

// Against the weights as floats: the rounding of activations is all the error.
TEST_P(MatMulQTest, ScalarIsCloseToFloat) {
  const MatMulShape shape = {
      .rows = 3, .n = 21, .k = 256, .n_begin = 0, .n_end = 21};
  MatMulQCase test(rng_, GetParam(), shape);
  const std::vector<float> out = test.Run(ScalarKernels());
  const auto row_bytes = static_cast<size_t>(WeightRowBytes(GetParam(), 256));
  std::vector<float> w(static_cast<size_t>(shape.k));
  for (int64_t n = 0; n < shape.n; ++n) {
    DequantizeRow(GetParam(),
                  ByteSpan(test.stored())
                      .subspan(static_cast<size_t>(n) * row_bytes, row_bytes),
                  w);
    for (int64_t r = 0; r < shape.rows; ++r) {
      double sum = 0, bound = 0;
      for (size_t k = 0; k < w.size(); ++k) {
        const float x = test.x()[static_cast<size_t>(r * shape.k) + k];
        sum += double{x} * double{w[k]};
        bound += std::fabs(double{w[k]}) / 254 * 1.01;
      }
      EXPECT_NEAR(out[static_cast<size_t>(r * shape.n + n)], sum, bound)
          << " row " << r << " column " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PackedTypes, MatMulQTest,
                         ::testing::ValuesIn(kPackedTypes),
                         [](const auto& test) {
                           return std::string(DTypeName(test.param));
                         });

TEST(CodeMatMul, EveryInstructionSetEqualsScalar) {
  std::mt19937 rng(5);
  for (int i = 0; i < 80; ++i) {
    const CodeMatMulShape shape = {
        .rows = RandomInt(rng, 1, i % 2 == 0 ? 4 : 40),
        .k = RandomInt(rng, 1, i % 10 == 0 ? 4096 : 320),
        .outputs = i % 3 == 0 ? kPackedRows : RandomInt(rng, 1, kPackedRows),
        .x_gap = RandomInt(rng, 0, 5),
        .out_gap = RandomInt(rng, 0, 20),
        .wide = i % 2 == 0,
        .dropped_bits = i % 5 == 0 ? 13 : 0};
    CodeMatMulCase test(rng, shape);
    const std::vector<float> expected = test.Run(ScalarKernels());
    for (const KernelTable* table : VectorKernels()) {
      EXPECT_EQ(FirstDifference(test.Run(*table), expected), -1)
          << IsaName(table->isa) << " rows " << shape.rows << " k " << shape.k
          << " outputs " << shape.outputs << " wide " << shape.wide;
    }
  }
}

// The largest sums: 65536 products of the codes of largest magnitude.
TEST(CodeMatMul, ExtremeCodesAreExact) {
  constexpr int64_t kDepth = 65536;
  std::mt19937 rng(6);
  for (const bool wide : {false, true}) {
    CodeMatMulCase test(rng,
                        {.rows = 2, .k = kDepth, .outputs = 3, .wide = wide});
    test.terms() = {
        .offsets = {}, .per_place = {}, .rest = {}, .factors = {1, 1, 1}};
    for (const int w : {-128, 127}) {
      std::ranges::fill(test.stored(), static_cast<std::byte>(w));
      const int64_t weight = wide ? 256 * w + w + 128 : w;
      for (const int x : {-32768, 32767}) {
        std::ranges::fill(test.x(), static_cast<int16_t>(x));
        test.Pack();
        const std::vector<float> expected(
            6, static_cast<float>(weight * x * kDepth));
        for (const KernelTable* table : VectorKernels()) {
          EXPECT_EQ(test.Run(*table), expected) << IsaName(table->isa);
        }
        EXPECT_EQ(test.Run(ScalarKernels()), expected);
      }
    }
  }
}

}  // namespace
}  // namespace hexllm::cpu::testing
