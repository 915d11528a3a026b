// Phi-3 and Phi-4-mini: Llama with fused projections, partial rotary embedding
// and longrope.
#include "models/families.h"
#include "models/gguf_config.h"
#include "models/hf_config.h"

namespace hexllm::models {
namespace {

// All layers see sliding_window tokens.
Status SetWindow(DecoderConfig& config, const char* key, int64_t tokens) {
  const std::vector<bool> all(config.layer_configs.size(), true);
  return SetWindows(config, all, key, tokens);
}

Result<DecoderConfig> FromHf(const Json& json) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config, ReadCommonHfConfig(json));
  HX_ASSIGN_OR_RETURN(config.head_bias, ReadBias(json, "lm_head_bias"));
  if (FindMember(json, "sliding_window") == nullptr) return config;
  HX_ASSIGN_OR_RETURN(const int64_t tokens, GetInt(json, "sliding_window"));
  HX_RETURN_IF_ERROR(SetWindow(config, "sliding_window", tokens));
  return config;
}

Result<DecoderConfig> FromGguf(const Checkpoint& checkpoint,
                               std::string_view architecture) {
  constexpr std::string_view kOwn[] = {"attention.sliding_window"};
  HX_ASSIGN_OR_RETURN(DecoderConfig config,
                      ReadCommonGgufConfig(checkpoint, architecture, kOwn));
  HX_RETURN_IF_ERROR(ReadGgufLongRope(checkpoint, architecture, config));
  const GgufKeys keys(*checkpoint.gguf(), architecture);
  HX_ASSIGN_OR_RETURN(const int64_t tokens,
                      keys.IntOr("attention.sliding_window", 0));
  if (tokens == 0) return config;
  HX_RETURN_IF_ERROR(SetWindow(config, "attention.sliding_window", tokens));
  return config;
}

constexpr std::string_view kHfArchitectures[] = {"Phi3ForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"phi3"};
constexpr std::string_view kDecoderModels[] = {"phi3", "phi_4_mini"};
// Read by the configuration.
constexpr std::string_view kIgnored[] = {"rope_factors_long.weight",
                                         "rope_factors_short.weight"};

constexpr TensorAlias kHfNames[] = {
    {"model.layers.{}.self_attn.q_proj", "model.layers.{}.self_attn.qkv_proj",
     FusedPart::kQ},
    {"model.layers.{}.self_attn.k_proj", "model.layers.{}.self_attn.qkv_proj",
     FusedPart::kK},
    {"model.layers.{}.self_attn.v_proj", "model.layers.{}.self_attn.qkv_proj",
     FusedPart::kV},
    {"model.layers.{}.mlp.gate_proj", "model.layers.{}.mlp.gate_up_proj",
     FusedPart::kGate},
    {"model.layers.{}.mlp.up_proj", "model.layers.{}.mlp.gate_up_proj",
     FusedPart::kUp},
};

constexpr TensorAlias kGgufNames[] = {
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_qkv", FusedPart::kQ},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_qkv", FusedPart::kK},
    {"model.layers.{}.self_attn.v_proj", "blk.{}.attn_qkv", FusedPart::kV},
    {"model.layers.{}.mlp.gate_proj", "blk.{}.ffn_up", FusedPart::kGate},
    {"model.layers.{}.mlp.up_proj", "blk.{}.ffn_up", FusedPart::kUp},
};

}  // namespace

const ModelSpec kPhi3 = {
    .name = "phi3",
    .hf_architectures = kHfArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .decoder_models = kDecoderModels,
    .from_hf = FromHf,
    .from_gguf = FromGguf,
    .hf_naming = {.aliases = kHfNames},
    .gguf_naming = {.aliases = kGgufNames, .common = kCommonGgufNames},
    .ignored_suffixes = kIgnored,
};

}  // namespace hexllm::models
