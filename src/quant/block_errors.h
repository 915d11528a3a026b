// The 16 factors of a block of LPBQ, tried at once. Part of
// quant/seq_mse_blocks.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/float4.h"
#include "quant/block_scales.h"

namespace hexllm::quant {

// Numbers by factor: lane i is factor i + 1.
using FactorLanes = std::array<Float4, kBlockSteps / 4>;

// What one block of a channel is judged by.
struct BlockView {
  std::span<const float> weights;
  std::span<const float> errors;    // they have now: codes * scale - weights
  std::span<const float> gradient;  // G e: of the errors of the whole channel
  const float* gram;                // of this block's inputs, row-major
  int64_t gram_stride;
};

struct FactorChoice {
  uint8_t factor = 1;
  float change = 0;  // of E, from the present errors
};

// The factor of channel scale `scale` with the least E.
FactorChoice BestFactor(const BlockView& block, float scale);

}  // namespace hexllm::quant
