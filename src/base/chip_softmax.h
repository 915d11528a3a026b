// Softmax of 16-bit codes as the HTP computes it, in whole numbers (measured on
// v73 to v81; docs/htp-backend.md). Shared by the interpreter and the CPU
// engine.
#pragma once

#include <span>

namespace hexllm {

// One row of numbers code * scale, to multiples of 1/65536. With
//   factor = floor(scale * log2(e) * 2^22)
//   power  = 2^-(factor * (largest code - code) / 2^22), in 2^-15
//   sum    = of the powers; n = floor(log2(sum)); b = min(n - 1, 16)
//   inverse = round(2^(n + b) / (sum, rounded down to even, + 1/2))
//   out    = min(floor(power * inverse / 2^(n + b - 16)), 65535) / 65536
// where powers are of pieces of second degree, and codes are at most 65536
// apart; -infinity and NaN are that far away, and rows of nothing else give 0.
// `out` may be x.
void ChipSoftmax(std::span<const float> x, float scale, std::span<float> out);

}  // namespace hexllm
