#include "compile/key_statistics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace hexllm {
namespace {

// Of a channel, as a share of its power.
constexpr double kLeastVariance = 1e-12;

}  // namespace

void KeyStatistics::Add(std::span<const float> keys, const Shape& shape) {
  HX_CHECK(shape.size() == 3);
  const auto channels = static_cast<size_t>(shape[1] * shape[2]);
  sum_.resize(channels);
  squares_.resize(channels);
  HX_CHECK(keys.size() == static_cast<size_t>(shape[0]) * channels);
  for (size_t i = 0; i < keys.size(); ++i) {
    const double key = keys[i];
    sum_[i % channels] += key;
    squares_[i % channels] += key * key;
    least_ = std::min(least_, keys[i]);
    most_ = std::max(most_, keys[i]);
  }
  tokens_ += shape[0];
}

double KeyStatistics::SqnrOf8Bits() const {
  double variance = 0;
  const auto tokens = static_cast<double>(tokens_);
  for (size_t c = 0; c < sum_.size(); ++c) {
    const double mean = sum_[c] / tokens;
    const double power = squares_[c] / tokens;
    const double difference = power - mean * mean;
    // Below, it is what the sums have lost.
    if (difference > kLeastVariance * power) variance += difference;
  }
  const double scale = static_cast<double>(std::max(most_, -least_)) / 127;
  const double noise = scale * scale / 12 * static_cast<double>(sum_.size());
  if (variance == 0 || noise == 0)
    return std::numeric_limits<double>::infinity();
  return 10 * std::log10(variance / noise);
}

std::optional<int> LayerOfName(std::string_view name) {
  constexpr std::string_view kPrefix = "model.layers.";
  if (name.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  const std::string_view rest = name.substr(kPrefix.size());
  int layer = 0;
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), layer);
  if (error != std::errc() || end == rest.data() + rest.size() || *end != '.')
    return std::nullopt;
  return layer;
}

}  // namespace hexllm
