// A Llama-family checkpoint of two layers with random weights, as a Hugging
// Face folder or a GGUF file; every part can be spoilt before it is written.
// For tests of models/, compile/ and the command line.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/temp_dir.h"

namespace hexllm::testing {

// Sizes: V 32, M 16, L 2, H 4, G 2, D 4, F 24.
struct TinyTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string data;  // f32
};

class TinyLlama {
 public:
  TinyLlama() {
    config = {{"architectures", {"LlamaForCausalLM"}},
              {"vocab_size", 32},
              {"hidden_size", 16},
              {"intermediate_size", 24},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 4},
              {"num_key_value_heads", 2},
              {"hidden_act", "silu"},
              {"max_position_embeddings", 64},
              {"rms_norm_eps", 1e-5},
              {"rope_theta", 10000.0},
              {"tie_word_embeddings", true},
              {"eos_token_id", 1}};
    Add("model.embed_tokens.weight", {32, 16});
    for (const char* layer : {"0", "1"})
      AddLayer(std::string("model.layers.") + layer);
    Add("model.norm.weight", {16});
  }

  // Makes a random tensor, in place of one with the same name.
  void Add(const std::string& name, std::vector<int64_t> shape) {
    size_t count = 1;
    for (const int64_t dim : shape) count *= static_cast<size_t>(dim);
    std::vector<float> values(count);
    std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
    for (float& value : values) value = uniform(random_);
    tensors[name] = {name, std::move(shape),
                     std::string(AsText(std::as_bytes(std::span(values))))};
  }

  void WriteFolder(const TempDir& dir) const {
    SafetensorsBuilder builder;
    for (const auto& [name, tensor] : tensors)
      builder.Add(name, "F32", tensor.shape, tensor.data);
    dir.Write("model.safetensors", builder.Build());
    dir.Write("config.json", DumpJson(config));
  }

  // The same weights as llama.cpp stores them: q and k in interleaved RoPE
  // order, other names, reversed dimensions.
  std::string BuildGguf() const {
    GgufBuilder builder;
    builder.Add<std::string>("general.architecture", "llama")
        .Add<uint32_t>("llama.embedding_length", 16)
        .Add<uint32_t>("llama.block_count", 2)
        .Add<uint32_t>("llama.feed_forward_length", 24)
        .Add<uint32_t>("llama.context_length", 64)
        .Add<uint32_t>("llama.attention.head_count", 4)
        .Add<uint32_t>("llama.attention.head_count_kv", 2)
        .Add<float>("llama.attention.layer_norm_rms_epsilon", 1e-5f)
        .Add<float>("llama.rope.freq_base", 10000.0f);
    for (const auto& [name, tensor] : tensors) {
      const bool rotated = name.find("q_proj") != std::string::npos ||
                           name.find("k_proj") != std::string::npos;
      builder.Tensor({.name = GgufName(name),
                      .dims = std::vector<uint64_t>(tensor.shape.rbegin(),
                                                    tensor.shape.rend()),
                      .data = rotated ? Interleave(tensor) : tensor.data});
    }
    return builder.Build();
  }

  Json config;
  std::map<std::string, TinyTensor> tensors;

 private:
  void AddLayer(const std::string& prefix) {
    Add(prefix + ".input_layernorm.weight", {16});
    Add(prefix + ".self_attn.q_proj.weight", {16, 16});
    Add(prefix + ".self_attn.k_proj.weight", {8, 16});
    Add(prefix + ".self_attn.v_proj.weight", {8, 16});
    Add(prefix + ".self_attn.o_proj.weight", {16, 16});
    Add(prefix + ".post_attention_layernorm.weight", {16});
    Add(prefix + ".mlp.gate_proj.weight", {24, 16});
    Add(prefix + ".mlp.up_proj.weight", {24, 16});
    Add(prefix + ".mlp.down_proj.weight", {16, 24});
  }

  static std::string GgufName(std::string name) {
    constexpr std::pair<const char*, const char*> kParts[] = {
        {"model.embed_tokens", "token_embd"},
        {"model.norm", "output_norm"},
        {"lm_head", "output"},
        {"model.layers.", "blk."},
        {"input_layernorm", "attn_norm"},
        {"post_attention_layernorm", "ffn_norm"},
        {"self_attn.q_proj", "attn_q"},
        {"self_attn.k_proj", "attn_k"},
        {"self_attn.v_proj", "attn_v"},
        {"self_attn.o_proj", "attn_output"},
        {"mlp.gate_proj", "ffn_gate"},
        {"mlp.up_proj", "ffn_up"},
        {"mlp.down_proj", "ffn_down"}};
    for (const auto& [from, to] : kParts) {
      if (const size_t at = name.find(from); at != std::string::npos)
        name.replace(at, std::string_view(from).size(), to);
    }
    return name;
  }

  // Rows (0, 1, 2, 3) of each head of 4 become (0, 2, 1, 3): pairs (i, i+2)
  // side by side.
  static std::string Interleave(const TinyTensor& tensor) {
    constexpr size_t kOrder[] = {0, 2, 1, 3};
    const size_t row =
        tensor.data.size() / static_cast<size_t>(tensor.shape[0]);
    std::string out;
    for (size_t r = 0; r < static_cast<size_t>(tensor.shape[0]); ++r)
      out += tensor.data.substr((r / 4 * 4 + kOrder[r % 4]) * row, row);
    return out;
  }

  std::mt19937 random_{7};
};

}  // namespace hexllm::testing
