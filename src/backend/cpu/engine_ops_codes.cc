// Ops that round to codes, and the matmul of codes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "backend/cpu/engine_split.h"
#include "backend/cpu/kernels/packed.h"
#include "backend/cpu/row_codes.h"
#include "base/check.h"
#include "base/chip_arithmetic.h"
#include "base/half.h"

namespace hexllm::cpu {
namespace {

// Loops over this many elements have a fixed length, which lets compilers use
// vectors.
constexpr int64_t kChunk = 16;

// The code of a number on the grid; of others the nearest, or any code (NaN).
int32_t CodeOf(float x, const Grid& grid, float inverse) {
  const auto least = static_cast<float>(grid.least);
  const auto most = static_cast<float>(grid.most);
  float code = RoundToInt(x * inverse) + static_cast<float>(grid.zero_point);
  code = code > least ? code : least;
  code = code < most ? code : most;
  return static_cast<int32_t>(code);
}

// --- Graph inputs and outputs ---

// Calls f(offset, count) for chunks of 0 .. n - 1; only the last one may be
// shorter than kChunk.
template <typename F>
void ForEachChunk(int64_t n, F&& f) {
  for (int64_t at = 0; at < n; at += kChunk) f(at, std::min(kChunk, n - at));
}

template <typename T>
using Chunk = std::array<T, static_cast<size_t>(kChunk)>;

template <typename T>
Chunk<T> LoadChunk(const T* from, int64_t count) {
  Chunk<T> chunk = {};
  if (count == kChunk) {  // a copy of fixed size is two instructions
    std::memcpy(chunk.data(), from, sizeof(chunk));
  } else {
    std::memcpy(chunk.data(), from, static_cast<size_t>(count) * sizeof(T));
  }
  return chunk;
}

template <typename T>
void StoreChunk(const Chunk<T>& chunk, int64_t count, T* to) {
  if (count == kChunk) {
    std::memcpy(to, chunk.data(), sizeof(chunk));
  } else {
    std::memcpy(to, chunk.data(), static_cast<size_t>(count) * sizeof(T));
  }
}

template <typename Code>
void DecodeCodes(const Step& step, int64_t at, int64_t n) {
  const auto* codes = reinterpret_cast<const Code*>(step.at[0]) + at;
  float* const out = step.Out() + at;
  const Grid grid = step.grid;
  ForEachChunk(n, [&](int64_t i, int64_t count) {
    const Chunk<Code> chunk = LoadChunk(codes + i, count);
    Chunk<float> values;
    for (size_t j = 0; j < chunk.size(); ++j) {
      values[j] =
          static_cast<float>(int32_t{chunk[j]} - grid.zero_point) * grid.scale;
    }
    StoreChunk(values, count, out + i);
  });
}

template <typename Code>
void EncodeCodes(const Step& step, int64_t at, int64_t n) {
  const float* const x = step.In(0) + at;
  auto* codes = reinterpret_cast<Code*>(step.at[kOutSlot]) + at;
  const Grid grid = step.grid;
  const float inverse = 1.0f / grid.scale;
  ForEachChunk(n, [&](int64_t i, int64_t count) {
    const Chunk<float> values = LoadChunk(x + i, count);
    Chunk<Code> chunk;
    for (size_t j = 0; j < chunk.size(); ++j) {
      chunk[j] = static_cast<Code>(CodeOf(values[j], grid, inverse));
    }
    StoreChunk(chunk, count, codes + i);
  });
}

void DecodeHalves(const Step& step, int64_t at, int64_t n) {
  const auto* halves = reinterpret_cast<const uint16_t*>(step.at[0]) + at;
  for (int64_t i = 0; i < n; ++i) step.Out()[at + i] = F16ToF32(halves[i]);
}

void EncodeHalves(const Step& step, int64_t at, int64_t n) {
  auto* halves = reinterpret_cast<uint16_t*>(step.at[kOutSlot]) + at;
  for (int64_t i = 0; i < n; ++i) halves[i] = F32ToF16(step.In(0)[at + i]);
}

using CodecFn = void (*)(const Step&, int64_t at, int64_t n);

CodecFn DecoderOf(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return DecodeCodes<uint8_t>;
    case DType::kU16:
      return DecodeCodes<uint16_t>;
    case DType::kI8:
      return DecodeCodes<int8_t>;
    case DType::kI16:
      return DecodeCodes<int16_t>;
    default:
      return DecodeHalves;
  }
}

CodecFn EncoderOf(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return EncodeCodes<uint8_t>;
    case DType::kU16:
      return EncodeCodes<uint16_t>;
    case DType::kI8:
      return EncodeCodes<int8_t>;
    case DType::kI16:
      return EncodeCodes<int16_t>;
    default:
      return EncodeHalves;
  }
}

// From one grid to another, in fixed point.
void ConvertCodes(const Step& step, int64_t at, int64_t n) {
  const float* const x = step.In(0) + at;
  float* const out = step.Out() + at;
  const FixedPoint by = step.conversion;
  const float inverse = 1.0f / step.grid.scale;
  ForEachChunk(n, [&](int64_t i, int64_t count) {
    Chunk<float> values = LoadChunk(x + i, count);
    for (float& value : values) {
      const int32_t code = CodeOf(value, step.grid, inverse);
      const int32_t t = ((code + 1) * by.multiplier + (1 << 14)) >> 15;
      const int32_t made =
          std::clamp((t + by.offset) >> (by.shift - 15), 0, 255);
      value = static_cast<float>(made - step.to.zero_point) * step.to.scale;
    }
    StoreChunk(values, count, out + i);
  });
}

// Halves to codes. Rounds half away from 0.
void CodesOfHalves(const Step& step, const RunContext& context, int64_t at,
                   int64_t n) {
  const float* const x = step.In(0) + at;
  float* const out = step.Out() + at;
  const Grid to = step.to;
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] / to.scale;
  context.kernels.round_f16(out, out, n);
  const auto least = static_cast<float>(-to.zero_point);
  const auto most = static_cast<float>(to.most - to.zero_point);
  for (int64_t i = 0; i < n; ++i) {
    const float steps = std::isnan(out[i]) ? 0.0f : std::round(out[i]);
    out[i] = std::clamp(steps, least, most) * to.scale;
  }
}

// --- Norms, in the double that the interpreter has ---

float OnGridBelow(double value, const Grid& grid) {
  double steps = std::floor(value / static_cast<double>(grid.scale));
  if (std::isnan(steps)) steps = 0;
  const auto zero = static_cast<double>(grid.zero_point);
  return static_cast<float>(
             std::clamp(steps, grid.least - zero, grid.most - zero)) *
         grid.scale;
}

void NormRow(const Step& step, const float* x, float* out) {
  const auto width = static_cast<size_t>(step.width);
  const float* const w = step.In(1);
  double squares = 0;
  for (size_t i = 0; i < width; ++i)
    squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double sum =
      squares / static_cast<double>(step.width) + static_cast<double>(step.eps);
  const double inverse =
      step.fast_root
          ? static_cast<double>(FastInverseRoot(static_cast<float>(sum)))
          : 1.0 / std::sqrt(sum);
  const auto offset = static_cast<double>(step.weight_offset);
  for (size_t i = 0; i < width; ++i) {
    const double value = static_cast<double>(x[i]) * inverse *
                         (static_cast<double>(w[i]) + offset);
    out[i] = step.to.scale == 0 ? static_cast<float>(value)
                                : OnGridBelow(value, step.to);
  }
}

// --- Rows of codes ---

// Writes a chunk of numbers as codes less their centre, zeros beyond the
// `count` first; returns the sum of what it wrote.
int64_t WriteChunk(const Chunk<float>& x, int64_t count, const Grid& grid,
                   int16_t* out) {
  const float inverse = 1.0f / grid.scale;
  const int32_t centre = CodeCentre(grid.most);
  Chunk<int32_t> codes;
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = CodeOf(x[i], grid, inverse) - centre;
  }
  std::fill(codes.begin() + count, codes.end(), 0);
  Chunk<int16_t> narrow;
  for (size_t i = 0; i < codes.size(); ++i) {
    narrow[i] = static_cast<int16_t>(codes[i]);
  }
  StoreChunk(narrow, kChunk, out);
  return std::accumulate(codes.begin(), codes.end(), int64_t{0});
}

void WriteCodes(const Step& step, const RowCodes& rows, int64_t row) {
  const float* const x = step.In(0) + row * step.inner;
  int16_t* const out = rows.codes + row * rows.stride;
  int64_t sum = 0;
  ForEachChunk(step.inner, [&](int64_t at, int64_t count) {
    sum += WriteChunk(LoadChunk(x + at, count), count, step.grid, out + at);
  });
  std::fill(out + CeilDiv(step.inner, kChunk) * kChunk, out + rows.stride, 0);
  rows.sums[row] = sum;
}

// --- The matmul of codes ---
//
// With x = X + o (X: the codes in memory, o: their centre less the zero point)
// and w without its zero point:
//
//   sum_k x w = sum_k X w + o sum_k w
//
// All terms are whole numbers below 2^53: exact in double. With dropped bits, x
// keeps its zero point Z, and each term loses its low bits by itself:
//
//   floor((sum_k x w) / 2^b) - floor(Z sum_k w / 2^b + 1/2) + trunc(bias / 2^b)

// Outputs of the panel from output `n` on.
int64_t PanelOutputs(const Step& step, int64_t n) {
  return std::min(kPackedRows, step.width - n);
}

// What a sum of output `n` counts in.
double StepOfSums(const Step& step, int64_t n) {
  return static_cast<double>(step.grid.scale) *
         static_cast<double>(step.In(2)[n]);
}

// The terms of the outputs from `n` on.
PanelTerms TermsOf(const Step& step, int64_t n) {
  PanelTerms terms = {};
  const auto* sums = reinterpret_cast<const int32_t*>(step.at[3]) + n;
  const auto* bias = reinterpret_cast<const int32_t*>(step.at[4]);
  const bool drops = step.dropped_bits > 0;
  const int64_t place = int64_t{1} << step.dropped_bits;
  const int64_t zero = step.grid.zero_point;
  const auto offset =
      static_cast<double>(CodeCentre(step.grid.most) - (drops ? 0 : zero));
  for (int64_t j = 0; j < PanelOutputs(step, n); ++j) {
    const int64_t b = bias == nullptr ? 0 : bias[n + j];
    terms.offsets[j] = offset * static_cast<double>(sums[j]);
    terms.factors[j] = StepOfSums(step, n + j);
    if (drops) {
      terms.rest[j] = static_cast<double>(
          b / place - ((zero * sums[j] + place / 2) >> step.dropped_bits));
      terms.per_place[j] = 1.0 / static_cast<double>(place);
      terms.factors[j] *= static_cast<double>(place);
    } else {
      terms.offsets[j] += static_cast<double>(b);
    }
  }
  return terms;
}

// The panel of the outputs from `n` on.
void RunPanel(const Step& step, const RunContext& context, int64_t n,
              const PanelTerms& terms, bool drops) {
  const ActiveRows active = Active(step, context);
  const int64_t k = step.weight.cols;
  const RowCodes rows = RowCodesAt(step.at[0], step.rows.count, k);
  const bool wide = step.weight.dtype == DType::kI16;
  const int64_t low_plane =
      wide ? PackedBytes(DType::kI8, step.weight.rows, k) : 0;
  const std::byte* const w =
      step.weight.data + n / kPackedRows * PackedPanelBytes(DType::kI8, k);
  context.kernels.code_matmul(
      {.x = rows.codes + active.begin * rows.stride,
       .x_stride = rows.stride,
       .x_sums = rows.sums + active.begin,
       .w = w,
       .low = wide ? w + low_plane : nullptr,
       .terms = &terms,
       .drops = drops,
       .out = step.Out() + active.begin * step.width + n,
       .out_stride = step.width,
       .rows = active.count(),
       .k = k,
       .outputs = PanelOutputs(step, n)});
}

// Calls run(n) for the panels of outputs, split between threads.
template <typename F>
void SplitPanels(const Step& step, const RunContext& context, F&& run) {
  const int64_t rows = Active(step, context).count();
  if (rows == 0) return;
  const int64_t work = kPackedRows * step.weight.cols * rows;
  // Two multiply-adds of codes take about the time of one of floats.
  Split(context, CeilDiv(step.width, kPackedRows),
        std::max<int64_t>(1, work / 2), [&](int64_t begin, int64_t end) {
          for (int64_t panel = begin; panel < end; ++panel)
            run(panel * kPackedRows);
        });
}

// --- In fixed point ---

using PanelFactors = std::array<int32_t, static_cast<size_t>(kPackedRows)>;

// Makes sixteenths of a step of the output of the sums
// (base/chip_arithmetic.h): whole numbers, exact in f32 wherever they are not
// clamped.
PanelFactors TakeSixteenths(const Step& step, int64_t n, PanelTerms& terms) {
  PanelFactors multipliers = {};
  for (int64_t j = 0; j < PanelOutputs(step, n); ++j) {
    const Rescale by =
        RescaleOf(terms.factors[j] / static_cast<double>(step.to.scale));
    terms.per_place[j] = std::ldexp(1.0, -by.shift);
    terms.rest[j] = 0;
    terms.factors[j] = 1;
    multipliers[static_cast<size_t>(j)] = by.multiplier;
  }
  return multipliers;
}

void RescalePanel(const Step& step, const ActiveRows& active, int64_t n,
                  const PanelFactors& multipliers) {
  const Grid to = step.to;
  for (int64_t r = active.begin; r < active.begin + active.count(); ++r) {
    float* const out = step.Out() + r * step.width + n;
    for (int64_t j = 0; j < PanelOutputs(step, n); ++j) {
      const int64_t steps = RescaleSixteenths(
          static_cast<double>(out[j]), multipliers[static_cast<size_t>(j)]);
      const int64_t code =
          std::clamp<int64_t>(steps + to.zero_point, to.least, to.most);
      out[j] = static_cast<float>(code - to.zero_point) * to.scale;
    }
  }
}

}  // namespace

void RunDecode(const Step& step, const RunContext& context) {
  const CodecFn decode = DecoderOf(step.dtype);
  SplitElements(step, context, 1,
                [&](int64_t at, int64_t n) { decode(step, at, n); });
}

void RunEncode(const Step& step, const RunContext& context) {
  const CodecFn encode = EncoderOf(step.dtype);
  SplitElements(step, context, 1,
                [&](int64_t at, int64_t n) { encode(step, at, n); });
}

void RunRound(const Step& step, const RunContext& context) {
  SplitElements(step, context, 1, [&](int64_t at, int64_t n) {
    context.kernels.round_codes({.x = step.In(0) + at,
                                 .out = step.Out() + at,
                                 .n = n,
                                 .scale = step.grid.scale,
                                 .zero_point = step.grid.zero_point,
                                 .least = step.grid.least,
                                 .most = step.grid.most});
  });
}

void RunRoundF16(const Step& step, const RunContext& context) {
  SplitElements(step, context, 1, [&](int64_t at, int64_t n) {
    context.kernels.round_f16(step.In(0) + at, step.Out() + at, n);
  });
}

void RunConvertCodes(const Step& step, const RunContext& context) {
  SplitElements(step, context, 1,
                [&](int64_t at, int64_t n) { ConvertCodes(step, at, n); });
}

void RunConvertHalves(const Step& step, const RunContext& context) {
  SplitElements(step, context, 1, [&](int64_t at, int64_t n) {
    CodesOfHalves(step, context, at, n);
  });
}

void RunChipRmsNorm(const Step& step, const RunContext& context) {
  const ActiveRows active = Active(step, context);
  Split(context, active.count() * step.vectors, 4 * step.width,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t at = (active.begin * step.vectors + i) * step.width;
            NormRow(step, step.In(0) + at, step.Out() + at);
          }
        });
}

void RunChipSoftmax(const Step& step, const RunContext& context) {
  const ActiveRows active = Active(step, context);
  Split(context, active.count(), 8 * step.width,
        [&](int64_t begin, int64_t end) {
          const int64_t at = (active.begin + begin) * step.width;
          context.kernels.chip_softmax({.x = step.In(0) + at,
                                        .out = step.Out() + at,
                                        .rows = end - begin,
                                        .width = step.width,
                                        .scale = step.grid.scale});
        });
}

void RunRowCodes(const Step& step, const RunContext& context) {
  const ActiveRows active = Active(step, context);
  const RowCodes rows =
      RowCodesAt(step.at[kOutSlot], step.rows.count, step.inner);
  Split(context, active.count(), 2 * step.inner,
        [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            WriteCodes(step, rows, active.begin + r);
          }
        });
}

void RunCodeMatMul(const Step& step, const RunContext& context) {
  SplitPanels(step, context, [&](int64_t n) {
    RunPanel(step, context, n, TermsOf(step, n), step.dropped_bits > 0);
  });
}

void RunFixedPointMatMul(const Step& step, const RunContext& context) {
  SplitPanels(step, context, [&](int64_t n) {
    PanelTerms terms = TermsOf(step, n);
    const PanelFactors multipliers = TakeSixteenths(step, n, terms);
    RunPanel(step, context, n, terms, /*drops=*/true);
    RescalePanel(step, Active(step, context), n, multipliers);
  });
}

}  // namespace hexllm::cpu
