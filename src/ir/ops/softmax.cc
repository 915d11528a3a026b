// softmax: x[..,C] -> the same shape; exp(x) divided by its sum over the last
// axis. A row of -infinity (all hidden) gives zeros. With {fixed_point=1} codes
// become multiples of 1/65536 as base/chip_softmax.h says.
#include "ir/ops/softmax.h"

#include "base/check.h"
#include "base/chip_softmax.h"
#include "ir/axes.h"
#include "ir/ops/codes.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

namespace {

HostTensor SoftmaxOfCodes(const OpContext& context, const HostTensor& x) {
  const Encoding* codes = TensorCodes(context, 0);
  HX_CHECK(codes != nullptr);
  HostTensor out = x;
  const auto width = static_cast<size_t>(x.type.shape.back());
  for (size_t row = 0; row < x.floats.size(); row += width) {
    const std::span<float> numbers = std::span(out.floats).subspan(row, width);
    ChipSoftmax(numbers, codes->scales[0], numbers);
  }
  return out;
}

}  // namespace

Result<TensorType> InferSoftmax(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"x", ".C"}};
  HX_RETURN_IF_ERROR(MatchInputs(context, kInputs).status());
  return *context.inputs[0];
}

HostTensor InterpretSoftmax(const OpContext& context,
                            std::span<const HostTensor* const> inputs,
                            const TensorType& output) {
  const std::vector<float>& x = inputs[0]->floats;
  const auto width = static_cast<size_t>(output.shape.back());
  if (OptionalIntAttr(context.attrs, AttrName::kFixedPoint) != 0)
    return SoftmaxOfCodes(context, *inputs[0]);
  HostTensor out{.type = output};
  out.floats.reserve(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(row);
    std::vector<double> scores(first,
                               first + static_cast<std::ptrdiff_t>(width));
    Softmax(scores);
    for (const double weight : scores)
      out.floats.push_back(static_cast<float>(weight));
  }
  return out;
}

}  // namespace hexllm::ir
