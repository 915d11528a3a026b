// Accuracy of the functions of math.h over all floats of their range (every
// 4099th), in units of the last place of the exact result.
#include "backend/cpu/kernels/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "backend/cpu/kernels/vec_scalar.h"

namespace hexllm::cpu {
namespace {

using V = VecScalar;

// Callable through a pointer, which the functions of math.h are not.
float ExpOf(float x) { return Exp<V>(x); }
float TanhOf(float x) { return Tanh<V>(x); }
float SigmoidOf(float x) { return Sigmoid<V>(x); }
float ErfOf(float x) { return Erf<V>(x); }
float SiluOf(float x) { return Silu<V>(x); }
float GeluTanhOf(float x) { return GeluTanh<V>(x); }
float GeluErfOf(float x) { return GeluErf<V>(x); }

// |got - want| in units in the last place of a float near `want`.
double Ulps(float got, double want) {
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded)) return got == rounded ? 0.0 : INFINITY;
  int exponent = 0;
  std::frexp(want, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(double{got} - want) / ulp;
}

struct Range {
  float low, high;
};

// The largest error of `function` against `exact` for floats in `range`.
template <class Function, class Exact>
double MaxUlps(Range range, Function function, Exact exact) {
  double max = 0;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(x >= range.low && x <= range.high)) continue;
    max = std::max(max, Ulps(function(x), exact(double{x})));
  }
  return max;
}

TEST(KernelMath, ExpIsAccurate) {
  EXPECT_LT(
      MaxUlps({-110.0f, 100.0f}, ExpOf, [](double x) { return std::exp(x); }),
      1.01);
}

TEST(KernelMath, TanhIsAccurate) {
  EXPECT_LT(
      MaxUlps({-1e30f, 1e30f}, TanhOf, [](double x) { return std::tanh(x); }),
      1.5);
}

TEST(KernelMath, SigmoidIsAccurate) {
  EXPECT_LT(MaxUlps({-110.0f, 1e30f}, SigmoidOf,
                    [](double x) { return 1 / (1 + std::exp(-x)); }),
            2.5);
}

TEST(KernelMath, ErfIsAccurate) {
  EXPECT_LT(
      MaxUlps({-1e30f, 1e30f}, ErfOf, [](double x) { return std::erf(x); }),
      1.5);
}

TEST(KernelMath, SpecialValues) {
  EXPECT_EQ(ExpOf(-INFINITY), 0.0f);
  EXPECT_EQ(ExpOf(INFINITY), INFINITY);
  EXPECT_EQ(ExpOf(0.0f), 1.0f);
  EXPECT_EQ(ExpOf(-0.0f), 1.0f);
  EXPECT_EQ(TanhOf(INFINITY), 1.0f);
  EXPECT_EQ(TanhOf(-INFINITY), -1.0f);
  EXPECT_EQ(ErfOf(INFINITY), 1.0f);
  EXPECT_EQ(ErfOf(-INFINITY), -1.0f);
  EXPECT_EQ(SigmoidOf(INFINITY), 1.0f);
  EXPECT_EQ(SigmoidOf(-INFINITY), 0.0f);
  for (const float zero : {0.0f, -0.0f}) {
    EXPECT_EQ(std::signbit(TanhOf(zero)), std::signbit(zero));
    EXPECT_EQ(std::signbit(ErfOf(zero)), std::signbit(zero));
  }
  for (const auto function :
       {ExpOf, TanhOf, ErfOf, SigmoidOf, SiluOf, GeluTanhOf, GeluErfOf}) {
    EXPECT_TRUE(std::isnan(function(NAN)));
    EXPECT_TRUE(std::isnan(function(-NAN)));
  }
}

TEST(KernelMath, ExpOverflowsAndUnderflowsWhereItShould) {
  EXPECT_LT(ExpOf(88.72283f), INFINITY);
  EXPECT_EQ(ExpOf(88.72284f), INFINITY);
  EXPECT_GT(ExpOf(-103.97f), 0.0f);
  EXPECT_EQ(ExpOf(-103.98f), 0.0f);
}

}  // namespace
}  // namespace hexllm::cpu
