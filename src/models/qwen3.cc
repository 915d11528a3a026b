// Qwen3: Llama with a norm on each query and key head, and a head size of its
// own.
#include "models/families.h"
#include "models/gguf_config.h"
#include "models/hf_config.h"
#include "models/qwen_windows.h"

namespace hexllm::models {
namespace {

Result<DecoderConfig> FromHf(const Json& json) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config,
                      ReadCommonHfConfig(json, {.head_dim = 128}));
  config.qk_norm = QkNorm::kPerHead;
  HX_RETURN_IF_ERROR(ReadAttentionBias(json, config));
  HX_RETURN_IF_ERROR(ReadQwenWindows(json, config));
  return config;
}

Result<DecoderConfig> FromGguf(const Checkpoint& checkpoint,
                               std::string_view architecture) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config,
                      ReadCommonGgufConfig(checkpoint, architecture));
  config.qk_norm = QkNorm::kPerHead;
  return config;
}

constexpr std::string_view kHfArchitectures[] = {"Qwen3ForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"qwen3"};
constexpr std::string_view kDecoderModels[] = {"qwen3", "qwen3-0_6b",
                                               "qwen3-1_7b"};

}  // namespace

const ModelSpec kQwen3 = {
    .name = "qwen3",
    .hf_architectures = kHfArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .decoder_models = kDecoderModels,
    .from_hf = FromHf,
    .from_gguf = FromGguf,
    .gguf_naming = {.common = kCommonGgufNames},
};

}  // namespace hexllm::models
