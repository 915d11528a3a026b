// Reading GGUF metadata: the keys "<architecture>.<key>" that llama.cpp's
// decoder families share, and their tensor names.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "models/decoder_config.h"
#include "models/model.h"

namespace hexllm::models {

// Typed access to "<architecture>.<suffix>"; borrows both. kBadInput names the
// key.
class GgufKeys {
 public:
  GgufKeys(const GgufMetadata& metadata, std::string_view architecture)
      : metadata_(metadata), architecture_(architecture) {}

  std::string Name(std::string_view suffix) const;
  // Within int32.
  Result<int64_t> Int(std::string_view suffix) const;
  Result<int64_t> IntOr(std::string_view suffix, int64_t fallback) const;
  Result<double> Float(std::string_view suffix) const;
  Result<double> FloatOr(std::string_view suffix, double fallback) const;
  // A positive number; `fallback` when it is missing or, as in llama.cpp, 0.
  Result<double> FactorOr(std::string_view suffix, double fallback) const;

 private:
  Result<int64_t> Narrow(std::string_view suffix, uint64_t value) const;

  const GgufMetadata& metadata_;
  std::string_view architecture_;
};

// Sizes, norm epsilon, biases of the attention by the tensors that there are,
// RoPE base and scaling (also in the form of a rope_freqs tensor); all layers
// alike, without a window. The head is tied when the file has no output tensor.
// Validated. Keys that change what is computed and that not all families have
// are refused, except for `own_keys`, which the caller reads.
Result<DecoderConfig> ReadCommonGgufConfig(
    const Checkpoint& checkpoint, std::string_view architecture,
    std::span<const std::string_view> own_keys = {});

// longrope: rope_factors_short and rope_factors_long, where the file has them.
Status ReadGgufLongRope(const Checkpoint& checkpoint,
                        std::string_view architecture, DecoderConfig& config);

// Names of the tensors that the llama-like families share.
inline constexpr TensorAlias kCommonGgufNames[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"model.layers.{}.input_layernorm", "blk.{}.attn_norm"},
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k"},
    {"model.layers.{}.self_attn.v_proj", "blk.{}.attn_v"},
    {"model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm"},
    {"model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm"},
    {"model.layers.{}.self_attn.o_proj", "blk.{}.attn_output"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate"},
    {"model.layers.{}.mlp.up_proj", "blk.{}.ffn_up"},
    {"model.layers.{}.mlp.down_proj", "blk.{}.ffn_down"},
};

}  // namespace hexllm::models
