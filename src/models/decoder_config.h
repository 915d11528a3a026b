// What a decoder-only transformer looks like, whatever file it comes from: the
// result of reading config.json or GGUF metadata, and all that models/decoder.h
// needs to build its graphs. Lives on the host only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ops.h"

namespace hexllm::models {

// How the RoPE frequencies are scaled. Names as in transformers' `rope_type`.
enum class RopeScaling { kDefault, kLinear, kLlama3 };

// One RoPE flavour. Frequency i of R/2: theta^(-2i/R), then scaled.
struct RopeConfig {
  double theta = 10000.0;
  int64_t rotary_dim = 0;  // R <= head_dim
  RopeScaling scaling = RopeScaling::kDefault;
  double factor = 1.0;             // kLinear, kLlama3
  double low_freq_factor = 1.0;    // kLlama3
  double high_freq_factor = 4.0;   // kLlama3
  int64_t original_positions = 0;  // kLlama3
  // Divides frequency i when not empty [R/2]: GGUF's rope_freqs tensor, which
  // holds the scaling in finished form.
  std::vector<float> freq_divisors = {};
};

enum class HiddenActivation { kSilu, kGeluTanh, kGeluErf };

// Whether the projections carry a bias.
enum class Bias { kNone, kPresent };

// Whether the head is the embedding table.
enum class Head { kTied, kUntied };

// Sizes: M hidden, L layers, H query heads, G KV heads, D head dim, F FFN dim,
// V vocabulary.
struct DecoderConfig {
  std::string architecture;  // the row of models/models.cc, e.g. "llama"
  int64_t vocab = 0;         // V
  int64_t hidden = 0;        // M
  int64_t layers = 0;        // L
  int64_t heads = 0;         // H
  int64_t kv_heads = 0;      // G
  int64_t head_dim = 0;      // D
  int64_t ffn = 0;           // F
  int64_t max_positions = 0;
  double norm_eps = 0;
  HiddenActivation activation = HiddenActivation::kSilu;
  Bias attention_bias = Bias::kNone;  // q, k, v and o
  Bias mlp_bias = Bias::kNone;
  Head head = Head::kTied;
  RopeConfig rope;
};

}  // namespace hexllm::models
