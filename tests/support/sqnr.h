// Signal-to-quantization-noise ratio, as tests compare logits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace hexllm::testing {

// 10 log10(sum ref^2 / sum (ref - x)^2) over all elements, in dB.
inline double Sqnr(const std::vector<float>& reference,
                   const std::vector<float>& x) {
  EXPECT_EQ(reference.size(), x.size());
  double signal = 0, noise = 0;
  for (size_t i = 0; i < std::min(reference.size(), x.size()); ++i) {
    const double error = static_cast<double>(reference[i]) - x[i];
    signal += static_cast<double>(reference[i]) * reference[i];
    noise += error * error;
  }
  return 10 * std::log10(signal / noise);
}

}  // namespace hexllm::testing
