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
#include "base/half.h"

namespace hexllm::cpu {
namespace {

// Loops over this many elements have a fixed length, which lets compilers use
// vectors.
constexpr int64_t kChunk = 16;

// rint for |x| up to 2^22, half to even, in two additions.
float RoundToInt(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23
  return (x + kShift) - kShift;
}

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

// --- Code planes ---

// Where the planes of a chunk of codes go; `high` is null for one plane.
struct PlaneChunk {
  int8_t* high;
  int8_t* low;
};

// Writes the planes of a chunk of numbers; returns the sum of its `count` first
// codes.
int64_t WriteChunk(const Chunk<float>& x, int64_t count, const Grid& grid,
                   const PlaneChunk& out) {
  const float inverse = 1.0f / grid.scale;
  Chunk<int32_t> codes;
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = CodeOf(x[i], grid, inverse);
  }
  Chunk<int8_t> bytes;
  for (size_t i = 0; i < codes.size(); ++i) {
    bytes[i] = static_cast<int8_t>((codes[i] & 255) - 128);
  }
  StoreChunk(bytes, kChunk, out.low);
  if (out.high != nullptr) {
    for (size_t i = 0; i < codes.size(); ++i) {
      bytes[i] = static_cast<int8_t>((codes[i] >> 8) - 128);
    }
    StoreChunk(bytes, kChunk, out.high);
  }
  return std::accumulate(codes.begin(), codes.begin() + count, int64_t{0});
}

// Rows of planes are whole blocks of 32 codes: a chunk fits at their end.
void WritePlanes(const Step& step, const CodePlanes& planes, int64_t row) {
  const float* const x = step.In(0) + row * step.inner;
  int8_t* const first = planes.codes + row * planes.stride;
  const bool two = step.planes == 2;
  int64_t sum = 0;
  ForEachChunk(step.inner, [&](int64_t at, int64_t count) {
    sum += WriteChunk(LoadChunk(x + at, count), count, step.grid,
                      {.high = two ? first + at : nullptr,
                       .low = first + at + (two ? planes.plane : 0)});
  });
  planes.sums[row] = sum - step.inner * PlaneOffset(step.planes);
}

// --- The matmul of codes ---
//
// With x = X + o (X: the planes put together) and w = W + p (p: 128 for i16,
// else 0), x and w without their zero points:
//
//   sum_k x w = sum_k X W + p sum_k X + o sum_k w
//
// All terms are whole numbers below 2^53: exact in double. With dropped bits, x
// keeps its zero point Z, and each term loses its low bits by itself:
//
//   floor((sum_k x w) / 2^b) - floor(Z sum_k w / 2^b + 1/2) + trunc(bias / 2^b)

// Rows that one block of dot products covers.
constexpr int64_t kRowTile = 128;

// Planes of a weight, and what the low one lacks.
int64_t WeightPlanes(const WeightView& weight) {
  return weight.dtype == DType::kI16 ? 2 : 1;
}

// One panel of outputs for some rows.
struct Tile {
  int64_t row;    // first
  int64_t rows;   // up to kRowTile
  int64_t n;      // first output
  int32_t* dots;  // [weight planes][planes][kRowTile][kPackedRows]
};
constexpr int64_t kTileDots = kRowTile * kPackedRows;

void ComputeDots(const Step& step, const RunContext& context,
                 const CodePlanes& planes, const Tile& tile) {
  const int64_t k = step.weight.cols;
  const int64_t panel_bytes = PackedPanelBytes(DType::kI8, k);
  const int64_t weight_plane = PackedBytes(DType::kI8, step.weight.rows, k);
  const std::byte* panel =
      step.weight.data + tile.n / kPackedRows * panel_bytes;
  int32_t* out = tile.dots;
  for (int64_t w = 0; w < WeightPlanes(step.weight); ++w) {
    for (int64_t p = 0; p < step.planes; ++p, out += kTileDots) {
      context.kernels.int_dot(
          {.a = planes.codes + p * planes.plane + tile.row * planes.stride,
           .a_stride = planes.stride,
           .w = panel + w * weight_plane,
           .out = out,
           .out_stride = kPackedRows,
           .rows = tile.rows,
           .k = k,
           .n_begin = 0,
           .n_end = std::min(kPackedRows, step.weight.rows - tile.n)});
    }
  }
}

// What is added to the dot products of each output of a panel, and what they
// are multiplied by. `rest` is added once bits are dropped.
struct PanelTerms {
  std::array<double, kPackedRows> offsets = {};
  std::array<double, kPackedRows> rest = {};
  std::array<double, kPackedRows> factors = {};
};

PanelTerms TermsOf(const Step& step, int64_t n) {
  PanelTerms terms;
  const auto* sums = reinterpret_cast<const int32_t*>(step.at[3]) + n;
  const auto* bias = reinterpret_cast<const int32_t*>(step.at[4]);
  const bool drops = step.dropped_bits > 0;
  const int64_t place = int64_t{1} << step.dropped_bits;
  const int64_t zero = step.grid.zero_point;
  const auto offset =
      static_cast<double>(PlaneOffset(step.planes) - (drops ? 0 : zero));
  const int64_t count = std::min(kPackedRows, step.weight.rows - n);
  for (int64_t j = 0; j < count; ++j) {
    const auto at = static_cast<size_t>(j);
    const int64_t b = bias == nullptr ? 0 : bias[n + j];
    terms.offsets[at] = offset * static_cast<double>(sums[j]);
    if (drops) {
      terms.rest[at] = static_cast<double>(
          b / place - ((zero * sums[j] + place / 2) >> step.dropped_bits));
    } else {
      terms.offsets[at] += static_cast<double>(b);
    }
    terms.factors[at] = static_cast<double>(step.grid.scale) *
                        static_cast<double>(step.In(2)[n + j]);
  }
  return terms;
}

// The dot products of row `r` of the tile, put together: [kPackedRows].
std::array<double, kPackedRows> SumOfDots(const Step& step, const Tile& tile,
                                          int64_t r) {
  std::array<double, kPackedRows> sums = {};
  const int32_t* dots = tile.dots + r * kPackedRows;
  const int64_t weight_planes = WeightPlanes(step.weight);
  for (int64_t w = 0; w < weight_planes; ++w) {
    for (int64_t p = 0; p < step.planes; ++p, dots += kTileDots) {
      const int64_t bytes = weight_planes - 1 - w + step.planes - 1 - p;
      const auto place = static_cast<double>(int64_t{1} << (8 * bytes));
      for (size_t j = 0; j < kPackedRows; ++j) {
        sums[j] += place * static_cast<double>(dots[j]);
      }
    }
  }
  return sums;
}

// Takes the low bits of the sums of a panel away and adds the rest.
void DropBits(int64_t bits, const PanelTerms& terms,
              std::array<double, kPackedRows>& sums) {
  const auto place = static_cast<double>(int64_t{1} << bits);
  for (size_t j = 0; j < kPackedRows; ++j) {
    sums[j] = (std::floor(sums[j] / place) + terms.rest[j]) * place;
  }
}

void WriteTile(const Step& step, const CodePlanes& planes, const Tile& tile) {
  const PanelTerms terms = TermsOf(step, tile.n);
  const int64_t count = std::min(kPackedRows, step.weight.rows - tile.n);
  const double low = WeightPlanes(step.weight) == 2 ? 128 : 0;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t row = tile.row + r;
    std::array<double, kPackedRows> sums = SumOfDots(step, tile, r);
    const double row_term = low * static_cast<double>(planes.sums[row]);
    for (size_t j = 0; j < kPackedRows; ++j) {
      sums[j] += row_term + terms.offsets[j];
    }
    if (step.dropped_bits > 0) DropBits(step.dropped_bits, terms, sums);
    std::array<float, kPackedRows> y;
    for (size_t j = 0; j < kPackedRows; ++j) {
      y[j] = static_cast<float>(sums[j] * terms.factors[j]);
    }
    std::memcpy(step.Out() + row * step.width + tile.n, y.data(),
                static_cast<size_t>(count) * sizeof(float));
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

void RunCodePlanes(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const CodePlanes planes =
      PlanesAt(step.at[kOutSlot], step.rows.count, step.inner, step.planes);
  Split(context, rows.count(), 2 * step.inner, [&](int64_t begin, int64_t end) {
    for (int64_t r = rows.begin + begin; r < rows.begin + end; ++r) {
      WritePlanes(step, planes, r);
    }
  });
}

int64_t CodeMatMulScratchFloats(int64_t planes, const WeightView& weight) {
  return planes * WeightPlanes(weight) * kTileDots;
}

// Split over panels of outputs; dot products of kRowTile rows at a time.
void RunCodeMatMul(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  if (rows.count() == 0) return;
  const CodePlanes planes =
      PlanesAt(step.at[0], step.rows.count, step.weight.cols, step.planes);
  const int64_t panels = CeilDiv(step.width, kPackedRows);
  const int64_t work = kPackedRows * step.weight.cols * rows.count();
  const int64_t parts =
      NumParts(context, panels, std::max<int64_t>(1, work / 4));
  RunParts(context, parts, [&](int64_t part) {
    auto* dots = reinterpret_cast<int32_t*>(context.scratch +
                                            part * context.scratch_stride);
    const int64_t end = panels * (part + 1) / parts;
    for (int64_t panel = panels * part / parts; panel < end; ++panel) {
      for (int64_t row = rows.begin; row < rows.end; row += kRowTile) {
        const Tile tile{.row = row,
                        .rows = std::min(kRowTile, rows.end - row),
                        .n = panel * kPackedRows,
                        .dots = dots};
        ComputeDots(step, context, planes, tile);
        WriteTile(step, planes, tile);
      }
    }
  });
}

}  // namespace hexllm::cpu
