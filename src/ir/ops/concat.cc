// concat: a, b {axis} -> the elements of a, then those of b along the axis. All
// other axes are equal; along this one either may be empty.
#include <string>

#include "ir/axes.h"
#include "ir/ops/table.h"

namespace hexllm::ir {
namespace {

// Elements of `shape` behind one index of the axes before `axis`.
size_t RunElems(const Shape& shape, size_t axis) {
  size_t elems = 1;
  for (size_t i = axis; i < shape.size(); ++i)
    elems *= static_cast<size_t>(shape[i]);
  return elems;
}

}  // namespace

Result<TensorType> InferConcat(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"a", "."}, {"b", "."}};
  HX_RETURN_IF_ERROR(MatchInputs(context, kInputs).status());
  const Shape& a = context.inputs[0]->shape;
  const Shape& b = context.inputs[1]->shape;
  const int64_t axis = IntAttr(context.attrs, AttrName::kAxis);
  if (axis < 0 || axis >= static_cast<int64_t>(a.size())) {
    return Error{ErrorCode::kBadInput, "attribute axis: expected one of " +
                                           TypeToString(*context.inputs[0]) +
                                           ", found " + std::to_string(axis)};
  }
  const auto at = static_cast<size_t>(axis);
  Shape wanted = a;
  if (b.size() == a.size()) wanted[at] = b[at];
  int64_t sum = 0;
  if (b != wanted || __builtin_add_overflow(a[at], b[at], &sum)) {
    return Error{ErrorCode::kBadInput,
                 "b: expected " + TypeToString(*context.inputs[0]) +
                     " as a but for axis " + std::to_string(axis) + ", found " +
                     TypeToString(*context.inputs[1])};
  }
  wanted[at] = sum;
  return TensorType{.dtype = DType::kF32, .shape = std::move(wanted)};
}

HostTensor InterpretConcat(const OpContext& context,
                           std::span<const HostTensor* const> inputs,
                           const TensorType& output) {
  const auto axis =
      static_cast<size_t>(IntAttr(context.attrs, AttrName::kAxis));
  const auto total = static_cast<size_t>(*NumElements(output.shape));
  HostTensor out{.type = output};
  out.floats.reserve(total);
  for (size_t run = 0; out.floats.size() < total; ++run) {
    for (const HostTensor* part : inputs) {
      const auto elems =
          static_cast<std::ptrdiff_t>(RunElems(part->type.shape, axis));
      const auto first =
          part->floats.begin() + static_cast<std::ptrdiff_t>(run) * elems;
      out.floats.insert(out.floats.end(), first, first + elems);
    }
  }
  return out;
}

}  // namespace hexllm::ir
