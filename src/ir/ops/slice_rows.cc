// slice_rows: x[T,..] {begin, count} -> [count,..]; rows begin .. begin+count-1
// of the first axis.
#include "ir/axes.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferSliceRows(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"x", "."}};
  HX_RETURN_IF_ERROR(MatchInputs(context, kInputs).status());
  TensorType out = *context.inputs[0];
  const int64_t begin = IntAttr(context.attrs, AttrName::kBegin);
  const int64_t count = IntAttr(context.attrs, AttrName::kCount);
  if (out.shape.empty() || begin < 0 || count < 1 || count > out.shape[0] ||
      begin > out.shape[0] - count) {
    return Error{ErrorCode::kBadInput,
                 "attributes begin, count: expected rows of " +
                     TypeToString(out) + ", found " + std::to_string(count) +
                     " rows from " + std::to_string(begin)};
  }
  out.shape[0] = count;
  return out;
}

HostTensor InterpretSliceRows(const OpContext& context,
                              std::span<const HostTensor* const> inputs,
                              const TensorType& output) {
  const HostTensor& x = *inputs[0];
  const int64_t row = static_cast<int64_t>(x.floats.size()) / x.type.shape[0];
  const auto first =
      x.floats.begin() + IntAttr(context.attrs, AttrName::kBegin) * row;
  return {.type = output,
          .floats = std::vector<float>(first, first + output.shape[0] * row)};
}

}  // namespace hexllm::ir
