// What ops with exact integer sums (linear, matmul) share: inputs as codes.
// Used by the files of ir/ops/ alone.
#pragma once

#include <vector>

#include "ir/encode.h"
#include "ir/ops.h"

namespace hexllm::ir {

// The encoding of input `index`, or null.
inline const Encoding* EncodingOf(const OpContext& context, size_t index) {
  return index < context.operands.size() ? context.operands[index].encoding
                                         : nullptr;
}

// As EncodingOf, if it has codes and one scale for the whole tensor; else null.
inline const Encoding* TensorCodes(const OpContext& context, size_t index) {
  const Encoding* encoding = EncodingOf(context, index);
  const bool good =
      encoding != nullptr && HasCodes(*encoding) && encoding->axis < 0;
  return good ? encoding : nullptr;
}

// code - zero point of each element; the encoding has one scale.
inline std::vector<int32_t> Steps(const Encoding& encoding,
                                  const HostTensor& tensor) {
  const int32_t zero =
      encoding.zero_points.empty() ? 0 : encoding.zero_points[0];
  std::vector<int32_t> steps(tensor.floats.size());
  EncodeRow(encoding, 0, tensor.floats, steps);
  for (int32_t& step : steps) step -= zero;
  return steps;
}

// The zero point of codes that count from 0: signed ones are shifted.
inline int64_t ZeroFromZero(const Encoding& encoding) {
  const int64_t zero =
      encoding.zero_points.empty() ? 0 : encoding.zero_points[0];
  if (encoding.dtype == DType::kI8) return zero + 128;
  return encoding.dtype == DType::kI16 ? zero + 32768 : zero;
}

// sum is that of (x code - zero point) * (w code - zero point), zero is
// ZeroFromZero(x) times the sum of (w code - zero point):
//   (floor((sum + zero) / 2^bits) - floor(zero / 2^bits + 1/2)) * 2^bits
inline int64_t DropBits(int64_t sum, int64_t zero, int64_t bits) {
  if (bits == 0) return sum;
  const int64_t half = int64_t{1} << (bits - 1);
  return (((sum + zero) >> bits) - ((zero + half) >> bits)) * (2 * half);
}

}  // namespace hexllm::ir
