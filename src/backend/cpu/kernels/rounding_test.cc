#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "ir/encode.h"
#include "tests/support/quant_cases.h"

namespace hexllm::cpu::testing {
namespace {

struct Grid {
  float scale;
  int32_t zero_point, least, most;
};
constexpr Grid kGrids[] = {
    {0.01f, 0, 0, 255},         {0.02f, 131, 0, 255},
    {3e-5f, 30000, 0, 65535},   {1.0f / 65536, 0, 0, 65535},
    {0.3f, 65535, 0, 65535},    {0.5f, 0, -127, 127},
    {1e-30f, 7, -32767, 32767}, {2e30f, 9, 0, 255}};

std::vector<float> RoundCodes(const KernelTable& table, const Grid& grid,
                              std::vector<float> x) {
  table.round_codes({.x = x.data(),
                     .out = x.data(),
                     .n = static_cast<int64_t>(x.size()),
                     .scale = grid.scale,
                     .zero_point = grid.zero_point,
                     .least = grid.least,
                     .most = grid.most});
  return x;
}

// Ordinary numbers around the grid's range, ties, and any bits.
std::vector<float> GridInputs(std::mt19937& rng, const Grid& grid) {
  std::vector<float> x = RandomFloats(rng, 600);
  const auto width = static_cast<float>(grid.most - grid.least);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] *= 1.5f * width * grid.scale;
    if (i % 3 == 0) {
      const auto code = static_cast<float>(RandomInt(rng, -300, 300));
      x[i] = (code + 0.5f) * grid.scale;
    }
    if (i % 5 == 0) x[i] = std::bit_cast<float>(static_cast<uint32_t>(rng()));
  }
  for (const float special : {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-45f,
                              -1e-45f, 3.4e38f, -3.4e38f}) {
    x.push_back(special);
  }
  return x;
}

TEST(RoundCodes, EveryInstructionSetEqualsScalar) {
  std::mt19937 rng(21);
  for (const Grid& grid : kGrids) {
    const std::vector<float> x = GridInputs(rng, grid);
    const std::vector<float> expected = RoundCodes(ScalarKernels(), grid, x);
    for (const KernelTable* table : VectorKernels()) {
      EXPECT_EQ(FirstDifference(RoundCodes(*table, grid, x), expected), -1)
          << IsaName(table->isa) << " scale " << grid.scale;
    }
  }
}

TEST(RoundCodes, IsWhatEncodingsMean) {
  std::mt19937 rng(22);
  for (const Grid& grid : kGrids) {
    if (grid.least != 0) continue;
    const ir::Encoding encoding = {
        .dtype = grid.most > 255 ? DType::kU16 : DType::kU8,
        .bits = grid.most > 255 ? 16 : 8,
        .scales = {grid.scale},
        .zero_points = {grid.zero_point}};
    std::vector<float> x = GridInputs(rng, grid);
    const std::vector<float> got = RoundCodes(ScalarKernels(), grid, x);
    ir::RoundToEncoding(encoding, {static_cast<int64_t>(x.size())}, x);
    EXPECT_EQ(FirstDifference(got, x), -1) << "scale " << grid.scale;
  }
}

TEST(RoundF16, EveryInstructionSetEqualsScalar) {
  std::mt19937 rng(23);
  std::vector<float> x = RandomFloats(rng, 2000);
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % 2 == 0) x[i] = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    // Around the smallest normal half, and around its overflow.
    if (i % 7 == 0) x[i] *= 0x1p-14f;
    if (i % 11 == 0) x[i] = 65504.0f + static_cast<float>(i % 50);
  }
  std::vector<float> expected(x.size()), got(x.size());
  const auto n = static_cast<int64_t>(x.size()) - 3;
  ScalarKernels().round_f16(x.data(), expected.data(), n);
  for (const KernelTable* table : VectorKernels()) {
    table->round_f16(x.data(), got.data(), n);
    EXPECT_EQ(FirstDifference(got, expected), -1) << IsaName(table->isa);
  }
}

std::vector<float> Softmax(const KernelTable& table, std::vector<float> x,
                           int64_t rows) {
  table.softmax({.x = x.data(),
                 .out = x.data(),
                 .rows = rows,
                 .width = static_cast<int64_t>(x.size()) / rows});
  return x;
}

TEST(Softmax, EveryInstructionSetEqualsScalar) {
  std::mt19937 rng(24);
  for (int i = 0; i < 60; ++i) {
    const int64_t rows = RandomInt(rng, 1, 4);
    const int64_t width = RandomInt(rng, 1, 150);
    std::vector<float> x = RandomFloats(rng, rows * width);
    for (float& value : x) {
      value *= 30.0f;
      if (i % 3 == 1 && rng() % 3 == 0) value = -INFINITY;
      if (i % 3 == 2 && rng() % 20 == 0) {
        value = std::bit_cast<float>(static_cast<uint32_t>(rng()));
      }
    }
    const std::vector<float> expected = Softmax(ScalarKernels(), x, rows);
    for (const KernelTable* table : VectorKernels()) {
      EXPECT_EQ(FirstDifference(Softmax(*table, x, rows), expected), -1)
          << IsaName(table->isa) << " width " << width;
    }
  }
}

TEST(ChipSoftmax, EveryInstructionSetEqualsScalar) {
  std::mt19937 rng(25);
  for (int i = 0; i < 120; ++i) {
    const int64_t rows = RandomInt(rng, 1, 4);
    const bool wide = i % 40 == 1;  // sums beyond 32 bits
    const int64_t width = wide ? 140000 : RandomInt(rng, 1, 150);
    const float scale = std::ldexp(RandomFloats(rng, 1)[0] + 1.5f,
                                   -static_cast<int>(rng() % 30));
    std::vector<float> x(static_cast<size_t>(rows * width));
    for (float& value : x) {
      value = static_cast<float>(rng() % 65536) * scale;
      if (i % 4 == 1) value = static_cast<float>(rng() % 9) * scale;
      if (i % 4 == 2 && rng() % 3 == 0) value = -INFINITY;
      if (i % 4 == 3 && rng() % 20 == 0)
        value = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    }
    const auto run = [&](const KernelTable& table) {
      std::vector<float> out = x;
      table.chip_softmax({.x = out.data(),
                          .out = out.data(),
                          .rows = rows,
                          .width = width,
                          .scale = scale});
      return out;
    };
    const std::vector<float> expected = run(ScalarKernels());
    for (const KernelTable* table : VectorKernels()) {
      EXPECT_EQ(FirstDifference(run(*table), expected), -1)
          << IsaName(table->isa) << " width " << width << " scale " << scale;
    }
  }
}

// A column's weight does not depend on where the other columns stand: blocks of
// different sizes put them in different places.
TEST(Softmax, OrderOfColumnsDoesNotMatter) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> x(700);
  for (float& value : x) value = normal(random);
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  std::vector<float> moved;
  for (const size_t i : order) moved.push_back(x[i]);
  const std::vector<float> out = Softmax(ScalarKernels(), x, 1);
  const std::vector<float> moved_out = Softmax(ScalarKernels(), moved, 1);
  for (size_t i = 0; i < order.size(); ++i)
    ASSERT_EQ(moved_out[i], out[order[i]]) << "column " << order[i];
}

TEST(Softmax, HiddenColumnsAndRowsAreZero) {
  std::vector<const KernelTable*> tables = VectorKernels();
  tables.push_back(&ScalarKernels());
  for (const KernelTable* table : tables) {
    const std::vector<float> out =
        Softmax(*table,
                {1.0f, -INFINITY, 1.0f, -INFINITY, -INFINITY, -INFINITY,
                 -INFINITY, NAN, -INFINITY},
                3);
    const float expected[] = {0.5f, 0.0f, 0.5f, 0.0f, 0.0f,
                              0.0f, NAN,  NAN,  NAN};
    EXPECT_EQ(FirstDifference(out, expected), -1) << IsaName(table->isa);
  }
}

}  // namespace
}  // namespace hexllm::cpu::testing
