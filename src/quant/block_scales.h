// The integer factors of LPBQ for one channel. Part of quant/weight_encoding.h.
#pragma once

#include <cstdint>
#include <span>

namespace hexllm::quant {

// Factors of block scales: 1 to this.
inline constexpr int kBlockSteps = 16;

// How one channel is cut and searched.
struct BlockSearch {
  int block = 32;      // divides the channel (checked)
  int candidates = 1;  // roundings of each weight; 1 = min-max, no search
};

// Writes a factor per block to `factors` and returns the channel's scale; see
// WeightEncoding.
float ChooseBlockScales(std::span<const float> channel, BlockSearch search,
                        std::span<uint8_t> factors);

}  // namespace hexllm::quant
