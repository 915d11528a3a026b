// softmax: x[..,C] -> the same shape; exp(x) divided by its sum over the last
// axis. A row of -infinity (all hidden) gives zeros.
#include "ir/ops/softmax.h"

#include "ir/axes.h"
#include "ir/ops/table.h"

namespace hexllm::ir {

Result<TensorType> InferSoftmax(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"x", ".C"}};
  HX_RETURN_IF_ERROR(MatchInputs(context, kInputs).status());
  return *context.inputs[0];
}

HostTensor InterpretSoftmax(const OpContext&,
                            std::span<const HostTensor* const> inputs,
                            const TensorType& output) {
  const std::vector<float>& x = inputs[0]->floats;
  const auto width = static_cast<size_t>(output.shape.back());
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
