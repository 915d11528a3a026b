#include "backend/htp/lower_encodings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "base/quote.h"
#include "ir/encode.h"

namespace hexllm::htp {
namespace {

using ir::Encoding;

// Codes of u8 that one code of u16 stands for.
constexpr int32_t kWiden = 256;

bool IsSupported(const Encoding& encoding) {
  if (encoding.dtype == DType::kF16) return true;
  const bool unsigned_codes =
      encoding.dtype == DType::kU8 || encoding.dtype == DType::kU16;
  return unsigned_codes && encoding.bits == 0 && encoding.axis < 0;
}

}  // namespace

Status CheckValueEncodings(const ir::Graph& graph) {
  for (const ir::Value& value : graph.values) {
    if (value.constant.valid() || value.type.dtype != DType::kF32) continue;
    if (value.encoding && IsSupported(*value.encoding)) continue;
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("graph {}: value {} has {}; the HTP needs f16, or u8 or "
                    "u16 with one scale, on every value: choose a recipe with "
                    "a static scheme or fp16",
                    Quoted(graph.name), Quoted(value.name),
                    value.encoding ? "another encoding" : "no encoding")};
  }
  return OkStatus();
}

bool HasHalves(const ir::Graph& graph) {
  return std::ranges::any_of(
      graph.values, [](const ir::Value& value) { return IsHalf(value); });
}

DType WiderType(DType a, DType b) {
  if (a == DType::kF16 || b == DType::kF16) return DType::kF16;
  return a == DType::kU16 || b == DType::kU16 ? DType::kU16 : DType::kU8;
}

Encoding WidenedTo(DType dtype, const Encoding& encoding) {
  if (encoding.dtype == dtype) return encoding;
  if (dtype == DType::kF16) return {.dtype = DType::kF16};
  HX_CHECK(encoding.dtype == DType::kU8 && dtype == DType::kU16);
  return {.dtype = DType::kU16,
          .scales = {encoding.scales[0] / kWiden},
          .zero_points = {ZeroPointOf(encoding) * kWiden}};
}

Encoding ScaledBy(double factor, const Encoding& encoding) {
  Encoding scaled = encoding;
  for (float& scale : scaled.scales) {
    scale = static_cast<float>(static_cast<double>(scale) * factor);
  }
  return scaled;
}

ScalarConstant MakeScalar(DType dtype, double value) {
  if (dtype == DType::kF16) {
    return {.encoding = {.dtype = dtype},
            .code = F32ToF16(static_cast<float>(value))};
  }
  const int32_t most = ir::CodesOf({.dtype = dtype}).most;
  const bool negative = value < 0;
  const double magnitude = value == 0 ? 1 : std::abs(value);
  return {.encoding = {.dtype = dtype,
                       .scales = {static_cast<float>(magnitude / most)},
                       .zero_points = {negative ? most : 0}},
          .code = static_cast<uint16_t>(value > 0 ? most : 0)};
}

std::optional<TensorEncoding> TensorEncodingOf(const Encoding& encoding) {
  if (encoding.dtype == DType::kF16) return std::nullopt;
  return TensorEncoding{.scales = encoding.scales,
                        .zero_points = encoding.zero_points};
}

ir::Encoding EncodingOfSpec(const TensorSpec& spec) {
  ir::Encoding encoding{.dtype = spec.dtype};
  if (spec.encoding) {
    encoding.scales = spec.encoding->scales;
    encoding.zero_points = spec.encoding->zero_points;
  }
  return encoding;
}

}  // namespace hexllm::htp
