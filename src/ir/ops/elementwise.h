// What elementwise ops share: their shape rules and loops. Used by the files of
// ir/ops/ alone.
#pragma once

#include <span>
#include <utility>

#include "ir/axes.h"
#include "ir/ops.h"

namespace hexllm::ir {

// x of any shape -> the same shape.
inline Result<TensorType> InferUnary(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"x", "."}};
  HX_RETURN_IF_ERROR(MatchInputs(context, kInputs).status());
  return *context.inputs[0];
}

// Two tensors of one shape -> that shape.
inline Result<TensorType> InferBinary(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"a", "."}, {"b", "."}};
  HX_RETURN_IF_ERROR(MatchInputs(context, kInputs).status());
  if (*context.inputs[0] != *context.inputs[1]) {
    return Error{ErrorCode::kBadInput,
                 "b: expected " + TypeToString(*context.inputs[0]) +
                     " as a, found " + TypeToString(*context.inputs[1])};
  }
  return *context.inputs[0];
}

// out[i] = f(x[i]), f in double, rounded to float once.
template <typename F>
HostTensor MapElements(const HostTensor& x, const TensorType& output, F f) {
  HostTensor out{.type = output};
  out.floats.reserve(x.floats.size());
  for (const float value : x.floats)
    out.floats.push_back(static_cast<float>(f(static_cast<double>(value))));
  return out;
}

// out[i] = f(a[i], b[i]), f in double, rounded to float once.
template <typename F>
HostTensor MapPairs(const HostTensor& a, const HostTensor& b, F f) {
  HostTensor out{.type = a.type};
  out.floats.reserve(a.floats.size());
  for (size_t i = 0; i < a.floats.size(); ++i) {
    out.floats.push_back(static_cast<float>(
        f(static_cast<double>(a.floats[i]), static_cast<double>(b.floats[i]))));
  }
  return out;
}

}  // namespace hexllm::ir
