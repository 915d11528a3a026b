// Numbers to and from the elements of encoded graph inputs and outputs, by the
// definitions of ir/encode.h. For tests of backends; the runtime has its own
// (runtime/io_codec.h).
#pragma once

#include <cstring>
#include <span>

#include "artifact/manifest.h"
#include "base/check.h"
#include "base/half.h"
#include "ir/encode.h"

namespace hexllm::testing {

inline ir::Encoding EncodingOf(const artifact::IoSpec& spec) {
  HX_CHECK(spec.encoding.has_value());
  return {.dtype = spec.dtype,
          .scales = {spec.encoding->scale},
          .zero_points = {spec.encoding->zero_point}};
}

// `spec` is f16, or u8, i8, u16 or i16 with an encoding.
inline void EncodeTensor(std::span<const float> in,
                         const artifact::IoSpec& spec,
                         std::span<std::byte> out) {
  const size_t bytes = GetDTypeInfo(spec.dtype).block_bytes;
  HX_CHECK(out.size() == in.size() * bytes);
  for (size_t i = 0; i < in.size(); ++i) {
    const int32_t code = spec.dtype == DType::kF16
                             ? F32ToF16(in[i])
                             : EncodeOne(EncodingOf(spec), in[i]);
    std::memcpy(out.data() + i * bytes, &code, bytes);  // little-endian
  }
}

inline void DecodeTensor(std::span<const std::byte> in,
                         const artifact::IoSpec& spec, std::span<float> out) {
  const size_t bytes = GetDTypeInfo(spec.dtype).block_bytes;
  HX_CHECK(in.size() == out.size() * bytes);
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, in.data() + i * bytes, bytes);
    int32_t code = bits;
    if (spec.dtype == DType::kI8) code = static_cast<int8_t>(bits);
    if (spec.dtype == DType::kI16) code = static_cast<int16_t>(bits);
    out[i] = spec.dtype == DType::kF16 ? F16ToF32(bits)
                                       : DecodeOne(EncodingOf(spec), code);
  }
}

}  // namespace hexllm::testing
