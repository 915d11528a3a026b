// reshape: x {shape} -> the same elements in the same row-major order, seen
// with another shape.
#include "ir/axes.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferReshape(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"x", "."}};
  HX_RETURN_IF_ERROR(MatchInputs(context, kInputs).status());
  const std::vector<int64_t>& shape = IntsAttr(context.attrs, AttrName::kShape);
  const auto wanted = NumElements(shape);
  if (!wanted || wanted != NumElements(context.inputs[0]->shape)) {
    return Error{ErrorCode::kBadInput,
                 "attribute shape: expected as many elements as " +
                     TypeToString(*context.inputs[0]) + ", found " +
                     ShapeToString(shape)};
  }
  return TensorType{.dtype = DType::kF32, .shape = shape};
}

HostTensor InterpretReshape(const OpContext&,
                            std::span<const HostTensor* const> inputs,
                            const TensorType& output) {
  return {.type = output, .floats = inputs[0]->floats};
}

}  // namespace hexllm::ir
