// convert: x of any shape -> the same. Does nothing by itself: its output can
// have another encoding than its input. With {fixed_point=1} codes of u16
// become codes of u8 as ConvertCode in ir/encode.h says, which is not always
// the nearest.
#include "base/check.h"
#include "ir/ops/codes.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferConvert(const OpContext& context) {
  return InferUnary(context);
}

HostTensor InterpretConvert(const OpContext& context,
                            std::span<const HostTensor* const> inputs,
                            const TensorType&) {
  HostTensor out = *inputs[0];
  if (OptionalIntAttr(context.attrs, AttrName::kFixedPoint) == 0) return out;
  const Encoding* from = TensorCodes(context, 0);
  HX_CHECK(from != nullptr && context.output != nullptr);
  const auto conversion = FindConversion(*from, *context.output);
  HX_CHECK(conversion.has_value());
  for (float& value : out.floats) {
    value = DecodeOne(*context.output,
                      ConvertCode(*conversion, EncodeOne(*from, value)));
  }
  return out;
}

}  // namespace hexllm::ir
