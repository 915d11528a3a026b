#include "ir/float_constant.h"

#include <memory>
#include <utility>

#include "base/check.h"

namespace hexllm::ir {

Constant MakeFloatConstant(std::string name, Shape shape,
                           std::span<const float> values) {
  HX_CHECK(NumElements(shape) == std::ssize(values));
  Constant constant{.name = std::move(name),
                    .type = {DType::kF32, std::move(shape)}};
  constant.owned =
      std::make_shared<const std::string>(AsText(std::as_bytes(values)));
  constant.bytes = AsBytes(*constant.owned);
  return constant;
}

std::vector<float> ReadAllRows(const Constant& constant) {
  const auto width = static_cast<size_t>(RowElems(constant));
  const auto rows = static_cast<size_t>(NumRows(constant));
  std::vector<float> values(rows * width);
  for (size_t row = 0; row < rows; ++row) {
    ReadRow(constant, static_cast<int64_t>(row),
            std::span(values).subspan(row * width, width));
  }
  return values;
}

}  // namespace hexllm::ir
