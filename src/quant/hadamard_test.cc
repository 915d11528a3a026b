#include "quant/hadamard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

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

TEST(Hadamard, ChecksSizes) {
  std::vector<float> x(6);
  EXPECT_EXIT(HadamardTransform(x), ::testing::ExitedWithCode(70), "");
  EXPECT_EXIT(HadamardMatrix(6), ::testing::ExitedWithCode(70), "");
}

}  // namespace
}  // namespace hexllm::quant
