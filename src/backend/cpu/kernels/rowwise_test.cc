#include <gtest/gtest.h>

#include "tests/support/kernel_cases.h"

namespace hexllm::cpu::testing {
namespace {

TEST(RmsNorm, EveryInstructionSetEqualsScalarAndWorksInPlace) {
  std::mt19937 rng(21);
  for (int64_t width = 1; width < 80; ++width) {
    const int64_t rows = RandomInt(rng, 1, 3);
    const std::vector<float> x = RandomFloats(rng, rows * width);
    const std::vector<float> weight = RandomFloats(rng, width);
    std::vector<float> expected(x.size());
    RmsNormArgs args = {.x = x.data(),
                        .weight = weight.data(),
                        .out = expected.data(),
                        .rows = rows,
                        .width = width,
                        .eps = 1e-5f,
                        .weight_offset = width % 2 == 0 ? 1.0f : 0.0f};
    ScalarKernels().rms_norm(args);
    for (const KernelTable* table : VectorKernels()) {
      std::vector<float> out = x;
      args.x = args.out = out.data();
      table->rms_norm(args);
      EXPECT_EQ(FirstDifference(out, expected), -1)
          << IsaName(table->isa) << " width " << width;
    }
  }
}

TEST(LayerNorm, EveryInstructionSetEqualsScalarAndWorksInPlace) {
  std::mt19937 rng(25);
  for (int64_t width = 1; width < 80; ++width) {
    const int64_t rows = RandomInt(rng, 1, 3);
    const std::vector<float> x = RandomFloats(rng, rows * width);
    const std::vector<float> weight = RandomFloats(rng, width);
    const std::vector<float> bias = RandomFloats(rng, width);
    std::vector<float> expected(x.size());
    LayerNormArgs args = {.x = x.data(),
                          .weight = weight.data(),
                          .bias = bias.data(),
                          .out = expected.data(),
                          .rows = rows,
                          .width = width,
                          .eps = 1e-5f};
    ScalarKernels().layer_norm(args);
    for (const KernelTable* table : VectorKernels()) {
      std::vector<float> out = x;
      args.x = args.out = out.data();
      table->layer_norm(args);
      EXPECT_EQ(FirstDifference(out, expected), -1)
          << IsaName(table->isa) << " width " << width;
    }
  }
}

TEST(LayerNorm, ScalarIsCloseToDouble) {
  std::mt19937 rng(26);
  const std::vector<float> x = RandomFloats(rng, 577);
  const std::vector<float> weight = RandomFloats(rng, 577);
  const std::vector<float> bias = RandomFloats(rng, 577);
  std::vector<float> out(577);
  ScalarKernels().layer_norm({.x = x.data(),
                              .weight = weight.data(),
                              .bias = bias.data(),
                              .out = out.data(),
                              .rows = 1,
                              .width = 577,
                              .eps = 1e-6f});
  double mean = 0;
  for (const float v : x) mean += double{v} / 577;
  double squares = 0;
  for (const float v : x) squares += (v - mean) * (v - mean);
  const double root = std::sqrt(squares / 577 + 1e-6);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(out[i], (x[i] - mean) / root * weight[i] + bias[i], 2e-6) << i;
}

TEST(RmsNorm, ScalarIsCloseToDouble) {
  std::mt19937 rng(22);
  const std::vector<float> x = RandomFloats(rng, 577);
  const std::vector<float> weight = RandomFloats(rng, 577);
  std::vector<float> out(577);
  ScalarKernels().rms_norm({.x = x.data(),
                            .weight = weight.data(),
                            .out = out.data(),
                            .rows = 1,
                            .width = 577,
                            .eps = 1e-6f,
                            .weight_offset = 1.0f});
  double squares = 0;
  for (const float v : x) squares += double{v} * double{v};
  const double root = std::sqrt(squares / 577 + 1e-6);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(out[i], x[i] / root * (weight[i] + 1.0), 1e-6) << i;
  }
}

TEST(Rope, EveryInstructionSetEqualsScalarAndWorksInPlace) {
  std::mt19937 rng(23);
  for (int64_t half = 0; half < 50; ++half) {
    const int64_t rows = 3, heads = 2;
    const int64_t head_dim = 2 * half + RandomInt(rng, 0, 1) * 5 + 1;
    const std::vector<float> x = RandomFloats(rng, rows * heads * head_dim);
    const std::vector<float> cos = RandomFloats(rng, rows * half);
    const std::vector<float> sin = RandomFloats(rng, rows * half);
    std::vector<float> expected(x.size());
    RopeArgs args = {.x = x.data(),
                     .cos = cos.data(),
                     .sin = sin.data(),
                     .out = expected.data(),
                     .rows = rows,
                     .heads = heads,
                     .head_dim = head_dim,
                     .half = half};
    ScalarKernels().rope(args);
    for (const KernelTable* table : VectorKernels()) {
      std::vector<float> out = x;
      args.x = args.out = out.data();
      table->rope(args);
      EXPECT_EQ(FirstDifference(out, expected), -1)
          << IsaName(table->isa) << " half " << half;
    }
  }
}

TEST(Rope, RotatesPairsAndCopiesTheRest) {
  // Two pairs of five elements: a quarter turn and none.
  const std::vector<float> x = {1, 2, 3, 4, 5};
  const std::vector<float> cos = {0, 1};
  const std::vector<float> sin = {1, 0};
  std::vector<float> out(5);
  ScalarKernels().rope({.x = x.data(),
                        .cos = cos.data(),
                        .sin = sin.data(),
                        .out = out.data(),
                        .rows = 1,
                        .heads = 1,
                        .head_dim = 5,
                        .half = 2});
  EXPECT_EQ(out, (std::vector<float>{-3, 2, 1, 4, 5}));
}

}  // namespace
}  // namespace hexllm::cpu::testing
