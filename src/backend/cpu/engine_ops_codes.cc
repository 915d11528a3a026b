// Ops that round to codes, and the matmul of codes.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "backend/cpu/engine_split.h"
#include "backend/cpu/kernels/packed.h"
#include "backend/cpu/row_codes.h"
#include "base/check.h"
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
  const int64_t count = std::min(kPackedRows, step.weight.rows - n);
  for (int64_t j = 0; j < count; ++j) {
    const int64_t b = bias == nullptr ? 0 : bias[n + j];
    terms.offsets[j] = offset * static_cast<double>(sums[j]);
    if (drops) {
      terms.rest[j] = static_cast<double>(
          b / place - ((zero * sums[j] + place / 2) >> step.dropped_bits));
    } else {
      terms.offsets[j] += static_cast<double>(b);
    }
    terms.factors[j] = static_cast<double>(step.grid.scale) *
                       static_cast<double>(step.In(2)[n + j]);
  }
  return terms;
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

// Split over panels of outputs.
void RunCodeMatMul(const Step& step, const RunContext& context) {
  const ActiveRows active = Active(step, context);
  if (active.count() == 0) return;
  const int64_t k = step.weight.cols;
  const RowCodes rows = RowCodesAt(step.at[0], step.rows.count, k);
  const int64_t panel_bytes = PackedPanelBytes(DType::kI8, k);
  const bool wide = step.weight.dtype == DType::kI16;
  const int64_t low_plane =
      wide ? PackedBytes(DType::kI8, step.weight.rows, k) : 0;
  const auto run = [&](int64_t panel) {
    const int64_t n = panel * kPackedRows;
    const PanelTerms terms = TermsOf(step, n);
    const std::byte* const w = step.weight.data + panel * panel_bytes;
    context.kernels.code_matmul(
        {.x = rows.codes + active.begin * rows.stride,
         .x_stride = rows.stride,
         .x_sums = rows.sums + active.begin,
         .w = w,
         .low = wide ? w + low_plane : nullptr,
         .terms = &terms,
         .place = static_cast<double>(int64_t{1} << step.dropped_bits),
         .out = step.Out() + active.begin * step.width + n,
         .out_stride = step.width,
         .rows = active.count(),
         .k = k,
         .outputs = std::min(kPackedRows, step.width - n)});
  };
  const int64_t panels = CeilDiv(step.width, kPackedRows);
  const int64_t work = kPackedRows * k * active.count();
  // Two multiply-adds of codes take about the time of one of floats.
  Split(context, panels, std::max<int64_t>(1, work / 2),
        [&](int64_t begin, int64_t end) {
          for (int64_t panel = begin; panel < end; ++panel) run(panel);
        });
}

}  // namespace hexllm::cpu
