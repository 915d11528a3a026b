// Llama checkpoints in Meta's own layout (consolidated.NN.pth) and in that of
// llama2.c, whose training code took it over: the keys of params.json or
// "model_args", and their tensor names. Used by models/model_source.cc.
// Source: meta-llama/llama-models, models/llama3/model.py; karpathy/llama2.c,
// model.py.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "models/decoder_config.h"
#include "models/model.h"

namespace hexllm::models {

// True when the tensors are called as Meta calls them, whatever the file.
bool IsMetaLayout(const Checkpoint& checkpoint);

// Sizes, norm epsilon, RoPE base and scaling from `params`; the head is tied
// when the file has no output or one that is the embedding itself. The scaling
// factor of use_scaled_rope stands in no file of Meta's: it is the key
// rope_scale_factor, or the `decoder_model` knows it ("llama3_2-...").
// Validated. kBadInput names the key.
Result<DecoderConfig> ReadMetaConfig(const Json& params,
                                     const Checkpoint& checkpoint,
                                     std::string_view decoder_model);

// Meta's tensor names. Its q and k have interleaved RoPE rows.
inline constexpr TensorAlias kMetaNames[] = {
    {"model.embed_tokens", "tok_embeddings"},
    {"model.norm", "norm"},
    {"lm_head", "output"},
    {"model.layers.{}.input_layernorm", "layers.{}.attention_norm"},
    {"model.layers.{}.self_attn.q_proj", "layers.{}.attention.wq"},
    {"model.layers.{}.self_attn.k_proj", "layers.{}.attention.wk"},
    {"model.layers.{}.self_attn.v_proj", "layers.{}.attention.wv"},
    {"model.layers.{}.self_attn.o_proj", "layers.{}.attention.wo"},
    {"model.layers.{}.post_attention_layernorm", "layers.{}.ffn_norm"},
    {"model.layers.{}.mlp.gate_proj", "layers.{}.feed_forward.w1"},
    {"model.layers.{}.mlp.up_proj", "layers.{}.feed_forward.w3"},
    {"model.layers.{}.mlp.down_proj", "layers.{}.feed_forward.w2"},
};

}  // namespace hexllm::models
