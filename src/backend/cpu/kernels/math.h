// exp, tanh, sigmoid, erf and the activations made of them: each one sequence
// of IEEE operations, written once over a vector abstraction V (vec_*.h), so
// that every instruction set gives the same bits. Used by the kernels alone.
//
// V offers the type F (floats) and I (32-bit integers of the same shape) and
// static functions named like those of VecScalar, the one to read first.
// Any NaN gives a NaN; which NaN is not part of the contract.
//
// The coefficients are near-minimax fits (iteratively reweighted least squares
// in 40-digit arithmetic, rounded to float). Bounds are measured by
// math_test.cc over all of the range named, against double precision.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {
namespace {

// c[0] + x * (c[1] + x * (...)), fused.
template <class V, size_t kCount>
HX_INLINE typename V::F Polynomial(typename V::F x, const float (&c)[kCount]) {
  typename V::F sum = V::Set(c[kCount - 1]);
  for (size_t i = kCount - 1; i > 0; --i) {
    sum = V::Fma(sum, x, V::Set(c[i - 1]));
  }
  return sum;
}

// e^x: below 1.01 ulp, and below 1 ulp of the smallest subnormal where the
// result is subnormal. +infinity above 88.7228, +0 below -103.972, 1 at +-0.
//   e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln(2) / 2,
//   e^r = 1 + r + r^2 P(r); 2^n in two factors, for n = 128 and subnormals.
template <class V>
HX_INLINE typename V::F Exp(typename V::F x) {
  constexpr float kLog2E = 0x1.715476p+0f;
  constexpr float kLn2High = 0x1.62e43p-1f;
  constexpr float kLn2Low = -0x1.05c61p-29f;
  // Adding 1.5 * 2^23 leaves the rounded sum in the low bits of the mantissa.
  constexpr float kRounder = 0x1.8p23f;
  constexpr float kP[] = {0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558f4p-5f,
                          0x1.123a6cp-7f, 0x1.6a234ep-10f};
  // The bound comes first: Min and Max return their second operand for a NaN.
  x = V::Max(V::Set(-104.0f), V::Min(V::Set(89.0f), x));
  const auto shifted = V::Fma(x, V::Set(kLog2E), V::Set(kRounder));
  const auto n = V::Sub(shifted, V::Set(kRounder));
  auto r = V::Fma(n, V::Set(-kLn2High), x);
  r = V::Fma(n, V::Set(-kLn2Low), r);
  const auto tail = V::Fma(V::Mul(r, r), Polynomial<V>(r, kP), r);
  const auto mantissa = V::Add(V::Set(1.0f), tail);
  const auto exponent = V::SubInt(V::Bits(shifted), V::Bits(V::Set(kRounder)));
  const auto first = V::template ShiftRightSigned<1>(exponent);
  const auto second = V::SubInt(exponent, first);
  const auto bias = V::SetInt(127);
  const auto pow2 = [&](typename V::I e) {
    return V::FromBits(V::template ShiftLeft<23>(V::AddInt(e, bias)));
  };
  return V::Mul(V::Mul(mantissa, pow2(first)), pow2(second));
}

// Below 1.5 ulp; +-1 beyond +-9.02, the sign of zero is kept.
//   |x| < 0.625: x + x^3 P(x^2); else 1 - 2 / (e^2|x| + 1) with x's sign.
template <class V>
HX_INLINE typename V::F Tanh(typename V::F x) {
  constexpr float kP[] = {-0x1.555554p-2f, 0x1.111066p-3f,  -0x1.b9ee9p-5f,
                          0x1.638b56p-6f,  -0x1.0bf4f6p-7f, 0x1.18e1c4p-9f};
  const auto one = V::Set(1.0f);
  const auto magnitude = V::Abs(x);
  const auto square = V::Mul(x, x);
  const auto small = V::Fma(V::Mul(x, square), Polynomial<V>(square, kP), x);
  const auto e = Exp<V>(V::Add(magnitude, magnitude));
  const auto large = V::Sub(one, V::Div(V::Set(2.0f), V::Add(e, one)));
  return V::CopySign(V::IfLess(magnitude, V::Set(0.625f), V::Abs(small), large),
                     x);
}

// 1 / (1 + e^-x): below 2.5 ulp, for all x (subnormal results included).
template <class V>
HX_INLINE typename V::F Sigmoid(typename V::F x) {
  const auto one = V::Set(1.0f);
  const auto e = Exp<V>(V::Negate(V::Abs(x)));
  const auto numerator = V::IfLess(x, V::Set(0.0f), e, one);
  return V::Div(numerator, V::Add(one, e));
}

// Below 1.5 ulp; +-1 beyond +-3.92, the sign of zero is kept.
//   |x| < 0.925: x + x P(x^2); else 1 - e^Q(|x|), Q = log erfc, with x's sign.
template <class V>
HX_INLINE typename V::F Erf(typename V::F x) {
  constexpr float kP[] = {0x1.06eba8p-3f,  -0x1.812742p-2f, 0x1.ce2dcap-4f,
                          -0x1.b80962p-6f, 0x1.549664p-8f,  -0x1.a88d88p-11f,
                          0x1.574ec4p-14f};
  constexpr float kQ[] = {0x1.3bfaecp-13f, -0x1.211f3p+0f,   -0x1.446f6ap-1f,
                          -0x1.b9cab2p-4f, 0x1.95ebbap-6f,   -0x1.05ca04p-8f,
                          0x1.8d69f2p-12f, -0x1.7c7516p-17f, -0x1.8ad222p-21f};
  // erfc(4) < 2^-25: from there on 1 - erfc rounds to 1.
  const auto magnitude = V::Min(V::Set(4.0f), V::Abs(x));
  const auto square = V::Mul(magnitude, magnitude);
  const auto small = V::Fma(magnitude, Polynomial<V>(square, kP), magnitude);
  const auto complement = Exp<V>(Polynomial<V>(magnitude, kQ));
  const auto large = V::Sub(V::Set(1.0f), complement);
  return V::CopySign(V::IfLess(magnitude, V::Set(0.925f), small, large), x);
}

// x * sigmoid(x).
template <class V>
HX_INLINE typename V::F Silu(typename V::F x) {
  return V::Mul(x, Sigmoid<V>(x));
}

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
template <class V>
HX_INLINE typename V::F GeluTanh(typename V::F x) {
  const auto cube = V::Mul(V::Mul(x, x), x);
  const auto inner =
      V::Mul(V::Set(0.79788456f), V::Fma(V::Set(0.044715f), cube, x));
  const auto factor = V::Add(V::Set(1.0f), Tanh<V>(inner));
  return V::Mul(V::Mul(V::Set(0.5f), x), factor);
}

// x / 2 * (1 + erf(x / sqrt(2))).
template <class V>
HX_INLINE typename V::F GeluErf(typename V::F x) {
  const auto erf = Erf<V>(V::Mul(x, V::Set(0.70710678f)));
  return V::Mul(V::Mul(V::Set(0.5f), x), V::Add(V::Set(1.0f), erf));
}

// cap * tanh(x / cap).
template <class V>
HX_INLINE typename V::F CapSoftly(typename V::F x, typename V::F cap) {
  return V::Mul(cap, Tanh<V>(V::Div(x, cap)));
}

}  // namespace
}  // namespace hexllm::cpu
