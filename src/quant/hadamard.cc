#include "quant/hadamard.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace hexllm::quant {

bool HasHadamard(int64_t size) {
  return size > 0 && std::has_single_bit(static_cast<uint64_t>(size));
}

std::vector<float> HadamardMatrix(int64_t size) {
  HX_CHECK(HasHadamard(size));
  const auto n = static_cast<size_t>(size);
  const auto entry =
      static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
  std::vector<float> matrix(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j)
      matrix[i * n + j] = std::popcount(i & j) % 2 == 0 ? entry : -entry;
  }
  return matrix;
}

void HadamardTransform(std::span<float> x) {
  HX_CHECK(HasHadamard(static_cast<int64_t>(x.size())));
  for (size_t half = 1; half < x.size(); half *= 2) {
    for (size_t at = 0; at < x.size(); at += 2 * half) {
      for (size_t i = at; i < at + half; ++i) {
        const float a = x[i];
        const float b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
    }
  }
  const auto factor =
      static_cast<float>(1 / std::sqrt(static_cast<double>(x.size())));
  for (float& value : x) value *= factor;
}

}  // namespace hexllm::quant
