#include "quant/gptq.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/float4.h"
#include "ir/encode.h"
#include "quant/cholesky.h"
#include "quant/weight_tiles.h"

namespace hexllm::quant {
namespace {

constexpr size_t kTileRows = 64;

// A tile's rows in the order of the factor, all of them place by place.
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
  // Sums of a strip's places [size, kTileRows]: a place's of all rows lie
  // together, and rows beyond the tile's are 0.
  std::vector<float> CarriedInto(int64_t begin, int64_t end) const {
    const int64_t size = end - begin;
    std::vector<float> sums(static_cast<size_t>(size) * kTileRows);
    if (end == tile_.width) return sums;
    std::vector<float> products(static_cast<size_t>(tile_.rows * size));
    context_.product(
        {.a = &lost_[static_cast<size_t>(end)],
         .a_stride = tile_.width,
         .b = &factor_.upper[static_cast<size_t>(begin * tile_.width + end)],
         .b_stride = tile_.width,
         .out = products.data(),
         .out_stride = size,
         .m = tile_.rows,
         .n = size,
         .k = tile_.width - end});
    for (size_t at = 0; at < products.size(); ++at) {
      const size_t row = at / static_cast<size_t>(size);
      const size_t place = at % static_cast<size_t>(size);
      sums[place * kTileRows + row] = products[at];
    }
    return sums;
  }

  void RoundStrip(int64_t begin, int64_t end, std::span<std::byte> codes) {
    std::vector<float> sums = CarriedInto(begin, end);
    for (auto i = static_cast<size_t>(end); i-- > static_cast<size_t>(begin);) {
      const auto first = static_cast<size_t>(begin);
      const Lost lost = RoundPlace(i, &sums[(i - first) * kTileRows], codes);
      for (size_t above = first; above < i; ++above) {
        AddScaled(lost, factor_.upper[above * width_ + i],
                  &sums[(above - first) * kTileRows]);
      }
    }
  }

  // Of one place: what its codes take from the weights, by row.
  using Lost = std::array<float, kTileRows>;

  static void AddScaled(const Lost& lost, float factor, float* sums) {
    const Float4 scale = Splat4(factor);
    for (size_t r = 0; r < lost.size(); r += 4)
      Store4(Load4(sums + r) + Load4(&lost[r]) * scale, sums + r);
  }

  Lost RoundPlace(size_t i, const float* sums, std::span<std::byte> codes) {
    const auto input = static_cast<size_t>(factor_.order[i]);
    const float diagonal = factor_.upper[i * width_ + i];
    Lost lost = {};
    for (size_t r = 0; r < static_cast<size_t>(tile_.rows); ++r) {
      const float weight = tile_.values[r * width_ + input];
      const float scale = ScaleOf(r, input);
      const float code = std::nearbyint(
          std::clamp((weight + sums[r] / diagonal) / scale, -most_, most_));
      codes[r * width_ + input] =
          static_cast<std::byte>(static_cast<int8_t>(code));
      lost_[r * width_ + i] = lost[r] = weight - code * scale;
    }
    return lost;
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
                                 const ir::Encoding& encoding, double damping,
                                 InputMoments& inputs) {
  const HessianFactor& factor = inputs.Factor(damping);
  const auto width = static_cast<size_t>(inputs.width());
  std::vector<std::byte> codes(static_cast<size_t>(ir::NumRows(weight)) *
                               width);
  ForEachTile(
      weight, static_cast<int64_t>(kTileRows), inputs.context().pool,
      [&](const WeightTile& tile) {
        TileRounding(tile, encoding, factor, inputs.context())
            .Run(std::span(codes).subspan(
                static_cast<size_t>(tile.first) * width, tile.values.size()));
      });
  return codes;
}

}  // namespace hexllm::quant
