// convert: x of any shape -> the same. Does nothing by itself: its output can
// have another encoding than its input. Not always to the nearest code, as
// ir/encode.h says, go codes of u16 with {fixed_point=1} (ConvertCode) and
// halves with {half_steps=1} (EncodeHalf) to codes of u8.
#include "base/check.h"
#include "ir/ops/codes.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/table.h"

namespace hexllm::ir {
namespace {

HostTensor ConvertCodes(const OpContext& context, const HostTensor& x) {
  const Encoding* from = TensorCodes(context, 0);
  HX_CHECK(from != nullptr && context.output != nullptr);
  const auto conversion = FindConversion(*from, *context.output);
  HX_CHECK(conversion.has_value());
  HostTensor out = x;
  for (float& value : out.floats) {
    value = DecodeOne(*context.output,
                      ConvertCode(*conversion, EncodeOne(*from, value)));
  }
  return out;
}

HostTensor ConvertHalves(const OpContext& context, const HostTensor& x) {
  HX_CHECK(context.output != nullptr);
  HostTensor out = x;
  for (float& value : out.floats) {
    value = DecodeOne(*context.output, EncodeHalf(*context.output, value));
  }
  return out;
}

}  // namespace

Result<TensorType> InferConvert(const OpContext& context) {
  return InferUnary(context);
}

HostTensor InterpretConvert(const OpContext& context,
                            std::span<const HostTensor* const> inputs,
                            const TensorType&) {
  if (OptionalIntAttr(context.attrs, AttrName::kFixedPoint) != 0)
    return ConvertCodes(context, *inputs[0]);
  if (OptionalIntAttr(context.attrs, AttrName::kHalfSteps) != 0)
    return ConvertHalves(context, *inputs[0]);
  return *inputs[0];
}

}  // namespace hexllm::ir
