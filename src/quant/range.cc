#include "quant/range.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "ir/encode.h"

namespace hexllm::quant {
namespace {

float MostCode(int bits) {
  HX_CHECK(bits == 8 || bits == 16);
  return static_cast<float>((1 << bits) - 1);
}

ir::Encoding PerTensor(int bits, float scale, int32_t zero_point) {
  return {.dtype = bits == 8 ? DType::kU8 : DType::kU16,
          .scales = {scale},
          .zero_points = {zero_point}};
}

float FreeScale(Range range, int bits) {
  const float most = MostCode(bits);
  const float min = std::min(range.min, 0.0f);
  const float max = std::max(range.max, 0.0f);
  // Divided first where the width itself overflows.
  const float width = max - min;
  const float step =
      std::isfinite(width) ? width / most : max / most - min / most;
  return std::max(step, LeastScale(bits));
}

int32_t MiddleCode(int bits) { return 1 << (bits - 1); }

float MiddleScale(Range range, int bits) {
  const float magnitude = std::max({-range.min, range.max, 0.0f});
  return std::max(magnitude / static_cast<float>(MiddleCode(bits) - 1),
                  LeastScale(bits));
}

}  // namespace

float LeastScale(int bits) {
  HX_CHECK(bits == 8 || bits == 16);
  return static_cast<float>(0.0001 / ((1 << bits) - 1));
}

float ActivationScale(Range range, ActivationFormat format) {
  HX_CHECK(std::isfinite(range.min) && std::isfinite(range.max) &&
           range.min <= range.max);
  return format.zero_point == ZeroPoint::kFree
             ? FreeScale(range, format.bits)
             : MiddleScale(range, format.bits);
}

ir::Encoding ActivationEncoding(Range range, ActivationFormat format) {
  const float scale = ActivationScale(range, format);
  if (format.zero_point == ZeroPoint::kMiddle)
    return PerTensor(format.bits, scale, MiddleCode(format.bits));
  const float least = std::min(range.min, 0.0f);
  const float zero_point =
      std::clamp(std::nearbyint(-least / scale), 0.0f, MostCode(format.bits));
  return PerTensor(format.bits, scale, static_cast<int32_t>(zero_point));
}

ir::Encoding ActivationEncoding(Range range, int bits, bool symmetric) {
  return ActivationEncoding(
      range, {.bits = bits,
              .zero_point = symmetric ? ZeroPoint::kMiddle : ZeroPoint::kFree});
}

ir::Encoding ProbabilityEncoding(int bits) {
  HX_CHECK(bits == 8 || bits == 16);
  return PerTensor(bits, std::ldexp(1.0f, -bits), 0);
}

Range RangeOf(const ir::Encoding& encoding) {
  HX_CHECK(ir::HasCodes(encoding) && encoding.axis < 0);
  const ir::CodeRange codes = ir::CodesOf(encoding);
  return {ir::DecodeOne(encoding, codes.least),
          ir::DecodeOne(encoding, codes.most)};
}

}  // namespace hexllm::quant
