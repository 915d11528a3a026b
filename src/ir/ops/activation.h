// Activation functions, in double. Shared by silu, gelu and gated_mul, so that
// the fused op is exactly the two it replaces.
#pragma once

#include <cmath>
#include <numbers>

namespace hexllm::ir {

// x * sigmoid(x) (Elfwing et al. 2017, "swish" with beta 1).
inline double Silu(double x) { return x / (1.0 + std::exp(-x)); }

// x * Phi(x), Phi the normal distribution function (Hendrycks & Gimpel 2016).
inline double GeluErf(double x) {
  return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
}

// The tanh approximation of the same paper.
inline double GeluTanh(double x) {
  const double inner =
      std::sqrt(2.0 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

}  // namespace hexllm::ir
