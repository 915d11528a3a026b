// CodeGen and CodeGen2: attention and MLP side by side behind one LayerNorm, a
// plain GELU MLP, interleaved partial RoPE, a head with a bias. llama.cpp has
// no such architecture.
//
// q, v and k are one tensor that is cut into mp_num shards, an accident of how
// the model was trained; config.json does not say how many. CodeGen2 has 8, the
// default here; CodeGen has 4: --set mp_num=4.
#include <fmt/format.h>

#include "models/families.h"
#include "models/hf_config.h"

namespace hexllm::models {
namespace {

constexpr int64_t kDefaultShards = 8;

constexpr SizeKeys kKeys = {.hidden = "n_embd",
                            .layers = "n_layer",
                            .heads = "n_head",
                            .kv_heads = "n_head",
                            .head_dim = "n_embd' / 'n_head",
                            .ffn = "n_inner",
                            .max_positions = "n_positions"};

Result<RopeConfig> ReadRope(const Json& json, int64_t head_dim) {
  RopeConfig rope;
  HX_ASSIGN_OR_RETURN(rope.rotary_dim, GetIntOr(json, "rotary_dim", 64));
  if (rope.rotary_dim >= 2 && rope.rotary_dim % 2 == 0 &&
      rope.rotary_dim <= head_dim)
    return rope;
  return Error{
      ErrorCode::kBadInput,
      fmt::format("'rotary_dim': expected an even number from 2 to the head "
                  "size {}, found {}",
                  head_dim, rope.rotary_dim)};
}

Status ReadSizes(const Json& json, DecoderConfig& config) {
  HX_ASSIGN_OR_RETURN(config.vocab, GetInt(json, "vocab_size"));
  HX_ASSIGN_OR_RETURN(config.hidden, GetInt(json, "n_embd"));
  HX_ASSIGN_OR_RETURN(config.layers, GetInt(json, "n_layer"));
  HX_ASSIGN_OR_RETURN(config.heads, GetInt(json, "n_head"));
  if (config.heads < 1 || config.hidden < 1 || config.hidden > INT32_MAX ||
      config.hidden % config.heads != 0) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("'n_head': expected a divisor of n_embd {}, found "
                             "{}",
                             config.hidden, config.heads)};
  }
  config.kv_heads = config.heads;
  config.head_dim = config.hidden / config.heads;
  HX_ASSIGN_OR_RETURN(config.ffn, GetIntOr(json, "n_inner", 4 * config.hidden));
  HX_ASSIGN_OR_RETURN(config.max_positions, GetInt(json, "n_positions"));
  HX_ASSIGN_OR_RETURN(config.norm_eps, GetNumber(json, "layer_norm_epsilon"));
  HX_RETURN_IF_ERROR(ValidateConfig(config, kKeys));
  HX_ASSIGN_OR_RETURN(config.fused_shards,
                      GetIntOr(json, "mp_num", kDefaultShards));
  if (config.fused_shards >= 1 && config.heads % config.fused_shards == 0)
    return OkStatus();
  return Error{ErrorCode::kBadInput,
               fmt::format("'mp_num': expected a divisor of n_head {}, found "
                           "{}; pass --set mp_num=N with the shards of q, k "
                           "and v",
                           config.heads, config.fused_shards)};
}

Result<DecoderConfig> FromHf(const Json& json) {
  DecoderConfig config;
  HX_RETURN_IF_ERROR(ReadSizes(json, config));
  config.norm = NormKind::kLayer;
  config.layer_form = LayerForm::kParallel;
  config.mlp_form = MlpForm::kPlain;
  config.mlp_bias = Bias::kPresent;
  config.head_bias = Bias::kPresent;
  HX_ASSIGN_OR_RETURN(const std::string activation,
                      GetStringOr(json, "activation_function", "gelu_new"));
  HX_ASSIGN_OR_RETURN(config.activation,
                      ParseActivation("activation_function", activation));
  HX_ASSIGN_OR_RETURN(const bool tied,
                      GetBoolOr(json, "tie_word_embeddings", false));
  config.head = tied ? Head::kTied : Head::kUntied;
  HX_ASSIGN_OR_RETURN(RopeConfig rope, ReadRope(json, config.head_dim));
  SetUniformLayers(config, std::move(rope));
  return config;
}

constexpr std::string_view kHfArchitectures[] = {"CodeGenForCausalLM"};
constexpr std::string_view kDecoderModels[] = {"codegen", "codegen2_1b"};
constexpr std::string_view kIgnored[] = {".attn.causal_mask", ".attn.bias",
                                         ".attn.masked_bias"};

constexpr TensorAlias kHfNames[] = {
    {"model.embed_tokens", "transformer.wte"},
    {"model.norm", "transformer.ln_f"},
    {"model.layers.{}.input_layernorm", "transformer.h.{}.ln_1"},
    {"model.layers.{}.self_attn.q_proj", "transformer.h.{}.attn.qkv_proj",
     FusedPart::kQ},
    {"model.layers.{}.self_attn.v_proj", "transformer.h.{}.attn.qkv_proj",
     FusedPart::kV},
    {"model.layers.{}.self_attn.k_proj", "transformer.h.{}.attn.qkv_proj",
     FusedPart::kK},
    {"model.layers.{}.self_attn.o_proj", "transformer.h.{}.attn.out_proj"},
    {"model.layers.{}.mlp.up_proj", "transformer.h.{}.mlp.fc_in"},
    {"model.layers.{}.mlp.down_proj", "transformer.h.{}.mlp.fc_out"},
};

}  // namespace

const ModelSpec kCodeGen = {
    .name = "codegen",
    .hf_architectures = kHfArchitectures,
    .decoder_models = kDecoderModels,
    .from_hf = FromHf,
    .hf_naming = {.aliases = kHfNames, .rope_layout = RopeLayout::kInterleaved},
    .ignored_suffixes = kIgnored,
};

}  // namespace hexllm::models
