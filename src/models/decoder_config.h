// What a decoder-only transformer looks like, whatever file it comes from: the
// result of reading config.json or GGUF metadata, and all that models/decoder.h
// needs to build its graphs. Every field is independent of the others: a family
// is a set of values, and no code asks for its name. Lives on the host only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/ops.h"

namespace hexllm::models {

// How the RoPE frequencies are scaled. Names as in transformers' `rope_type`;
// longrope has no row: it is RopeConfig's divisors.
enum class RopeScaling { kDefault, kLinear, kLlama3 };

// One RoPE flavour. Frequency i of R/2: theta^(-2i/R), then scaled.
struct RopeConfig {
  double theta = 10000.0;
  int64_t rotary_dim = 0;  // R <= head_dim
  RopeScaling scaling = RopeScaling::kDefault;
  double factor = 1.0;            // kLinear, kLlama3
  double low_freq_factor = 1.0;   // kLlama3
  double high_freq_factor = 4.0;  // kLlama3
  // kLlama3: the context before the scaling; with `long_divisors`: the longest
  // prompt that `freq_divisors` are for.
  int64_t original_positions = 0;
  // Divides frequency i when not empty [R/2]: longrope's short factors, GGUF's
  // rope_freqs tensor.
  std::vector<float> freq_divisors = {};
  // longrope (Ding et al. 2024): in place of `freq_divisors` for all positions
  // when the prompt has more than `original_positions` tokens. Empty or [R/2].
  std::vector<float> long_divisors = {};
  double attention_factor = 1.0;  // multiplies cosines and sines
};

enum class HiddenActivation { kSilu, kGeluTanh, kGeluErf };

// Whether the projections carry a bias.
enum class Bias { kNone, kPresent };

// Whether the head is the embedding table.
enum class Head { kTied, kUntied };

enum class NormKind {
  kRms,    // RMSNorm with weight
  kLayer,  // LayerNorm with weight and bias
};

// Norms of a layer's two parts, attention and MLP.
enum class NormPlacement {
  kBefore,          // of the input of each
  kBeforeAndAfter,  // and of the output of each, before the residual sum
};

// Whether each query and key head has a norm before RoPE.
enum class QkNorm { kNone, kPerHead };

enum class LayerForm {
  kSequential,  // x + attention(norm(x)), then the same with the MLP
  kParallel,    // x + attention(norm(x)) + mlp(norm(x)), one norm
};

enum class MlpForm {
  kGated,  // down(act(gate(x)) * up(x))
  kPlain,  // down(act(up(x)))
};

// What layers may have of their own.
struct LayerConfig {
  std::optional<size_t> rope = 0;  // row of `ropes`; nothing = no RoPE (NoPE)
  size_t window = 0;               // row of `windows`
};

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

  NormKind norm = NormKind::kRms;
  double norm_eps = 0;
  double norm_weight_offset = 0;  // 1 where files store w - 1
  NormPlacement norm_placement = NormPlacement::kBefore;
  QkNorm qk_norm = QkNorm::kNone;
  LayerForm layer_form = LayerForm::kSequential;

  // [D,D], orthogonal: query and key heads are rotated by it behind RoPE, which
  // leaves their products as they are. Empty = they are not. No file says this:
  // it is R3 of a recipe (compile/rotate.h).
  std::vector<float> head_rotation = {};

  Bias qkv_bias = Bias::kNone;
  Bias attention_out_bias = Bias::kNone;
  double attention_scale = 0;    // of scores; usually 1 / sqrt(D)
  double attention_softcap = 0;  // 0 = none
  // Fused q, k and v: the tensor is that many equal shards with rows of each.
  int64_t fused_shards = 1;

  MlpForm mlp_form = MlpForm::kGated;
  HiddenActivation activation = HiddenActivation::kSilu;
  Bias mlp_bias = Bias::kNone;

  double embedding_scale = 1;
  double residual_scale = 1;  // of what attention and MLP add
  double logits_scale = 1;
  double logits_softcap = 0;  // 0 = none
  Head head = Head::kTied;
  Bias head_bias = Bias::kNone;

  std::vector<RopeConfig> ropes;  // distinct ones, by rope_cos[i]
  // Distinct attention windows, by mask[j]: 0 = all earlier tokens, w = the
  // last w.
  std::vector<uint32_t> windows = {0};
  std::vector<LayerConfig> layer_configs;  // [L]
};

}  // namespace hexllm::models
