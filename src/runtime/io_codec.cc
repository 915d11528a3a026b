#include "runtime/io_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/half.h"

namespace hexllm {
namespace {

using artifact::IoEncoding;
using artifact::IoSpec;

template <typename T>
void Store(std::span<std::byte> out, size_t i, T value) {
  std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
}

template <typename T>
T Fetch(std::span<const std::byte> in, size_t i) {
  T value;
  std::memcpy(&value, in.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Quantize(std::span<const float> in, const IoEncoding& encoding,
              std::span<std::byte> out) {
  const double lowest = std::numeric_limits<T>::min();
  const double highest = std::numeric_limits<T>::max();
  for (size_t i = 0; i < in.size(); ++i) {
    const double code =
        std::nearbyint(static_cast<double>(in[i]) / encoding.scale) +
        encoding.zero_point;
    // The order of arguments sends NaN to `lowest`.
    const double clamped = std::min(std::max(lowest, code), highest);
    Store<T>(out, i, static_cast<T>(clamped));
  }
}

template <typename T>
void Dequantize(std::span<const std::byte> in, const IoEncoding& encoding,
                std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t code = Fetch<T>(in, i);
    out[i] = encoding.scale * static_cast<float>(code - encoding.zero_point);
  }
}

}  // namespace

void EncodeFloats(std::span<const float> in, const IoSpec& spec,
                  std::span<std::byte> out) {
  HX_CHECK(out.size() == in.size() * ElementBytes(spec.dtype));
  switch (spec.dtype) {
    case DType::kF32:
      std::memcpy(out.data(), in.data(), out.size());
      return;
    case DType::kF16:
      for (size_t i = 0; i < in.size(); ++i) Store(out, i, F32ToF16(in[i]));
      return;
    case DType::kBF16:
      for (size_t i = 0; i < in.size(); ++i) Store(out, i, F32ToBF16(in[i]));
      return;
    case DType::kU8:
      return Quantize<uint8_t>(in, *spec.encoding, out);
    case DType::kI8:
      return Quantize<int8_t>(in, *spec.encoding, out);
    case DType::kU16:
      return Quantize<uint16_t>(in, *spec.encoding, out);
    case DType::kI16:
      return Quantize<int16_t>(in, *spec.encoding, out);
    default:
      HX_CHECK(false);  // the artifact's reader refuses other types
  }
}

void DecodeFloats(std::span<const std::byte> in, const IoSpec& spec,
                  std::span<float> out) {
  HX_CHECK(in.size() == out.size() * ElementBytes(spec.dtype));
  switch (spec.dtype) {
    case DType::kF32:
      std::memcpy(out.data(), in.data(), in.size());
      return;
    case DType::kF16:
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = F16ToF32(Fetch<uint16_t>(in, i));
      return;
    case DType::kBF16:
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = BF16ToF32(Fetch<uint16_t>(in, i));
      return;
    case DType::kU8:
      return Dequantize<uint8_t>(in, *spec.encoding, out);
    case DType::kI8:
      return Dequantize<int8_t>(in, *spec.encoding, out);
    case DType::kU16:
      return Dequantize<uint16_t>(in, *spec.encoding, out);
    case DType::kI16:
      return Dequantize<int16_t>(in, *spec.encoding, out);
    default:
      HX_CHECK(false);  // the artifact's reader refuses other types
  }
}

size_t ElementBytes(DType dtype) {
  HX_CHECK(!IsBlockType(dtype));
  return GetDTypeInfo(dtype).block_bytes;
}

bool SameStorage(const IoSpec& a, const IoSpec& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.encoding == b.encoding;
}

}  // namespace hexllm
