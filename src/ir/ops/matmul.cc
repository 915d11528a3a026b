// matmul: a[B,M,K], b[B,K,N] {scale} -> [B,M,N].
//
//   out[b,m,n] = (sum over k of a[b,m,k] * b[b,k,n]) * scale
//
// The sum is in double, k in order; the product with the scale is rounded to
// f32 once. When both inputs have codes of one scale, the sum is the exact one
// of (a code - a zero point) * (b code - b zero point), times
// a.scale * b.scale * scale in double. Only then it may lose the low
// {dropped_bits}, 1 to 31 of them, as DropBits in ir/ops/codes.h says, where b
// stands for the weight.
#include <vector>

#include "base/check.h"
#include "ir/axes.h"
#include "ir/ops/codes.h"
#include "ir/ops/table.h"

namespace hexllm::ir {
namespace {

struct Sizes {
  size_t batch, rows, inner, columns;  // B, M, K, N
};

// Multiplies numbers of type T, which sum to an Acc: scale(sum, column of all
// matrices of b) is the output.
template <typename Acc, typename T, typename Scale>
std::vector<float> Multiply(const Sizes& sizes, const std::vector<T>& a,
                            const std::vector<T>& b, Scale scale) {
  std::vector<float> out;
  out.reserve(sizes.batch * sizes.rows * sizes.columns);
  for (size_t row = 0; row < sizes.batch * sizes.rows; ++row) {
    const T* a_row = a.data() + row * sizes.inner;
    const T* matrix = b.data() + row / sizes.rows * sizes.inner * sizes.columns;
    for (size_t n = 0; n < sizes.columns; ++n) {
      Acc sum = 0;
      for (size_t k = 0; k < sizes.inner; ++k) {
        sum += static_cast<Acc>(a_row[k]) *
               static_cast<Acc>(matrix[k * sizes.columns + n]);
      }
      out.push_back(scale(sum, row / sizes.rows * sizes.columns + n));
    }
  }
  return out;
}

// Of each column of each matrix [K,N].
std::vector<int64_t> ColumnSums(const Sizes& sizes,
                                const std::vector<int32_t>& b) {
  std::vector<int64_t> sums(sizes.batch * sizes.columns);
  const size_t matrix = sizes.inner * sizes.columns;
  for (size_t i = 0; i < b.size(); ++i)
    sums[i / matrix * sizes.columns + i % sizes.columns] += b[i];
  return sums;
}

}  // namespace

Result<TensorType> InferMatMul(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"a", "BMK"}, {"b", "BKN"}};
  HX_ASSIGN_OR_RETURN(const Axes axes, MatchInputs(context, kInputs));
  return axes.Activation("BMN");
}

HostTensor InterpretMatMul(const OpContext& context,
                           std::span<const HostTensor* const> inputs,
                           const TensorType& output) {
  const Shape& shape = inputs[0]->type.shape;
  const Sizes sizes{.batch = static_cast<size_t>(shape[0]),
                    .rows = static_cast<size_t>(shape[1]),
                    .inner = static_cast<size_t>(shape[2]),
                    .columns = static_cast<size_t>(output.shape[2])};
  const double scale = FloatAttr(context.attrs, AttrName::kScale);
  const Encoding* a = TensorCodes(context, 0);
  const Encoding* b = TensorCodes(context, 1);
  const int64_t dropped =
      OptionalIntAttr(context.attrs, AttrName::kDroppedBits);
  if (a == nullptr || b == nullptr) {
    HX_CHECK(dropped == 0);
    return {
        .type = output,
        .floats = Multiply<double>(sizes, inputs[0]->floats, inputs[1]->floats,
                                   [scale](double sum, size_t) {
                                     return static_cast<float>(sum * scale);
                                   })};
  }
  const double step = static_cast<double>(a->scales[0]) *
                      static_cast<double>(b->scales[0]) * scale;
  const std::vector<int32_t> b_steps = Steps(*b, *inputs[1]);
  const std::vector<int64_t> column_sums = ColumnSums(sizes, b_steps);
  const int64_t a_zero = ZeroFromZero(*a);
  return {.type = output,
          .floats = Multiply<int64_t>(
              sizes, Steps(*a, *inputs[0]), b_steps,
              [&](int64_t sum, size_t column) {
                const int64_t kept =
                    DropBits(sum, a_zero * column_sums[column], dropped);
                return static_cast<float>(static_cast<double>(kept) * step);
              })};
}

}  // namespace hexllm::ir
