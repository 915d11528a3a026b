#include "ir/ops/encoded_linear.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/chip_arithmetic.h"
#include "base/half.h"
#include "base/quantize.h"
#include "ir/constant.h"
#include "ir/ops/codes.h"

namespace hexllm::ir {
namespace {

constexpr size_t kBlock = 32;  // elements of q4_1, q8_0 and of x's blocks

// --- Codes

// (code - zero point) * block scale of row `row` of w.
std::vector<int64_t> RowSteps(const Encoding& encoding, const HostTensor& w,
                              size_t row) {
  const auto width = static_cast<size_t>(w.type.shape[1]);
  std::vector<int32_t> codes(width);
  EncodeRow(encoding, static_cast<int64_t>(row),
            std::span(w.floats).subspan(row * width, width), codes);
  const size_t index = encoding.axis < 0 ? 0 : row;
  const int64_t zero =
      encoding.zero_points.empty() ? 0 : encoding.zero_points[index];
  std::vector<int64_t> steps(width);
  const auto block = static_cast<size_t>(encoding.block);
  for (size_t k = 0; k < width; ++k) {
    steps[k] = codes[k] - zero;
    if (block > 0)
      steps[k] *= encoding.block_scales[index * (width / block) + k / block];
  }
  return steps;
}

// Sums of products as numbers on the grid of u8 that the output has.
class FixedPoint {
 public:
  FixedPoint(const Encoding& to, double step)
      : to_(to),
        zero_(to.zero_points.empty() ? 0 : to.zero_points[0]),
        by_(RescaleOf(step / static_cast<double>(to.scales[0]))) {}

  float operator()(int64_t sum) const {
    const double sixteenths =
        std::floor(std::ldexp(static_cast<double>(sum), -by_.shift));
    const int64_t code = zero_ + RescaleSixteenths(sixteenths, by_.multiplier);
    return DecodeOne(to_, static_cast<int32_t>(
                              std::clamp<int64_t>(code, 0, CodesOf(to_).most)));
  }

 private:
  const Encoding& to_;
  int64_t zero_;
  Rescale by_;
};

// --- Blocks

// One block of a weight: value = d * q + m.
struct WeightBlock {
  float d;
  float m;
  std::array<int32_t, kBlock> q;
};

float ReadHalf(const std::byte* at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return F16ToF32(bits);
}

// Layouts as in base/dequantize.cc: d, m, then nibbles of elements i and i
// + 16.
WeightBlock ReadBlock(DType dtype, const std::byte* at) {
  WeightBlock block{.d = ReadHalf(at), .m = 0, .q = {}};
  if (dtype == DType::kQ8_0) {
    for (size_t i = 0; i < kBlock; ++i)
      block.q[i] = static_cast<int8_t>(at[2 + i]);
    return block;
  }
  block.m = ReadHalf(at + 2);
  for (size_t i = 0; i < kBlock / 2; ++i) {
    const auto pair = static_cast<int32_t>(at[4 + i]);
    block.q[i] = pair & 15;
    block.q[i + kBlock / 2] = pair >> 4;
  }
  return block;
}

// Row `row` of w in blocks: as stored, when it is stored so, else rounded.
std::vector<WeightBlock> ReadBlocks(const Operand& w, int64_t row) {
  HX_CHECK(w.constant != nullptr);
  const DType dtype = w.encoding->dtype;
  const auto width = static_cast<size_t>(RowElems(*w.constant));
  const size_t block_bytes = GetDTypeInfo(dtype).block_bytes;
  std::vector<std::byte> rounded;
  ByteSpan bytes;
  if (w.constant->type.dtype == dtype) {
    bytes = RowBytes(*w.constant, row);
  } else {
    std::vector<float> values(width);
    ReadRow(*w.constant, row, values);
    rounded.resize(width / kBlock * block_bytes);
    QuantizeRow(dtype, values, rounded);
    bytes = rounded;
  }
  std::vector<WeightBlock> blocks;
  for (size_t at = 0; at < bytes.size(); at += block_bytes)
    blocks.push_back(ReadBlock(dtype, bytes.data() + at));
  return blocks;
}

// One block of x: value = scale * code.
struct InputBlock {
  float scale;
  int32_t sum;
  std::array<int32_t, kBlock> codes;
};

InputBlock RoundBlock(std::span<const float> x) {
  float most = 0;
  for (const float value : x) most = std::fmax(most, std::fabs(value));
  const float inverse = most == 0 ? 0 : 127 / most;
  InputBlock block{.scale = most / 127, .sum = 0, .codes = {}};
  for (size_t i = 0; i < kBlock; ++i) {
    const float code = std::rint(x[i] * inverse);
    if (std::isnan(code)) continue;
    block.codes[i] = static_cast<int32_t>(std::clamp(code, -127.0f, 127.0f));
    block.sum += block.codes[i];
  }
  return block;
}

std::vector<InputBlock> RoundRow(std::span<const float> x) {
  std::vector<InputBlock> blocks;
  for (size_t at = 0; at < x.size(); at += kBlock)
    blocks.push_back(RoundBlock(x.subspan(at, kBlock)));
  return blocks;
}

float DotBlocks(DType dtype, const std::vector<InputBlock>& x,
                const std::vector<WeightBlock>& w) {
  float acc = 0;
  for (size_t b = 0; b < x.size(); ++b) {
    int32_t dot = 0;
    for (size_t i = 0; i < kBlock; ++i) dot += x[b].codes[i] * w[b].q[i];
    acc = std::fma(static_cast<float>(dot), w[b].d * x[b].scale, acc);
    if (dtype == DType::kQ8_0) continue;
    acc = std::fma(w[b].m, x[b].scale * static_cast<float>(x[b].sum), acc);
  }
  return acc;
}

}  // namespace

bool IsLinearOfCodes(const OpContext& context) {
  const Encoding* w = EncodingOf(context, 1);
  return TensorCodes(context, 0) != nullptr && w != nullptr && HasCodes(*w) &&
         w->axis <= 0;
}

bool IsLinearOfBlocks(const OpContext& context) {
  const Encoding* w = EncodingOf(context, 1);
  return w != nullptr && IsBlockType(w->dtype);
}

HostTensor LinearOfCodes(const OpContext& context,
                         std::span<const HostTensor* const> inputs,
                         const TensorType& output) {
  const Encoding& x = *EncodingOf(context, 0);
  const Encoding& w = *EncodingOf(context, 1);
  const auto rows = static_cast<size_t>(output.shape[0]);
  const auto width_out = static_cast<size_t>(output.shape[1]);
  const std::vector<int32_t> x_steps = Steps(x, *inputs[0]);
  const size_t width_in = x_steps.size() / rows;
  const int64_t dropped =
      OptionalIntAttr(context.attrs, AttrName::kDroppedBits);
  const int64_t place = int64_t{1} << dropped;
  const bool fixed = OptionalIntAttr(context.attrs, AttrName::kFixedPoint) != 0;
  HX_CHECK(!fixed || context.output != nullptr);
  HostTensor out{.type = output,
                 .floats = std::vector<float>(rows * width_out)};
  for (size_t n = 0; n < width_out; ++n) {
    const std::vector<int64_t> w_steps = RowSteps(w, *inputs[1], n);
    const double step = static_cast<double>(x.scales[0]) *
                        static_cast<double>(w.scales[w.axis < 0 ? 0 : n]);
    const int64_t bias =
        inputs.size() > 2 ? EncodeBias(inputs[2]->floats[n], step) : 0;
    const int64_t zero =
        ZeroFromZero(x) *
        std::accumulate(w_steps.begin(), w_steps.end(), int64_t{0});
    for (size_t t = 0; t < rows; ++t) {
      int64_t products = 0;
      for (size_t k = 0; k < width_in; ++k)
        products += x_steps[t * width_in + k] * w_steps[k];
      const int64_t acc =
          DropBits(products, zero, dropped) + bias / place * place;
      out.floats[t * width_out + n] =
          fixed ? FixedPoint(*context.output, step)(acc)
                : static_cast<float>(static_cast<double>(acc) * step);
    }
  }
  return out;
}

HostTensor LinearOfBlocks(const OpContext& context,
                          std::span<const HostTensor* const> inputs,
                          const TensorType& output) {
  const DType dtype = EncodingOf(context, 1)->dtype;
  const auto rows = static_cast<size_t>(output.shape[0]);
  const auto width_out = static_cast<size_t>(output.shape[1]);
  const std::span<const float> x = inputs[0]->floats;
  std::vector<std::vector<InputBlock>> x_rows;
  for (size_t t = 0; t < rows; ++t)
    x_rows.push_back(
        RoundRow(x.subspan(t * (x.size() / rows), x.size() / rows)));
  HostTensor out{.type = output,
                 .floats = std::vector<float>(rows * width_out)};
  for (size_t n = 0; n < width_out; ++n) {
    const std::vector<WeightBlock> w_row =
        ReadBlocks(context.operands[1], static_cast<int64_t>(n));
    for (size_t t = 0; t < rows; ++t) {
      float& y = out.floats[t * width_out + n];
      y = DotBlocks(dtype, x_rows[t], w_row);
      if (inputs.size() > 2) y += inputs[2]->floats[n];
    }
  }
  return out;
}

}  // namespace hexllm::ir
