// Qwen2 and Qwen2.5: Llama with biases on q, k and v. Those of k are large and
// nearly the same for all tokens.
#include "models/families.h"
#include "models/gguf_config.h"
#include "models/hf_config.h"
#include "models/qwen_windows.h"

namespace hexllm::models {
namespace {

Result<DecoderConfig> FromHf(const Json& json) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config, ReadCommonHfConfig(json));
  config.qkv_bias = Bias::kPresent;
  HX_ASSIGN_OR_RETURN(const bool mrope, GetBoolOr(json, "use_mrope", false));
  if (mrope) {
    return Error{ErrorCode::kUnsupported,
                 "'use_mrope': expected false, as in text models, found true"};
  }
  HX_RETURN_IF_ERROR(ReadQwenWindows(json, config));
  return config;
}

Result<DecoderConfig> FromGguf(const Checkpoint& checkpoint,
                               std::string_view architecture) {
  return ReadCommonGgufConfig(checkpoint, architecture);
}

constexpr std::string_view kHfArchitectures[] = {"Qwen2ForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"qwen2"};
constexpr std::string_view kDecoderModels[] = {"qwen2", "qwen2_5-0_5b",
                                               "qwen2_5-1_5b"};

}  // namespace

const ModelSpec kQwen2 = {
    .name = "qwen2",
    .hf_architectures = kHfArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .decoder_models = kDecoderModels,
    .from_hf = FromHf,
    .from_gguf = FromGguf,
    .gguf_naming = {.common = kCommonGgufNames},
};

}  // namespace hexllm::models
