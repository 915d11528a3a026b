// The Llama family: Llama 2 and 3.x, SmolLM2 and their like.
#include "models/families.h"
#include "models/gguf_config.h"
#include "models/hf_config.h"

namespace hexllm::models {
namespace {

Result<DecoderConfig> FromHf(const Json& json) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config, ReadCommonHfConfig(json));
  HX_RETURN_IF_ERROR(ReadAttentionBias(json, config));
  HX_ASSIGN_OR_RETURN(config.mlp_bias, ReadBias(json, "mlp_bias"));
  return config;
}

Result<DecoderConfig> FromGguf(const Checkpoint& checkpoint,
                               std::string_view architecture) {
  return ReadCommonGgufConfig(checkpoint, architecture);
}

constexpr std::string_view kHfArchitectures[] = {"LlamaForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"llama"};
constexpr std::string_view kDecoderModels[] = {
    "llama",        "stories260k",          "stories110m",
    "smollm2_135m", "llama3_2-1b_instruct", "llama3_2-3b_instruct"};
constexpr std::string_view kIgnored[] = {".rotary_emb.inv_freq"};

}  // namespace

const ModelSpec kLlama = {
    .name = "llama",
    .hf_architectures = kHfArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .decoder_models = kDecoderModels,
    .from_hf = FromHf,
    .from_gguf = FromGguf,
    .gguf_naming = {.common = kCommonGgufNames,
                    .rope_layout = RopeLayout::kInterleaved},
    .ignored_suffixes = kIgnored,
};

}  // namespace hexllm::models
