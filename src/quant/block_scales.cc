#include "quant/block_scales.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "quant/range.h"
#include "quant/row_stats.h"

namespace hexllm::quant {
namespace {

constexpr float kMostInt4 = 7;

uint8_t FactorFor(float block_scale, float scale) {
  const float factor = std::nearbyint(block_scale / scale);
  return static_cast<uint8_t>(
      std::clamp(factor, 1.0f, static_cast<float>(kBlockSteps)));
}

struct BestFactor {
  uint8_t factor;
  double error;
};

// Of the factors from `most` down to a third of it, the one of least error.
BestFactor SearchFactor(std::span<const float> block, float scale,
                        uint8_t most) {
  BestFactor best = {most, std::numeric_limits<double>::infinity()};
  for (int factor = most; 3 * factor >= most; --factor) {
    const SymmetricGrid grid = {static_cast<float>(factor) * scale, kMostInt4};
    const double error = RoundingError(block, grid, best.error);
    if (error < best.error) best = {static_cast<uint8_t>(factor), error};
  }
  return best;
}

// Chooses the factors of one channel for one scale; returns the channel's
// error, which is more than `enough` when it gave up.
double SearchFactors(std::span<const float> channel, float scale, double enough,
                     std::span<uint8_t> factors,
                     std::span<const float> block_scales) {
  const size_t block = channel.size() / factors.size();
  double error = 0;
  for (size_t b = 0; b < factors.size() && error <= enough; ++b) {
    const BestFactor best =
        SearchFactor(channel.subspan(b * block, block), scale,
                     FactorFor(block_scales[b], scale));
    factors[b] = best.factor;
    error += best.error;
  }
  return error;
}

}  // namespace

float ChooseBlockScales(std::span<const float> channel, BlockSearch search,
                        std::span<uint8_t> factors) {
  const auto block = static_cast<size_t>(search.block);
  HX_CHECK(factors.size() * block == channel.size());
  std::vector<float> block_scales(factors.size());
  for (size_t b = 0; b < factors.size(); ++b) {
    const float magnitude = Magnitude(channel.subspan(b * block, block));
    block_scales[b] = std::max(magnitude / kMostInt4, LeastScale(16));
  }
  const float widest =
      *std::max_element(block_scales.begin(), block_scales.end()) /
      static_cast<float>(kBlockSteps);
  float scale = widest;
  for (size_t b = 0; b < factors.size(); ++b)
    factors[b] = FactorFor(block_scales[b], scale);
  if (search.candidates <= 1) return scale;

  std::vector<uint8_t> tried(factors.size());
  double least = std::numeric_limits<double>::infinity();
  const int scales = (search.candidates + kBlockSteps - 1) / kBlockSteps;
  for (int i = 0; i < scales; ++i) {
    // Down to half: below, even the greatest factor clips most blocks.
    const float shrink =
        1 - 0.5f * static_cast<float>(i) / static_cast<float>(scales);
    const double error =
        SearchFactors(channel, widest * shrink, least, tried, block_scales);
    if (error >= least) continue;
    least = error;
    scale = widest * shrink;
    std::copy(tried.begin(), tried.end(), factors.begin());
  }
  return scale;
}

}  // namespace hexllm::quant
