#include "quant/gptq.h"

#include <algorithm>
#include <cmath>

#include "ir/encode.h"
#include "quant/cholesky.h"
#include "quant/weight_tiles.h"

namespace hexllm::quant {
namespace {

constexpr int64_t kTileRows = 64;

// A tile's rows in the order of the factor.
class TileRounding {
 public:
  TileRounding(const WeightTile& tile, const ir::Encoding& encoding,
               const HessianFactor& factor, const SearchContext& context)
      : tile_(tile),
        encoding_(encoding),
        factor_(factor),
        context_(context),
        most_(static_cast<float>(ir::CodesOf(encoding).most)),
        width_(static_cast<size_t>(tile.width)),
        lost_(tile.values.size()) {}

  // Writes [rows, K] codes.
  void Run(std::span<std::byte> codes) {
    for (int64_t end = tile_.width; end > 0;) {
      const int64_t begin = std::max<int64_t>(0, end - kFactorBlock);
      RoundStrip(begin, end, codes);
      end = begin;
    }
  }

 private:
  // The factor's rows of a strip, by column: entry [j, i] is U[begin + i,
  // begin + j].
  std::vector<float> ColumnsOf(size_t begin, size_t size) const {
    std::vector<float> columns(size * size);
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = i; j < size; ++j)
        columns[j * size + i] = factor_.upper[(begin + i) * width_ + begin + j];
    }
    return columns;
  }

  void RoundStrip(int64_t begin, int64_t end, std::span<std::byte> codes) {
    const int64_t size = end - begin;
    std::vector<float> carried(static_cast<size_t>(tile_.rows * size));
    if (end < tile_.width) {
      context_.product(
          {.a = &lost_[static_cast<size_t>(end)],
           .a_stride = tile_.width,
           .b = &factor_.upper[static_cast<size_t>(begin * tile_.width + end)],
           .b_stride = tile_.width,
           .out = carried.data(),
           .out_stride = size,
           .m = tile_.rows,
           .n = size,
           .k = tile_.width - end});
    }
    const auto count = static_cast<size_t>(size);
    const std::vector<float> columns =
        ColumnsOf(static_cast<size_t>(begin), count);
    for (size_t r = 0; r < static_cast<size_t>(tile_.rows); ++r) {
      const auto sums = std::span(carried).subspan(r * count, count);
      for (size_t i = count; i-- > 0;) {
        const float* column = &columns[i * count];
        const float lost = RoundOne(r, static_cast<size_t>(begin) + i,
                                    sums[i] / column[i], codes);
        for (size_t above = 0; above < i; ++above)
          sums[above] += lost * column[above];
      }
    }
  }

  // Rounds place `i` of row `r`; returns what that takes from the weight.
  float RoundOne(size_t r, size_t i, float carried,
                 std::span<std::byte> codes) {
    const auto input = static_cast<size_t>(factor_.order[i]);
    const float weight = tile_.values[r * width_ + input];
    const float scale = ScaleOf(r, input);
    const float code =
        std::rint(std::clamp((weight + carried) / scale, -most_, most_));
    codes[r * width_ + input] =
        static_cast<std::byte>(static_cast<int8_t>(code));
    return lost_[r * width_ + i] = weight - code * scale;
  }

  float ScaleOf(size_t r, size_t input) const {
    const size_t row = static_cast<size_t>(tile_.first) + r;
    const float scale = encoding_.scales[encoding_.axis < 0 ? 0 : row];
    if (encoding_.block == 0) return scale;
    const auto block = static_cast<size_t>(encoding_.block);
    return static_cast<float>(
               encoding_.block_scales[row * (width_ / block) + input / block]) *
           scale;
  }

  const WeightTile& tile_;
  const ir::Encoding& encoding_;
  const HessianFactor& factor_;
  const SearchContext& context_;
  const float most_;
  const size_t width_;
  std::vector<float> lost_;  // [rows, K] by place
};

}  // namespace

std::vector<std::byte> GptqCodes(const ir::Constant& weight,
                                 const ir::Encoding& encoding,
                                 InputMoments& inputs) {
  const HessianFactor& factor = inputs.Factor();
  const auto width = static_cast<size_t>(inputs.width());
  std::vector<std::byte> codes(static_cast<size_t>(ir::NumRows(weight)) *
                               width);
  ForEachTile(
      weight, kTileRows, inputs.context().pool, [&](const WeightTile& tile) {
        TileRounding(tile, encoding, factor, inputs.context())
            .Run(std::span(codes).subspan(
                static_cast<size_t>(tile.first) * width, tile.values.size()));
      });
  return codes;
}

}  // namespace hexllm::quant
