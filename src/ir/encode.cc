#include "ir/encode.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/dequantize.h"
#include "base/half.h"
#include "base/quantize.h"

namespace hexllm::ir {
namespace {

bool IsUnsigned(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kU16;
}

// Scale and zero point of one element, and what its code may be.
struct Grid {
  float scale;
  int32_t zero_point;
  CodeRange range;
};

// The code of a whole number of steps, or of NaN, which clamp would let
// through.
int32_t CodeAt(const Grid& grid, float steps) {
  if (std::isnan(steps)) return grid.zero_point;
  const double code =
      static_cast<double>(steps) + static_cast<double>(grid.zero_point);
  return static_cast<int32_t>(std::clamp(code,
                                         static_cast<double>(grid.range.least),
                                         static_cast<double>(grid.range.most)));
}

int32_t Encode(const Grid& grid, float value) {
  return CodeAt(grid, std::rint(value / grid.scale));
}

float Decode(const Grid& grid, int32_t code) {
  const int64_t steps = int64_t{code} - int64_t{grid.zero_point};
  return static_cast<float>(steps) * grid.scale;
}

// The grid of elements whose index along the encoding's axis is `index`.
Grid GridAt(const Encoding& encoding, size_t index) {
  return {.scale = encoding.scales[index],
          .zero_point =
              encoding.zero_points.empty() ? 0 : encoding.zero_points[index],
          .range = CodesOf(encoding)};
}

// As GridAt, for block `block` of that index.
Grid BlockGrid(const Encoding& encoding, size_t index, size_t block) {
  Grid grid = GridAt(encoding, index);
  const size_t blocks = encoding.block_scales.size() / encoding.scales.size();
  const uint8_t factor = encoding.block_scales[index * blocks + block];
  grid.scale = static_cast<float>(factor) * grid.scale;
  return grid;
}

// Calls visit(grid, begin, end) for the runs of elements that share a grid.
// `shape` is of the tensor; its elements number `count`.
template <typename Visit>
void ForEachRun(const Encoding& encoding, const Shape& shape, size_t count,
                Visit visit) {
  if (encoding.axis < 0) return visit(GridAt(encoding, 0), 0, count);
  const auto axis = static_cast<size_t>(encoding.axis);
  size_t inner = 1;  // elements that follow one another at one index
  for (size_t i = axis + 1; i < shape.size(); ++i)
    inner *= static_cast<size_t>(shape[i]);
  const auto indices = static_cast<size_t>(shape[axis]);
  if (encoding.block == 0) {
    for (size_t begin = 0; begin < count; begin += inner)
      visit(GridAt(encoding, begin / inner % indices), begin, begin + inner);
    return;
  }
  const auto block = static_cast<size_t>(encoding.block);
  const size_t blocks = static_cast<size_t>(shape.back()) / block;
  for (size_t begin = 0; begin < count; begin += block) {
    visit(BlockGrid(encoding, begin / inner % indices, begin / block % blocks),
          begin, begin + block);
  }
}

// The same for row `row` of a tensor that has `count` elements a row and an
// encoding along axis 0 or none.
template <typename Visit>
void ForEachRunOfRow(const Encoding& encoding, int64_t row, size_t count,
                     Visit visit) {
  HX_CHECK(encoding.axis <= 0);
  const size_t index = encoding.axis < 0 ? 0 : static_cast<size_t>(row);
  HX_CHECK(index < encoding.scales.size());
  if (encoding.block == 0) return visit(GridAt(encoding, index), 0, count);
  const auto block = static_cast<size_t>(encoding.block);
  for (size_t begin = 0; begin < count; begin += block)
    visit(BlockGrid(encoding, index, begin / block), begin, begin + block);
}

void RoundRows(DType dtype, size_t width, std::span<float> values) {
  const auto bytes = StorageBytes(dtype, {static_cast<int64_t>(width)});
  HX_CHECK(bytes.has_value());
  std::vector<std::byte> row(static_cast<size_t>(*bytes));
  for (size_t begin = 0; begin < values.size(); begin += width) {
    const std::span<float> out = values.subspan(begin, width);
    QuantizeRow(dtype, out, row);
    DequantizeRow(dtype, row, out);
  }
}

}  // namespace

bool HasCodes(const Encoding& encoding) {
  return encoding.dtype != DType::kF16 && !IsBlockType(encoding.dtype);
}

CodeRange CodesOf(const Encoding& encoding) {
  HX_CHECK(HasCodes(encoding));
  const int32_t bits =
      encoding.bits != 0
          ? encoding.bits
          : 8 * static_cast<int32_t>(GetDTypeInfo(encoding.dtype).block_bytes);
  if (IsUnsigned(encoding.dtype)) return {.least = 0, .most = (1 << bits) - 1};
  const auto most = static_cast<int32_t>((int64_t{1} << (bits - 1)) - 1);
  return {.least = -most, .most = most};
}

int32_t EncodeOne(const Encoding& encoding, float value) {
  HX_CHECK(encoding.axis < 0);
  return Encode(GridAt(encoding, 0), value);
}

int32_t EncodeHalf(const Encoding& encoding, float value) {
  HX_CHECK(encoding.axis < 0);
  const Grid grid = GridAt(encoding, 0);
  return CodeAt(grid, std::round(F16ToF32(F32ToF16(value / grid.scale))));
}

int32_t EncodeDown(const Encoding& encoding, double value) {
  HX_CHECK(encoding.axis < 0);
  const Grid grid = GridAt(encoding, 0);
  const double steps = std::floor(value / static_cast<double>(grid.scale));
  return CodeAt(grid, static_cast<float>(steps));
}

float DecodeOne(const Encoding& encoding, int32_t code) {
  HX_CHECK(encoding.axis < 0);
  return Decode(GridAt(encoding, 0), code);
}

void EncodeRow(const Encoding& encoding, int64_t row,
               std::span<const float> values, std::span<int32_t> codes) {
  HX_CHECK(values.size() == codes.size());
  ForEachRunOfRow(encoding, row, values.size(),
                  [&](const Grid& grid, size_t begin, size_t end) {
                    for (size_t i = begin; i < end; ++i)
                      codes[i] = Encode(grid, values[i]);
                  });
}

void DecodeRow(const Encoding& encoding, int64_t row, ByteSpan codes,
               std::span<float> values) {
  HX_CHECK(values.size() == codes.size() && encoding.dtype == DType::kI8);
  ForEachRunOfRow(encoding, row, values.size(),
                  [&](const Grid& grid, size_t begin, size_t end) {
                    for (size_t i = begin; i < end; ++i)
                      values[i] = Decode(grid, static_cast<int8_t>(codes[i]));
                  });
}

void RoundToEncoding(const Encoding& encoding, const Shape& shape,
                     std::span<float> values) {
  if (values.empty()) return;
  if (IsBlockType(encoding.dtype)) {
    return RoundRows(encoding.dtype, static_cast<size_t>(shape.back()), values);
  }
  if (encoding.dtype == DType::kF16) {
    for (float& value : values) value = F16ToF32(F32ToF16(value));
    return;
  }
  ForEachRun(encoding, shape, values.size(),
             [values](const Grid& grid, size_t begin, size_t end) {
               for (size_t i = begin; i < end; ++i)
                 values[i] = Decode(grid, Encode(grid, values[i]));
             });
}

int32_t EncodeBias(float bias, double scale) {
  if (std::isnan(bias)) return 0;
  const double code = std::rint(static_cast<double>(bias) / scale);
  return static_cast<int32_t>(std::clamp(code, static_cast<double>(INT32_MIN),
                                         static_cast<double>(INT32_MAX)));
}

std::optional<CodeConversion> FindConversion(const Encoding& from,
                                             const Encoding& to) {
  constexpr int32_t kMostShift = 22;
  if (from.dtype != DType::kU16 || to.dtype != DType::kU8 || from.axis >= 0 ||
      to.axis >= 0) {
    return std::nullopt;
  }
  const double ratio =
      static_cast<double>(from.scales[0]) / static_cast<double>(to.scales[0]);
  const auto multiplier = [ratio](int32_t shift) {
    return static_cast<int32_t>(std::floor(std::ldexp(ratio, shift) + 0.5));
  };
  if (!(ratio < 1.0 / 32) || multiplier(kMostShift) < 1) return std::nullopt;
  CodeConversion made{.shift = 16};
  while (made.shift < kMostShift && multiplier(made.shift) < (1 << 13))
    ++made.shift;
  made.multiplier = multiplier(made.shift);
  const auto zero = [](const Encoding& encoding) {
    return encoding.zero_points.empty() ? 0 : encoding.zero_points[0];
  };
  made.offset = (zero(to) << (made.shift - 15)) + (1 << (made.shift - 16)) -
                (((zero(from) + 1) * made.multiplier + (1 << 14)) >> 15);
  return made;
}

}  // namespace hexllm::ir
