// Reading the RoPE of config.json, in the old spelling (rope_theta,
// rope_scaling) and in transformers 5's (rope_parameters).
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "models/decoder_config.h"

namespace hexllm::models {

// What counts where the file is silent.
struct HfRopeDefaults {
  double theta = 10000;
  double partial_rotary_factor = 1;
};

// The one RoPE of a model with head dim D. kUnsupported names an unknown
// rope_type, and rope_parameters that hold one set per kind of layer.
Result<RopeConfig> ReadHfRope(const Json& json, int64_t head_dim,
                              const HfRopeDefaults& defaults = {});

// Checks the numbers of a RoPE that has been read: finite, positive, and of a
// size that f32 arithmetic can work with. kBadInput.
Status ValidateRope(const RopeConfig& rope);

// sqrt(1 + ln(factor) / ln(original)), what longrope multiplies cosines and
// sines with; 1 for a factor up to 1 (transformers, modeling_rope_utils).
double LongRopeAttentionFactor(double factor, int64_t original);

}  // namespace hexllm::models
