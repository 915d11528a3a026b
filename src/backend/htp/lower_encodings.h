// Encodings of values as QNN tensors have them, and the arithmetic that the
// HTP has for them. Used by htp/lower* and htp/ops.
#pragma once

#include "backend/htp/qnn_tensor.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::htp {

// kUnsupported names the first computed value or input of `graph` that is not
// f16, or codes of u8 or u16 with one scale.
Status CheckValueEncodings(const ir::Graph& graph);

inline bool IsHalf(const ir::Encoding& encoding) {
  return encoding.dtype == DType::kF16;
}
inline bool IsHalf(const ir::Value& value) {
  return value.encoding && IsHalf(*value.encoding);
}

// True when a value of `graph` is f16.
bool HasHalves(const ir::Graph& graph);

inline int32_t ZeroPointOf(const ir::Encoding& encoding) {
  return encoding.zero_points.empty() ? 0 : encoding.zero_points[0];
}

// What the HTP computes in when its operands are of the types `a` and `b`: f16
// when one is, else the wider one.
DType WiderType(DType a, DType b);

// The encoding of the same numbers in a wider type: u8 codes times 256 as u16;
// f16. `encoding` itself when it has that type.
ir::Encoding WidenedTo(DType dtype, const ir::Encoding& encoding);

// The encoding of `factor` times the numbers: the same codes. f16 stays.
ir::Encoding ScaledBy(double factor, const ir::Encoding& encoding);

// A constant of one number, and the code that stands for it: u8, u16 or (the
// bits of) f16. The largest code, or code 0 for a negative number, so that a
// product with it keeps all bits.
struct ScalarConstant {
  ir::Encoding encoding;
  uint16_t code = 0;
};
ScalarConstant MakeScalar(DType dtype, double value);

// For an activation: nothing for f16.
std::optional<TensorEncoding> TensorEncodingOf(const ir::Encoding& encoding);
// The reverse.
ir::Encoding EncodingOfSpec(const TensorSpec& spec);

}  // namespace hexllm::htp
