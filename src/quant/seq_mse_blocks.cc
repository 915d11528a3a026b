#include "quant/seq_mse_blocks.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "quant/block_errors.h"
#include "quant/block_scales.h"
#include "quant/weight_tiles.h"

namespace hexllm::quant {
namespace {

constexpr int64_t kTileRows = 64;
constexpr int kSweeps = 2;
// Inputs whose gradients are computed together: whole blocks.
constexpr int64_t kStrip = 128;
constexpr float kMostInt4 = 7;

// What is being chosen for one channel.
struct Channel {
  float scale;
  std::vector<uint8_t> factors;
};

// The channels of one tile.
class TileSearch {
 public:
  TileSearch(const WeightTile& tile, int64_t block, int candidates,
             InputMoments& inputs)
      : tile_(tile),
        width_(static_cast<size_t>(tile.width)),
        block_(static_cast<size_t>(block)),
        candidates_(candidates),
        inputs_(inputs),
        gram_(inputs.Gram()),
        errors_(tile.values.size()) {}

  void Run(std::span<Channel> channels) {
    Start(channels);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (int64_t at = 0; at < tile_.width; at += kStrip)
        ImproveStrip(channels, at, std::min(kStrip, tile_.width - at));
    }
  }

 private:
  std::span<float> ErrorsOf(size_t row) {
    return std::span(errors_).subspan(row * width_, width_);
  }
  std::span<const float> WeightsOf(size_t row) const {
    return tile_.Row(static_cast<int64_t>(row));
  }
  const float* GramAt(size_t row, size_t column) const {
    return &gram_[row * width_ + column];
  }

  void Round(size_t row, const Channel& channel) {
    for (size_t b = 0; b < channel.factors.size(); ++b)
      RoundBlock(row, b,
                 static_cast<float>(channel.factors[b]) * channel.scale);
  }
  void RoundBlock(size_t row, size_t b, float scale) {
    RoundingErrors(WeightsOf(row).subspan(b * block_, block_),
                   {scale, kMostInt4},
                   ErrorsOf(row).subspan(b * block_, block_));
  }

  // The factors of blocks on their own; returns their E in all.
  double ChooseAlone(size_t row, Channel& channel) const {
    static constexpr float kNothing[64] = {};
    const std::span<const float> zeros = std::span(kNothing).first(block_);
    double sum = 0;
    for (size_t b = 0; b < channel.factors.size(); ++b) {
      const size_t at = b * block_;
      const FactorChoice best =
          BestFactor({.weights = WeightsOf(row).subspan(at, block_),
                      .errors = zeros,
                      .gradient = zeros,
                      .gram = GramAt(at, at),
                      .gram_stride = tile_.width},
                     channel.scale);
      channel.factors[b] = best.factor;
      sum += static_cast<double>(best.change);
    }
    return sum;
  }

  Channel BestAlone(size_t row, const Channel& given) const {
    Channel best = given;
    double least = std::numeric_limits<double>::infinity();
    const int scales = (candidates_ + kBlockSteps - 1) / kBlockSteps;
    for (int i = 0; i < scales; ++i) {
      Channel tried = given;
      tried.scale *=
          1 - 0.5f * static_cast<float>(i) / static_cast<float>(scales);
      const double error = ChooseAlone(row, tried);
      if (error >= least) continue;
      least = error;
      best = std::move(tried);
    }
    return best;
  }

  // Leaves the better of what is given and BestAlone, with its errors.
  void Start(std::span<Channel> channels) {
    for (size_t r = 0; r < channels.size(); ++r) Round(r, channels[r]);
    const std::vector<double> given = inputs_.Errors(errors_);
    const std::vector<float> given_errors = errors_;
    std::vector<Channel> alone;
    for (size_t r = 0; r < channels.size(); ++r) {
      alone.push_back(BestAlone(r, channels[r]));
      Round(r, alone[r]);
    }
    const std::vector<double> found = inputs_.Errors(errors_);
    for (size_t r = 0; r < channels.size(); ++r) {
      if (found[r] < given[r]) {
        channels[r] = std::move(alone[r]);
      } else {
        std::copy_n(
            given_errors.begin() + static_cast<std::ptrdiff_t>(r * width_),
            width_, ErrorsOf(r).begin());
      }
    }
  }

  void ImproveStrip(std::span<Channel> channels, int64_t at, int64_t size) {
    std::vector<float> gradients(channels.size() * static_cast<size_t>(size));
    inputs_.context().product({.a = errors_.data(),
                               .a_stride = tile_.width,
                               .b = GramAt(static_cast<size_t>(at), 0),
                               .b_stride = tile_.width,
                               .out = gradients.data(),
                               .out_stride = size,
                               .m = std::ssize(channels),
                               .n = size,
                               .k = tile_.width});
    const auto count = static_cast<size_t>(size);
    for (size_t r = 0; r < channels.size(); ++r) {
      const auto gradient = std::span(gradients).subspan(r * count, count);
      for (size_t i = 0; i < count; i += block_)
        ImproveBlock(
            r, channels[r],
            {.at = static_cast<size_t>(at), .block = i, .gradient = gradient});
    }
  }

  // One block of the strip at `at`, whose gradients are kept up to date.
  struct StripBlock {
    size_t at;
    size_t block;  // where it begins in the strip
    std::span<float> gradient;
  };
  void ImproveBlock(size_t row, Channel& channel, const StripBlock& strip) {
    const size_t at = strip.at + strip.block;
    const std::span<float> errors = ErrorsOf(row).subspan(at, block_);
    const FactorChoice best =
        BestFactor({.weights = WeightsOf(row).subspan(at, block_),
                    .errors = errors,
                    .gradient = strip.gradient.subspan(strip.block, block_),
                    .gram = GramAt(at, at),
                    .gram_stride = tile_.width},
                   channel.scale);
    const size_t b = at / block_;
    if (best.factor == channel.factors[b] || !(best.change < 0)) return;
    std::vector<float> change(errors.begin(), errors.end());
    channel.factors[b] = best.factor;
    RoundBlock(row, b, static_cast<float>(best.factor) * channel.scale);
    for (size_t i = 0; i < block_; ++i) {
      const float step = errors[i] - change[i];
      const float* gram = GramAt(at + i, strip.at);
      for (size_t j = 0; j < strip.gradient.size(); ++j)
        strip.gradient[j] += step * gram[j];
    }
  }

  const WeightTile& tile_;
  const size_t width_;
  const size_t block_;
  const int candidates_;
  InputMoments& inputs_;
  const std::span<const float> gram_;
  std::vector<float> errors_;  // [rows, width]: rounded - weights
};

}  // namespace

ir::Encoding SearchBlockScales(const ir::Constant& weight, InputMoments& inputs,
                               int candidates, ir::Encoding encoding) {
  inputs.Gram();
  inputs.PrepareErrors();
  const auto blocks = static_cast<size_t>(inputs.width() / encoding.block);
  ForEachTile(
      weight, kTileRows, inputs.context().pool, [&](const WeightTile& tile) {
        std::vector<Channel> channels;
        const auto factors_of = [&](int64_t r) {
          return std::span(encoding.block_scales)
              .subspan(static_cast<size_t>(tile.first + r) * blocks, blocks);
        };
        for (int64_t r = 0; r < tile.rows; ++r) {
          const auto factors = factors_of(r);
          channels.push_back(
              {.scale = encoding.scales[static_cast<size_t>(tile.first + r)],
               .factors = {factors.begin(), factors.end()}});
        }
        TileSearch(tile, encoding.block, candidates, inputs).Run(channels);
        for (int64_t r = 0; r < tile.rows; ++r) {
          const Channel& found = channels[static_cast<size_t>(r)];
          encoding.scales[static_cast<size_t>(tile.first + r)] = found.scale;
          std::ranges::copy(found.factors, factors_of(r).begin());
        }
      });
  return encoding;
}

}  // namespace hexllm::quant
