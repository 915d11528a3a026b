// The cosines and sines that a model's RoPE multiplies with, for positions 0,
// 1, ...: computed once at compile time.
#pragma once

#include <cstdint>
#include <vector>

#include "models/decoder_config.h"

namespace hexllm::models {

// Rows are positions: f32 [positions, R/2].
struct RopeTableData {
  std::vector<float> cos;
  std::vector<float> sin;
};

// Which of longrope's two sets of factors; one and the same for other scalings.
enum class RopeSet { kShort, kLong };

// Frequencies [R/2] in f32 after scaling, in the order of operations of
// transformers' modeling_rope_utils (f32 throughout). Source of the llama3
// scaling: Llama 3.1 reference code, apply_scaling.
std::vector<float> RopeFrequencies(const RopeConfig& rope,
                                   RopeSet set = RopeSet::kShort);

// angle = f32(position) * frequency, rounded to f32 as there; cos and sin of
// that angle are correctly rounded from double, times rope.attention_factor.
RopeTableData MakeRopeTable(const RopeConfig& rope, int64_t positions,
                            RopeSet set = RopeSet::kShort);

}  // namespace hexllm::models
