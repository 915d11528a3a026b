// Reading GGUF metadata: the keys "<architecture>.<key>" that llama.cpp's
// decoder families share, and their tensor names.
#pragma once

#include <string_view>

#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "models/decoder_config.h"
#include "models/model.h"

namespace hexllm::models {

// Sizes, norm epsilon, RoPE base and scaling (also in the form of a rope_freqs
// tensor). The head is tied when the file has no output tensor. Validated.
// kBadInput names the key.
Result<DecoderConfig> ReadCommonGgufConfig(const Checkpoint& checkpoint,
                                           std::string_view architecture);

// Names of the tensors that the llama-like families share.
inline constexpr TensorAlias kCommonGgufNames[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"model.layers.{}.input_layernorm", "blk.{}.attn_norm"},
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k"},
    {"model.layers.{}.self_attn.v_proj", "blk.{}.attn_v"},
    {"model.layers.{}.self_attn.o_proj", "blk.{}.attn_output"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate"},
    {"model.layers.{}.mlp.up_proj", "blk.{}.ffn_up"},
    {"model.layers.{}.mlp.down_proj", "blk.{}.ffn_down"},
};

}  // namespace hexllm::models
