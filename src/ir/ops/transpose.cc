// transpose: x {perm} -> axes in another order: out axis i is in axis perm[i],
// so out[j] = x[i] where i[perm[a]] = j[a].
//   perm [1,0,2]: [T,H,D] -> [H,T,D]
#include "ir/ops/transpose.h"

#include "ir/axes.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

bool KeepsOrder(const Shape& shape, const std::vector<int64_t>& perm) {
  int64_t last = -1;
  for (const int64_t axis : perm) {
    if (shape[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

Result<TensorType> InferTranspose(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"x", "."}};
  HX_RETURN_IF_ERROR(MatchInputs(context, kInputs).status());
  const Shape& in = context.inputs[0]->shape;
  const std::vector<int64_t>& perm = IntsAttr(context.attrs, AttrName::kPerm);
  std::vector<bool> seen(in.size(), false);
  TensorType out{.dtype = DType::kF32, .shape = {}};
  bool good = perm.size() == in.size();
  for (size_t i = 0; good && i < perm.size(); ++i) {
    const auto axis = static_cast<size_t>(perm[i]);
    good = perm[i] >= 0 && axis < in.size() && !seen[axis];
    if (!good) break;
    seen[axis] = true;
    out.shape.push_back(in[axis]);
  }
  if (!good) {
    return Error{ErrorCode::kBadInput,
                 "attribute perm: expected each axis of " +
                     TypeToString(*context.inputs[0]) + " once, found " +
                     ShapeToString(perm)};
  }
  return out;
}

HostTensor InterpretTranspose(const OpContext& context,
                              std::span<const HostTensor* const> inputs,
                              const TensorType& output) {
  const HostTensor& x = *inputs[0];
  const std::vector<int64_t>& perm = IntsAttr(context.attrs, AttrName::kPerm);
  const size_t rank = perm.size();
  std::vector<size_t> in_strides(rank, 1);
  for (size_t i = rank; i-- > 1;)
    in_strides[i - 1] = in_strides[i] * static_cast<size_t>(x.type.shape[i]);
  HostTensor out{.type = output};
  out.floats.reserve(x.floats.size());
  std::vector<size_t> at(rank, 0);  // index in the output
  for (size_t n = 0; n < x.floats.size(); ++n) {
    size_t from = 0;
    for (size_t i = 0; i < rank; ++i)
      from += at[i] * in_strides[static_cast<size_t>(perm[i])];
    out.floats.push_back(x.floats[from]);
    for (size_t i = rank; i-- > 0;) {
      if (++at[i] < static_cast<size_t>(output.shape[i])) break;
      at[i] = 0;
    }
  }
  return out;
}

}  // namespace hexllm::ir
