// Ranges of activations and what follows from them: encodings and expected
// errors. Used by observers, by AssignEncodings and by calibration. Not where
// ranges are found (quant/observer.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/types.h"

namespace hexllm::quant {

struct Range {
  float min = 0;
  float max = 0;
  bool operator==(const Range&) const = default;
};

// The greatest magnitude in it.
inline float MostOf(const Range& range) {
  return std::max(-range.min, range.max);
}

// The least scale of codes of `bits` (8 or 16): 0.0001 / (2^bits - 1), as
// ExecuTorch's DEFAULT_EPS_8BIT and DEFAULT_EPS_16BIT, so that a range of
// nothing but zeros has a usable scale.
float LeastScale(int bits);

// Whether the zero point follows the range or is the middle code.
enum class ZeroPoint : uint8_t { kFree, kMiddle };

struct ActivationFormat {
  int bits = 16;  // 8 or 16
  ZeroPoint zero_point = ZeroPoint::kFree;
};

// u8 or u16, one scale for the tensor. With n = 2^bits - 1, in f32:
//   kFree: the range is widened to hold 0; scale = max(width / n,
//     LeastScale), zero point = clamp(rint(-min / scale), 0, n)
//   kMiddle: scale = max(max(-min, max) / (2^(bits-1) - 1), LeastScale), zero
//     point 2^(bits-1): the grid of signed symmetric codes
// `range` is finite with min <= max (checked).
ir::Encoding ActivationEncoding(Range range, ActivationFormat format);
// Its scale alone.
float ActivationScale(Range range, ActivationFormat format);

// The same with a bool, as recipes have it.
ir::Encoding ActivationEncoding(Range range, int bits, bool symmetric);

// Softmax outputs: [0, 1) in steps of 2^-bits.
ir::Encoding ProbabilityEncoding(int bits);

// The numbers that the least and the greatest code of a per-tensor encoding
// with codes stand for.
Range RangeOf(const ir::Encoding& encoding);

}  // namespace hexllm::quant
