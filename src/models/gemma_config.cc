#include "models/gemma_config.h"

#include <fmt/format.h>

#include <cmath>

#include "models/gguf_config.h"
#include "models/hf_config.h"

namespace hexllm::models {
namespace {

// The published Gemma 1 files say hidden_act "gelu" and leave
// hidden_activation null, and mean the tanh form (as transformers reads them).
// hidden_activation names one outright: "gelu" is then the exact form.
Result<HiddenActivation> ReadActivation(const Json& json) {
  if (FindMember(json, "hidden_activation") != nullptr) {
    HX_ASSIGN_OR_RETURN(const std::string name,
                        GetString(json, "hidden_activation"));
    return ParseActivation("hidden_activation", name);
  }
  HX_ASSIGN_OR_RETURN(const std::string name,
                      GetStringOr(json, "hidden_act", "gelu_pytorch_tanh"));
  if (name == "gelu") return HiddenActivation::kGeluTanh;
  return ParseActivation("hidden_act", name);
}

}  // namespace

Result<DecoderConfig> ReadGemmaConfig(const Json& json) {
  HX_ASSIGN_OR_RETURN(
      DecoderConfig config,
      ReadHfSizes(json, {.head = Head::kTied, .head_dim = 256}));
  HX_ASSIGN_OR_RETURN(const bool bidirectional,
                      GetBoolOr(json, "use_bidirectional_attention", false));
  if (bidirectional) {
    return Error{ErrorCode::kUnsupported,
                 "'use_bidirectional_attention': expected false, as in models "
                 "that write text, found true"};
  }
  HX_ASSIGN_OR_RETURN(config.activation, ReadActivation(json));
  HX_RETURN_IF_ERROR(ReadAttentionBias(json, config));
  config.norm_weight_offset = 1;
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
  return config;
}

Status ReadGemma2Keys(const Json& json, DecoderConfig& config) {
  config.norm_placement = NormPlacement::kBeforeAndAfter;
  HX_ASSIGN_OR_RETURN(config.attention_softcap,
                      ReadSoftcap(json, "attn_logit_softcapping"));
  HX_ASSIGN_OR_RETURN(config.logits_softcap,
                      ReadSoftcap(json, "final_logit_softcapping"));
  HX_ASSIGN_OR_RETURN(const double scalar,
                      ReadFactor(json, "query_pre_attn_scalar", 256));
  config.attention_scale = 1 / std::sqrt(scalar);
  return OkStatus();
}

Result<int64_t> ReadGemmaWindow(const Json& json) {
  constexpr const char* kKey = "sliding_window";
  const auto window = json.find(kKey);
  if (window == json.end()) return 4096;
  if (!window->is_null()) return GetInt(json, kKey);
  return Error{
      ErrorCode::kBadInput,
      fmt::format("'{}': expected the tokens that layers with a window "
                  "see, found null",
                  kKey)};
}

Result<DecoderConfig> ReadGemmaGguf(
    const Checkpoint& checkpoint, std::string_view architecture,
    std::span<const std::string_view> own_keys) {
  HX_ASSIGN_OR_RETURN(DecoderConfig config,
                      ReadCommonGgufConfig(checkpoint, architecture, own_keys));
  config.activation = HiddenActivation::kGeluTanh;
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
  return config;
}

void SetGgufScoreScale(DecoderConfig& config, int64_t layers_of_27b) {
  if (config.layers != layers_of_27b) return;
  const int64_t width_per_head = config.hidden / config.heads;
  config.attention_scale = 1 / std::sqrt(static_cast<double>(width_per_head));
}

}  // namespace hexllm::models
