#include "quant/hadamard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "quant/rotation.h"

namespace hexllm::quant {
namespace {

TEST(Hadamard, KnowsPowersOfTwo) {
  EXPECT_TRUE(HasHadamard(1));
  EXPECT_TRUE(HasHadamard(128));
  EXPECT_FALSE(HasHadamard(0));
  EXPECT_FALSE(HasHadamard(-8));
  EXPECT_FALSE(HasHadamard(96));
}

TEST(Hadamard, IsOrthogonalAndSymmetric) {
  for (const size_t n : {1u, 2u, 8u, 64u}) {
    const auto h = HadamardMatrix(static_cast<int64_t>(n));
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        EXPECT_EQ(h[i * n + j], h[j * n + i]);
        double product = 0;
        for (size_t k = 0; k < n; ++k)
          product += static_cast<double>(h[i * n + k] * h[j * n + k]);
        EXPECT_NEAR(product, i == j ? 1 : 0, 1e-6);
      }
    }
  }
}

TEST(Hadamard, TransformIsTheProductWithTheMatrix) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const size_t n : {1u, 4u, 64u, 256u}) {
    std::vector<float> x(n);
    for (float& value : x) value = normal(random);
    const auto h = HadamardMatrix(static_cast<int64_t>(n));
    std::vector<float> transformed = x;
    HadamardTransform(transformed);
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t i = 0; i < n; ++i)
        sum += static_cast<double>(x[i]) * static_cast<double>(h[i * n + j]);
      EXPECT_NEAR(transformed[j], sum, 1e-5);
    }
    HadamardTransform(transformed);
    for (size_t i = 0; i < n; ++i) EXPECT_NEAR(transformed[i], x[i], 1e-5);
  }
}

// [n,n], row-major.
void ExpectOrthogonal(const std::vector<float>& matrix, double squared_length) {
  const auto n = static_cast<size_t>(std::sqrt(matrix.size()));
  ASSERT_EQ(n * n, matrix.size());
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double product = 0;
      for (size_t k = 0; k < n; ++k)
        product += static_cast<double>(matrix[i * n + k]) *
                   static_cast<double>(matrix[j * n + k]);
      ASSERT_NEAR(product, i == j ? squared_length : 0, 2e-6) << i << ' ' << j;
    }
  }
}

// The rows of the unit matrix, rotated.
std::vector<float> MatrixOf(const Rotation& rotation) {
  const auto n = static_cast<size_t>(rotation.size());
  std::vector<float> matrix(n * n);
  for (size_t i = 0; i < n; ++i) matrix[i * n + i] = 1;
  rotation.ApplyToRows(matrix);
  return matrix;
}

Rotation Made(RotationKind kind, int64_t size, const std::string& name = "r") {
  auto made = Rotation::Make(kind, size, 0, name);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? *made : Rotation::FromMatrix({1}, 1);
}

TEST(Rotation, PaleysMatricesAreHadamard) {
  // By the first construction, by the second, and by neither.
  for (const int64_t order : {4, 12, 20, 44, 60, 28, 36, 52, 76}) {
    const std::vector<float> matrix = PaleyMatrix(order);
    if (order == 52) {
      EXPECT_TRUE(matrix.empty());
      continue;
    }
    ASSERT_EQ(matrix.size(), static_cast<size_t>(order * order)) << order;
    for (const float entry : matrix) ASSERT_EQ(std::abs(entry), 1) << order;
    ExpectOrthogonal(matrix, static_cast<double>(order));
  }
}

TEST(Rotation, SizesOfModelsAreHadamard) {
  const std::pair<int64_t, int64_t> cores[] = {
      {64, 1},   {96, 12},   {112, 28},  {576, 36},  {896, 28},
      {960, 60}, {1152, 36}, {1536, 12}, {2304, 36}, {3072, 12},
      {80, 20},  {44, 44},   {92, 23},   {4096, 1}};
  for (const auto& [size, core] : cores)
    EXPECT_EQ(Made(RotationKind::kHadamard, size).core_size(), core) << size;
  for (const int64_t size : {8, 96, 112, 144}) {
    const std::vector<float> matrix =
        MatrixOf(Made(RotationKind::kHadamard, size));
    ExpectOrthogonal(matrix, 1);
    const double entry = 1 / std::sqrt(static_cast<double>(size));
    for (const float found : matrix)
      ASSERT_NEAR(std::abs(found), entry, 1e-6) << size;
  }
}

TEST(Rotation, EverySizeHasARotation) {
  for (const RotationKind kind :
       {RotationKind::kHadamard, RotationKind::kRandom}) {
    for (const int64_t size : {1, 6, 23, 92, 96})
      ExpectOrthogonal(MatrixOf(Made(kind, size)), 1);
  }
  const auto huge = Rotation::Make(RotationKind::kRandom, 2 * 8191, 0, "r");
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().code, ErrorCode::kUnsupported);
}

TEST(Rotation, IsAFunctionOfSeedAndName) {
  const auto first = MatrixOf(Made(RotationKind::kRandom, 12, "r"));
  EXPECT_EQ(first, MatrixOf(Made(RotationKind::kRandom, 12, "r")));
  EXPECT_NE(first, MatrixOf(Made(RotationKind::kRandom, 12, "s")));
  EXPECT_NE(first,
            MatrixOf(*Rotation::Make(RotationKind::kRandom, 12, 1, "r")));
}

TEST(Rotation, ColumnsAreRotatedAsRowsAre) {
  constexpr int64_t kColumns = 21;
  const Rotation rotation = Made(RotationKind::kHadamard, 12);
  std::vector<float> columns(12 * kColumns), rows(12 * kColumns);
  for (size_t i = 0; i < columns.size(); ++i)
    columns[i] = std::sin(static_cast<float>(i));
  for (size_t i = 0; i < columns.size(); ++i)
    rows[i % kColumns * 12 + i / kColumns] = columns[i];
  rotation.ApplyToColumns(columns, kColumns);
  rotation.ApplyToRows(rows);
  for (size_t i = 0; i < columns.size(); ++i)
    EXPECT_EQ(columns[i], rows[i % kColumns * 12 + i / kColumns]);
}

TEST(Hadamard, ChecksSizes) {
  std::vector<float> x(6);
  EXPECT_EXIT(HadamardTransform(x), ::testing::ExitedWithCode(70), "");
  EXPECT_EXIT(HadamardMatrix(6), ::testing::ExitedWithCode(70), "");
}

}  // namespace
}  // namespace hexllm::quant
