#include "base/quantize.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/float4.h"
#include "base/half.h"

namespace hexllm {
namespace {

constexpr size_t kBlock = 32;
constexpr size_t kLanes = 4;
using Block = std::array<float, kBlock>;

float RoundToHalf(float x) {
  return F16ToF32(F32ToF16(std::clamp(x, -kMaxHalf, kMaxHalf)));
}

void StoreHalf(float value, std::byte* at) {
  const uint16_t bits = F32ToF16(value);
  std::memcpy(at, &bits, sizeof(bits));
}

struct Extremes {
  float low;
  float high;
};

Extremes FindExtremes(const float* x) {
  Float4 low = Load4(x);
  Float4 high = low;
  for (size_t i = kLanes; i < kBlock; i += kLanes) {
    low = Min4(Load4(x + i), low);
    high = Max4(Load4(x + i), high);
  }
  return {std::min({low[0], low[1], low[2], low[3]}),
          std::max({high[0], high[1], high[2], high[3]})};
}

// { f16 d; i8 qs[32] }: d * q.
void QuantizeQ8_0(const float* x, std::byte* out) {
  const Extremes extremes = FindExtremes(x);
  const float d = RoundToHalf(std::max(-extremes.low, extremes.high) / 127.0f);
  StoreHalf(d, out);
  Block codes{};
  for (size_t i = 0; d != 0 && i < kBlock; i += kLanes) {
    const Float4 scaled = Load4(x + i) / Splat4(d);
    const Float4 clamped = Min4(Max4(scaled, Splat4(-127)), Splat4(127));
    Store4(RoundEven4(clamped), codes.data() + i);
  }
  for (size_t i = 0; i < kBlock; ++i)
    out[2 + i] = static_cast<std::byte>(static_cast<int8_t>(codes[i]));
}

// value = d * q + m, q in 0 to 15.
struct Grid {
  float d = 0;
  float m = 0;
};

Float4 CodesOn(Grid grid, float inverse, Float4 x) {
  const Float4 scaled = (x - Splat4(grid.m)) * Splat4(inverse);
  return RoundEven4(Min4(Max4(scaled, Splat4(0)), Splat4(15)));
}

float Inverse(Grid grid) { return grid.d == 0 ? 0.0f : 1.0f / grid.d; }

float SquaredError(Grid grid, const float* x) {
  const float inverse = Inverse(grid);
  Float4 sum{};
  for (size_t i = 0; i < kBlock; i += kLanes) {
    const Float4 v = Load4(x + i);
    const Float4 q = CodesOn(grid, inverse, v);
    const Float4 error = v - (Splat4(grid.d) * q + Splat4(grid.m));
    sum += error * error;
  }
  return Sum4(sum);
}

// The grid of least squared error for the codes on `start`: a line through the
// points (code, x). `start` when all codes are equal.
Grid FitToCodesOn(Grid start, const float* x) {
  const float inverse = Inverse(start);
  Float4 q{}, qq{}, v{}, qv{};
  for (size_t i = 0; i < kBlock; i += kLanes) {
    const Float4 value = Load4(x + i);
    const Float4 code = CodesOn(start, inverse, value);
    q += code;
    qq += code * code;
    v += value;
    qv += code * value;
  }
  constexpr auto kCount = static_cast<float>(kBlock);
  const float sum_q = Sum4(q);
  const float determinant = kCount * Sum4(qq) - sum_q * sum_q;
  if (determinant <= 0) return start;
  const float d = (kCount * Sum4(qv) - sum_q * Sum4(v)) / determinant;
  return {d, (Sum4(v) - d * sum_q) / kCount};
}

Grid RoundToHalf(Grid grid) {
  return {RoundToHalf(std::max(0.0f, grid.d)), RoundToHalf(grid.m)};
}

// Shrinks the grid that spans all values about its center as far as it helps,
// then twice fits it to the codes that it gives. Never worse than the grid that
// spans all values.
Grid SearchGrid(const float* x) {
  const auto [low, high] = FindExtremes(x);
  // Halves, so that the width of any finite range is finite.
  const float center = low / 2 + high / 2;
  const float half_width = high / 2 - low / 2;
  Grid best = RoundToHalf(Grid{half_width / 7.5f, low});
  float least = SquaredError(best, x);
  Grid fitted = best;
  float least_shrunk = least;
  for (const float shrink : {0.95f, 0.9f, 0.85f, 0.8f, 0.75f}) {
    const float half = shrink * half_width;
    const Grid grid = {half / 7.5f, center - half};
    const float error = SquaredError(grid, x);
    if (!(error < least_shrunk)) continue;  // also when sums overflow
    least_shrunk = error;
    fitted = grid;
  }
  for (int round = 0; round < 2; ++round) {
    fitted = FitToCodesOn(fitted, x);
    const Grid grid = RoundToHalf(fitted);
    const float error = SquaredError(grid, x);
    if (!(error < least)) continue;
    least = error;
    best = grid;
  }
  return best;
}

// { f16 d, m; u8 qs[16] }: d * q + m; element i < 16 in the low nibble of byte
// i, element i + 16 in its high nibble.
void QuantizeQ4_1(const float* x, std::byte* out) {
  const Grid grid = SearchGrid(x);
  StoreHalf(grid.d, out);
  StoreHalf(grid.m, out + 2);
  Block codes;
  for (size_t i = 0; i < kBlock; i += kLanes)
    Store4(CodesOn(grid, Inverse(grid), Load4(x + i)), codes.data() + i);
  for (size_t i = 0; i < kBlock / 2; ++i) {
    const auto low = static_cast<unsigned>(codes[i]);
    const auto high = static_cast<unsigned>(codes[i + kBlock / 2]);
    out[4 + i] = static_cast<std::byte>(low | high << 4);
  }
}

}  // namespace

bool IsQuantizable(DType dtype) {
  return dtype == DType::kQ4_1 || dtype == DType::kQ8_0;
}

void QuantizeRow(DType dtype, std::span<const float> values,
                 std::span<std::byte> out) {
  HX_CHECK(IsQuantizable(dtype));
  const size_t block_bytes = GetDTypeInfo(dtype).block_bytes;
  HX_CHECK(values.size() % kBlock == 0);
  HX_CHECK(out.size() % block_bytes == 0 &&
           out.size() / block_bytes == values.size() / kBlock);
  const auto quantize = dtype == DType::kQ4_1 ? QuantizeQ4_1 : QuantizeQ8_0;
  for (size_t i = 0; i < values.size() / kBlock; ++i) {
    quantize(values.data() + i * kBlock, out.data() + i * block_bytes);
  }
}

}  // namespace hexllm
