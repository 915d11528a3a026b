// What rounding to an encoding means: the one scalar definition. Used by the
// interpreter, by lowerings (which write the codes of weights) and, as their
// reference, by kernels. Choosing encodings is quant's business.
//
// All in f32, rint = half to even, as ExecuTorch's quantize_per_tensor and
// quantize_per_channel do:
//   code  = clamp(rint(x / scale) + zero_point, least, most)
//   value = (code - zero_point) * scale
// where unsigned codes go from 0 to 2^bits - 1 and signed ones from
// -(2^(bits-1) - 1) to 2^(bits-1) - 1 (symmetric: the lowest is not used).
// With blocks, scale = block_scale * scales[axis index]. NaN becomes the zero
// point.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "ir/types.h"

namespace hexllm::ir {

// The smallest and largest code.
struct CodeRange {
  int32_t least = 0;
  int32_t most = 0;
};

// True for the encodings that have codes: not kF16 nor block types.
bool HasCodes(const Encoding& encoding);
// HasCodes encodings only (checked).
CodeRange CodesOf(const Encoding& encoding);
// Scale and zero point as one: of a per-tensor encoding.
int32_t EncodeOne(const Encoding& encoding, float value);
// As the HTP makes codes of u8 of halves (attribute half_steps of convert;
// measured on v69 to v81, all halves): x / scale is rounded to a half, then to
// the nearest whole number, halfway away from 0.
int32_t EncodeHalf(const Encoding& encoding, float value);
// The highest code that is not above the value, if there is one.
int32_t EncodeDown(const Encoding& encoding, double value);
float DecodeOne(const Encoding& encoding, int32_t code);

// The codes of row `row` (along axis 0) of a tensor whose encoding has axis 0
// or none. values.size() == codes.size().
void EncodeRow(const Encoding& encoding, int64_t row,
               std::span<const float> values, std::span<int32_t> codes);

// What the i8 codes of row `row` stand for, under the same conditions. Rounding
// that gives the codes again: with magnitudes of 7 or 127 the two roundings of
// code * scale / scale are far from a half.
void DecodeRow(const Encoding& encoding, int64_t row, ByteSpan codes,
               std::span<float> values);

// Rounds the elements of a tensor of `shape`, in place, to what codes can stand
// for (kF16: to half precision). Block types: rows are rounded as
// base/quantize.h does.
void RoundToEncoding(const Encoding& encoding, const Shape& shape,
                     std::span<float> values);

// The code of a bias: clamp(rint(bias / scale)) to int32, in double, where
// scale = x.scale * w.scale is the accumulator's.
int32_t EncodeBias(float bias, double scale);

// Codes of u16 as codes of u8 in fixed point, as the HTP has it (attribute
// fixed_point of convert; measured on v68 to v81, all codes). With r =
// from.scale / to.scale < 1/32, shift is the least for which multiplier =
// round(r * 2^shift) is 2^13 or more, but at most 22:
//   t(code) = ((code + 1) * multiplier + 2^14) >> 15
//   offset  = (to.zero_point << (shift - 15)) + (1 << (shift - 16)) -
//             t(from.zero_point)
struct CodeConversion {
  int32_t multiplier = 1;  // up to 2^14
  int32_t shift = 16;      // 16 to 22
  int32_t offset = 0;
};
// Nothing for other types, ratios, or encodings of more than one scale.
std::optional<CodeConversion> FindConversion(const Encoding& from,
                                             const Encoding& to);
// clamp((t(code) + offset) >> (shift - 15), 0, 255); `code` is 0 to 65535.
inline int32_t ConvertCode(const CodeConversion& conversion, int32_t code) {
  const int32_t t = ((code + 1) * conversion.multiplier + (1 << 14)) >> 15;
  const int32_t made = (t + conversion.offset) >> (conversion.shift - 15);
  return made < 0 ? 0 : (made > 255 ? 255 : made);
}

}  // namespace hexllm::ir
