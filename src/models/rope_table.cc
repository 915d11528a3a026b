#include "models/rope_table.h"

#include <cmath>
#include <numbers>

namespace hexllm::models {
namespace {

// Wavelengths above original / low_freq_factor are divided by factor, those
// below original / high_freq_factor stay, and those between are blended.
float ScaleLlama3(const RopeConfig& rope, float frequency) {
  const auto original = static_cast<double>(rope.original_positions);
  const double wavelength =
      2.0 * std::numbers::pi / static_cast<double>(frequency);
  if (wavelength > original / rope.low_freq_factor)
    return static_cast<float>(static_cast<double>(frequency) / rope.factor);
  if (wavelength < original / rope.high_freq_factor) return frequency;
  const double smooth = (original / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return static_cast<float>((1.0 - smooth) * static_cast<double>(frequency) /
                                rope.factor +
                            smooth * static_cast<double>(frequency));
}

}  // namespace

std::vector<float> RopeFrequencies(const RopeConfig& rope, RopeSet set) {
  const bool use_long = set == RopeSet::kLong && !rope.long_divisors.empty();
  const std::vector<float>& divisors =
      use_long ? rope.long_divisors : rope.freq_divisors;
  std::vector<float> frequencies(static_cast<size_t>(rope.rotary_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent =
        static_cast<float>(2 * i) / static_cast<float>(rope.rotary_dim);
    float frequency = 1.0f / static_cast<float>(std::pow(
                                 rope.theta, static_cast<double>(exponent)));
    if (rope.scaling == RopeScaling::kLinear)
      frequency /= static_cast<float>(rope.factor);
    if (rope.scaling == RopeScaling::kLlama3)
      frequency = ScaleLlama3(rope, frequency);
    if (!divisors.empty()) frequency /= divisors[i];
    frequencies[i] = frequency;
  }
  return frequencies;
}

RopeTableData MakeRopeTable(const RopeConfig& rope, int64_t positions,
                            RopeSet set) {
  const std::vector<float> frequencies = RopeFrequencies(rope, set);
  RopeTableData table;
  const size_t size = static_cast<size_t>(positions) * frequencies.size();
  table.cos.reserve(size);
  table.sin.reserve(size);
  for (int64_t position = 0; position < positions; ++position) {
    for (const float frequency : frequencies) {
      const auto angle =
          static_cast<double>(static_cast<float>(position) * frequency);
      const double scale = rope.attention_factor;
      table.cos.push_back(static_cast<float>(std::cos(angle) * scale));
      table.sin.push_back(static_cast<float>(std::sin(angle) * scale));
    }
  }
  return table;
}

}  // namespace hexllm::models
