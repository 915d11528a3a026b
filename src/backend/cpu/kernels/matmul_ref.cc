// The definition of matmul: weights as DequantizeRow gives them, then the
// 16-lane dot product.
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/lanes_ref.h"
#include "base/dequantize.h"
#include "base/dtype.h"

namespace hexllm::cpu::ref {
namespace {

void MatMul(DType dtype, const MatMulArgs& args) {
  const DTypeInfo& info = GetDTypeInfo(dtype);
  const auto k = static_cast<size_t>(args.k);
  const size_t row_bytes = k / info.block_elems * info.block_bytes;
  for (int64_t n = args.n_begin; n < args.n_end; ++n) {
    const ByteSpan row(args.w + n * args.w_row_bytes, row_bytes);
    DequantizeRow(dtype, row, {args.scratch, k});
    for (int64_t r = 0; r < args.rows; ++r) {
      float sum = Dot(args.x + r * args.x_stride, args.scratch, args.k);
      const int64_t at = r * args.out_stride + n;
      if (args.bias != nullptr) sum += args.bias[n];
      if (args.residual != nullptr) sum += args.residual[at];
      args.out[at] = sum;
    }
  }
}

}  // namespace

#define HX_WEIGHT_TYPE(name) \
  void MatMul##name(const MatMulArgs& args) { MatMul(DType::k##name, args); }
#include "backend/cpu/kernels/weight_types.def"
#undef HX_WEIGHT_TYPE

}  // namespace hexllm::cpu::ref
