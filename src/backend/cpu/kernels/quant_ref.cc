// The definition of rounding rows to 8-bit codes and of the products of codes.
// Weights are unpacked by rows, so this checks the order of packing too.
#include <bit>
#include <cmath>
#include <cstring>

#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/packed.h"
#include "base/half.h"

namespace hexllm::cpu::ref {
namespace {

// The largest magnitude; NaNs are larger than all numbers.
float LargestMagnitude(const float* x) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < kQuantBlock; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(std::fabs(x[i]));
    if (bits > largest) largest = bits;
  }
  return std::bit_cast<float>(largest);
}

int8_t RoundToCode(float scaled) {
  if (std::isnan(scaled)) return 0;
  const float clamped = std::fmin(std::fmax(scaled, -127.0f), 127.0f);
  return static_cast<int8_t>(std::nearbyint(clamped));
}

// One row of a panel, as signed codes and factors.
struct WeightRow {
  const std::byte* panel;
  PackedFormat format;
  int64_t blocks;
  int64_t row;

  float Factor(int64_t block, int64_t index) const {
    uint16_t bits = 0;
    std::memcpy(
        &bits,
        panel + block * format.factor_bytes + (index * kPackedRows + row) * 2,
        sizeof(bits));
    return F16ToF32(bits);
  }
  int Byte(int64_t block, int64_t group, int64_t k) const {
    const std::byte* codes =
        panel + PackedCodesOffset(format, blocks) + block * format.code_bytes;
    return static_cast<int>(codes[group * kPackedRows * kPackedGroup +
                                  row * kPackedGroup + k % kPackedGroup]);
  }
  int SignedCode(int64_t block, int64_t k) const {
    return Byte(block, k / kPackedGroup, k) - 128;
  }
  int NibbleCode(int64_t block, int64_t k) const {
    const int64_t group = k / kPackedGroup;
    return Byte(block, group / 2, k) >> (group % 2 * 4) & 15;
  }
};

WeightRow RowOf(const std::byte* w, const PackedFormat& format, int64_t blocks,
                int64_t n) {
  return {w + n / kPackedRows * PackedPanelSize(format, blocks), format, blocks,
          n % kPackedRows};
}

// x . w of row r of x and one row of weights.
float Dot(const MatMulQArgs& args, int64_t r, const WeightRow& w) {
  const bool has_minimum = w.format.factor_bytes == kPackedQ4_1.factor_bytes;
  float acc = 0.0f;
  for (int64_t b = 0; b < w.blocks; ++b) {
    const int8_t* x = args.x.codes + r * args.k + b * kQuantBlock;
    int32_t dot = 0;
    for (int64_t k = 0; k < kQuantBlock; ++k) {
      dot += x[k] * (has_minimum ? w.NibbleCode(b, k) : w.SignedCode(b, k));
    }
    const float scale = args.x.scales[r * w.blocks + b];
    const auto sum = static_cast<float>(args.x.sums[r * w.blocks + b]);
    acc = std::fma(static_cast<float>(dot), w.Factor(b, 0) * scale, acc);
    if (has_minimum) acc = std::fma(w.Factor(b, 1), scale * sum, acc);
  }
  return acc;
}

void MatMulQ(const MatMulQArgs& args, const PackedFormat& format) {
  const int64_t blocks = args.k / kQuantBlock;
  for (int64_t n = args.n_begin; n < args.n_end; ++n) {
    const WeightRow w = RowOf(args.w, format, blocks, n);
    for (int64_t r = 0; r < args.rows; ++r) {
      float sum = Dot(args, r, w);
      const int64_t at = r * args.out_stride + n;
      if (args.bias != nullptr) sum += args.bias[n];
      if (args.residual != nullptr) sum += args.residual[at];
      args.out[at] = sum;
    }
  }
}

}  // namespace

void QuantizeRows(const QuantizeRowsArgs& args) {
  const int64_t blocks = args.k / kQuantBlock;
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t b = 0; b < blocks; ++b) {
      const float* x = args.x + r * args.x_stride + b * kQuantBlock;
      int8_t* codes = args.out.codes + r * args.k + b * kQuantBlock;
      const float amax = LargestMagnitude(x);
      const float inverse = amax == 0.0f ? 0.0f : 127.0f / amax;
      int32_t sum = 0;
      for (int64_t i = 0; i < kQuantBlock; ++i) {
        codes[i] = RoundToCode(x[i] * inverse);
        sum += codes[i];
      }
      args.out.scales[r * blocks + b] = amax / 127.0f;
      args.out.sums[r * blocks + b] = sum;
    }
  }
}

void MatMulQ4_1Q(const MatMulQArgs& args) { MatMulQ(args, kPackedQ4_1); }
void MatMulQ8_0Q(const MatMulQArgs& args) { MatMulQ(args, kPackedQ8_0); }

void CodeMatMul(const CodeMatMulArgs& args) {
  const int64_t blocks = PaddedDepth(args.k) / kQuantBlock;
  for (int64_t j = 0; j < args.outputs; ++j) {
    const WeightRow w = {args.w, kPackedI8, blocks, j};
    const WeightRow low = {args.low, kPackedI8, blocks, j};
    for (int64_t r = 0; r < args.rows; ++r) {
      int64_t dot = 0;
      for (int64_t k = 0; k < args.k; ++k) {
        const int64_t block = k / kQuantBlock;
        int32_t code = w.SignedCode(block, k % kQuantBlock);
        if (args.low != nullptr) {
          code = 256 * code + low.SignedCode(block, k % kQuantBlock) + 128;
        }
        dot += int64_t{args.x[r * args.x_stride + k]} * code;
      }
      double steps = static_cast<double>(dot) + args.terms->offsets[j];
      if (args.drops) {
        steps =
            std::floor(steps * args.terms->per_place[j]) + args.terms->rest[j];
      }
      args.out[r * args.out_stride + j] =
          static_cast<float>(steps * args.terms->factors[j]);
    }
  }
}

}  // namespace hexllm::cpu::ref
