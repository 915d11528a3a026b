// What the Gemma families share: norms that store w - 1, scaled embeddings, a
// tanh GELU, tied heads. Used by gemma.cc, gemma2.cc and gemma3.cc.
#pragma once

#include <span>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "models/decoder_config.h"
#include "models/model.h"

namespace hexllm::models {

// All but RoPE, windows and score scale.
Result<DecoderConfig> ReadGemmaConfig(const Json& json);

// Norms before and after attention and MLP (Gemma 2 and 3), the softcaps, and
// scores scaled by 1/sqrt(query_pre_attn_scalar).
Status ReadGemma2Keys(const Json& json, DecoderConfig& config);

// sliding_window (Gemma 2 and 3); null is refused, as layers need one.
Result<int64_t> ReadGemmaWindow(const Json& json);

// As ReadCommonGgufConfig. llama.cpp's converter adds the 1 to norms.
Result<DecoderConfig> ReadGemmaGguf(const Checkpoint& checkpoint,
                                    std::string_view architecture,
                                    std::span<const std::string_view> own_keys);

// GGUF files do not hold query_pre_attn_scalar. It is the head size, in the 27B
// model the width per head; llama.cpp knows that one by its layers, and so does
// this.
void SetGgufScoreScale(DecoderConfig& config, int64_t layers_of_27b);

// GGUF names of Gemma 2 and 3.
inline constexpr TensorAlias kGemma2GgufNames[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"},
};

}  // namespace hexllm::models
