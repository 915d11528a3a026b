#include "backend/cpu/row_codes.h"

#include "backend/cpu/kernels/packed.h"

namespace hexllm::cpu {
namespace {

constexpr int64_t kPartAlignment = 64;

int64_t AlignUp(int64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

// Bytes of one number per block of R rows.
int64_t BlockBytes(int64_t rows, int64_t k) {
  return AlignUp(rows * (k / kQuantBlock) * int64_t{sizeof(float)});
}

}  // namespace

int64_t QuantizedBytes(int64_t rows, int64_t k) {
  return AlignUp(rows * k) + 2 * BlockBytes(rows, k);
}

QuantizedRows QuantizedAt(std::byte* memory, int64_t rows, int64_t k,
                          int64_t first) {
  std::byte* const scales = memory + AlignUp(rows * k);
  std::byte* const sums = scales + BlockBytes(rows, k);
  const int64_t blocks = first * (k / kQuantBlock);
  return {.codes = reinterpret_cast<int8_t*>(memory) + first * k,
          .scales = reinterpret_cast<float*>(scales) + blocks,
          .sums = reinterpret_cast<int32_t*>(sums) + blocks};
}

int64_t RowCodesBytes(int64_t rows, int64_t k) {
  return AlignUp(rows * PaddedDepth(k) * int64_t{sizeof(int16_t)}) +
         AlignUp(rows * int64_t{sizeof(int64_t)});
}

RowCodes RowCodesAt(std::byte* memory, int64_t rows, int64_t k) {
  const int64_t stride = PaddedDepth(k);
  const int64_t codes = AlignUp(rows * stride * int64_t{sizeof(int16_t)});
  return {.codes = reinterpret_cast<int16_t*>(memory),
          .stride = stride,
          .sums = reinterpret_cast<int64_t*>(memory + codes)};
}

}  // namespace hexllm::cpu
