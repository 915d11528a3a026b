#include "base/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace hexllm {
namespace {

// Loops below run over fixed numbers of lanes, so that compilers vectorize them
// without being allowed to reorder sums.
constexpr size_t kBlock = 32;
constexpr size_t kLanes = 8;
using Block = std::array<float, kBlock>;

constexpr float kMaxHalf = 65504.0f;

// To the nearest integer, half to even, for magnitudes up to 2^22: the sum has
// no bits left for a fraction.
float RoundEven(float x) {
  constexpr float kShift = 0x1.8p23f;
  return (x + kShift) - kShift;
}

float RoundToHalf(float x) {
  return F16ToF32(F32ToF16(std::clamp(x, -kMaxHalf, kMaxHalf)));
}

void StoreHalf(float value, std::byte* at) {
  const uint16_t bits = F32ToF16(value);
  std::memcpy(at, &bits, sizeof(bits));
}

// { f16 d; i8 qs[32] }: d * q.
void QuantizeQ8_0(const float* x, std::byte* out) {
  float amax = 0;
  for (size_t i = 0; i < kBlock; ++i) amax = std::max(amax, std::abs(x[i]));
  const float d = RoundToHalf(amax / 127.0f);
  StoreHalf(d, out);
  for (size_t i = 0; i < kBlock; ++i) {
    const float scaled = d == 0 ? 0.0f : x[i] / d;
    const float clamped = std::min(std::max(-127.0f, scaled), 127.0f);
    out[2 + i] =
        static_cast<std::byte>(static_cast<int8_t>(RoundEven(clamped)));
  }
}

// value = d * q + m, q in 0 to 15.
struct Grid {
  float d = 0;
  float m = 0;
};

void CodesOn(Grid grid, const float* x, Block& codes) {
  const float inverse = grid.d == 0 ? 0.0f : 1.0f / grid.d;
  for (size_t i = 0; i < kBlock; ++i) {
    const float scaled = (x[i] - grid.m) * inverse;
    codes[i] = RoundEven(std::min(std::max(0.0f, scaled), 15.0f));
  }
}

float SumLanes(const std::array<float, kLanes>& lanes) {
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

float SquaredError(Grid grid, const float* x, const Block& codes) {
  std::array<float, kLanes> sums{};
  for (size_t i = 0; i < kBlock; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float error = x[i + lane] - (grid.d * codes[i + lane] + grid.m);
      sums[lane] += error * error;
    }
  }
  return SumLanes(sums);
}

// The grid of least squared error for given codes: a line through (code, x).
// `start` when all codes are equal.
Grid FitLine(const float* x, const Block& codes, Grid start) {
  std::array<float, kLanes> q{}, qq{}, v{}, qv{};
  for (size_t i = 0; i < kBlock; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float code = codes[i + lane];
      q[lane] += code;
      qq[lane] += code * code;
      v[lane] += x[i + lane];
      qv[lane] += code * x[i + lane];
    }
  }
  constexpr auto kCount = static_cast<float>(kBlock);
  const float sum_q = SumLanes(q);
  const float sum_v = SumLanes(v);
  const float determinant = kCount * SumLanes(qq) - sum_q * sum_q;
  if (determinant <= 0) return start;
  const float d = (kCount * SumLanes(qv) - sum_q * sum_v) / determinant;
  return {d, (sum_v - d * sum_q) / kCount};
}

Grid RoundToHalf(Grid grid) {
  return {RoundToHalf(std::max(0.0f, grid.d)), RoundToHalf(grid.m)};
}

// Of the grid that spans all values and lines fitted to the codes of shrunk
// ones, the one of least squared error.
Grid SearchGrid(const float* x) {
  const auto [low, high] = std::minmax_element(x, x + kBlock);
  // Halves, so that the width of any finite range is finite.
  const float center = *low / 2 + *high / 2;
  const float half_width = *high / 2 - *low / 2;
  Grid best = RoundToHalf(Grid{half_width / 7.5f, *low});
  Block codes;
  CodesOn(best, x, codes);
  float least = SquaredError(best, x, codes);
  constexpr float kShrink[] = {1.0f, 0.94f, 0.88f, 0.82f, 0.76f, 0.7f};
  for (const float shrink : kShrink) {
    const float half = shrink * half_width;
    const Grid start = {half / 7.5f, center - half};
    CodesOn(start, x, codes);
    const Grid grid = RoundToHalf(FitLine(x, codes, start));
    CodesOn(grid, x, codes);
    const float error = SquaredError(grid, x, codes);
    if (!(error < least)) continue;  // also when sums overflow
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
  CodesOn(grid, x, codes);
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
