// Reading config.json: the keys that most decoder families share, in the old
// spelling and in transformers 5's.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "models/decoder_config.h"

namespace hexllm::models {

// vocab_size, hidden_size, ..., head_dim (default hidden / heads),
// num_key_value_heads (default heads), hidden_act, rms_norm_eps,
// tie_word_embeddings (default false, as in transformers), and the RoPE keys.
// Validated (ValidateConfig).
Result<DecoderConfig> ReadCommonHfConfig(const Json& json);

// rope_theta + rope_scaling (old), or rope_parameters (transformers 5).
// kUnsupported names an unknown rope_type.
Result<RopeConfig> ReadHfRope(const Json& json, int64_t head_dim);

// Checks the numbers of a RoPE that has been read: finite, positive, and of a
// size that f32 arithmetic can work with. kBadInput.
Status ValidateRope(const RopeConfig& rope);

// Checks that the numbers make a model: positive, divisible, of bounded size.
// kBadInput names the key.
Status ValidateConfig(const DecoderConfig& config);

}  // namespace hexllm::models
