// Reading config.json: the keys that most decoder families share, in the old
// spelling and in transformers 5's.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "models/decoder_config.h"
#include "models/hf_rope.h"

namespace hexllm::models {

// What transformers' configuration class of a family has where files are
// silent.
struct HfDefaults {
  Head head = Head::kUntied;
  int64_t head_dim = 0;  // 0 = hidden / heads
  HfRopeDefaults rope = {};
};

// vocab_size, hidden_size, ..., head_dim, num_key_value_heads (default heads),
// hidden_act, rms_norm_eps, tie_word_embeddings, and the RoPE keys; all layers
// have that RoPE and no window, and scores are scaled by 1/sqrt(D). Validated
// (ValidateConfig).
Result<DecoderConfig> ReadCommonHfConfig(const Json& json,
                                         const HfDefaults& defaults = {});
// The same without hidden_act, which the caller reads, and without RoPE.
Result<DecoderConfig> ReadHfSizes(const Json& json, const HfDefaults& defaults);

// "silu", "gelu", ...; kUnsupported names `key` and an unknown one.
Result<HiddenActivation> ParseActivation(std::string_view key,
                                         std::string_view name);

// A key that is true where projections have a bias; absent = none.
Result<Bias> ReadBias(const Json& json, const char* key);

// attention_bias: of q, k, v and o alike.
Status ReadAttentionBias(const Json& json, DecoderConfig& config);

// `value` when it is above 0 and of a size that f32 can work with; kBadInput
// names `key`.
Result<double> CheckMultiplier(std::string_view key, double value);
// The number of `key`, so checked; `fallback` when it is missing.
Result<double> ReadFactor(const Json& json, const char* key, double fallback);

// A softcap; 0 (none) when it is missing or null.
Result<double> ReadSoftcap(const Json& json, const char* key);

// What a family says of a layer, from 0 on.
using LayerRule = std::function<bool(int64_t layer)>;

// The answers for all layers.
std::vector<bool> MarkLayers(int64_t layers, const LayerRule& rule);

// Which layers see a window of the last tokens only: `layer_types` where the
// file has it, else what `otherwise` says.
Result<std::vector<bool>> ReadSlidingLayers(const Json& json, int64_t layers,
                                            const LayerRule& otherwise);

// Gives the marked layers a window of `tokens`, the value of `key`; one that is
// no shorter than the longest context is none. kBadInput unless it is positive.
Status SetWindows(DecoderConfig& config, const std::vector<bool>& sliding,
                  const char* key, int64_t tokens);

// All layers with one RoPE and no window, scores scaled by 1/sqrt(D).
void SetUniformLayers(DecoderConfig& config, RopeConfig rope);

// What a format calls the sizes.
struct SizeKeys {
  std::string_view vocab = "vocab_size";
  std::string_view hidden = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  std::string_view head_dim = "head_dim";
  std::string_view ffn = "intermediate_size";
  std::string_view max_positions = "max_position_embeddings";
};

// Checks that the numbers make a model: positive, divisible, of bounded size.
// kBadInput names the key.
Status ValidateConfig(const DecoderConfig& config, const SizeKeys& keys = {});

}  // namespace hexllm::models
