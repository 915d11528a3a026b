// The vector abstraction of math.h for one float: the meaning of its names.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace hexllm::cpu {
namespace {

struct VecScalar {
  using F = float;
  using I = uint32_t;

  static F Set(float value) { return value; }
  static F Add(F a, F b) { return a + b; }
  static F Sub(F a, F b) { return a - b; }
  static F Mul(F a, F b) { return a * b; }
  static F Div(F a, F b) { return a / b; }
  // a * b + c, rounded once.
  static F Fma(F a, F b, F c) { return std::fma(a, b, c); }
  // The second operand when one is NaN or both are equal.
  static F Min(F a, F b) { return a < b ? a : b; }
  static F Max(F a, F b) { return a > b ? a : b; }
  static F Abs(F a) { return std::fabs(a); }
  static F Negate(F a) { return -a; }
  static F CopySign(F magnitude, F sign) {
    return std::copysign(magnitude, sign);
  }
  // a < b ? then : otherwise.
  static F IfLess(F a, F b, F then, F otherwise) {
    return a < b ? then : otherwise;
  }

  // Two's complement, wrapping.
  static I SetInt(int32_t value) { return static_cast<I>(value); }
  static I AddInt(I a, I b) { return a + b; }
  static I SubInt(I a, I b) { return a - b; }
  template <int kBits>
  static I ShiftLeft(I a) {
    return a << kBits;
  }
  template <int kBits>
  static I ShiftRightSigned(I a) {
    return static_cast<I>(static_cast<int32_t>(a) >> kBits);
  }
  static I Bits(F a) { return std::bit_cast<I>(a); }
  static F FromBits(I a) { return std::bit_cast<F>(a); }
};

}  // namespace
}  // namespace hexllm::cpu
