#include "models/qwen_windows.h"

#include "models/hf_config.h"

namespace hexllm::models {

Status ReadQwenWindows(const Json& json, DecoderConfig& config) {
  HX_ASSIGN_OR_RETURN(const bool used,
                      GetBoolOr(json, "use_sliding_window", false));
  if (!used) return OkStatus();
  // As in transformers, null is no window, and a missing key the default.
  const auto window = json.find("sliding_window");
  if (window != json.end() && window->is_null()) return OkStatus();
  // layer_types make it void.
  int64_t first = 28;
  if (FindMember(json, "layer_types") == nullptr) {
    HX_ASSIGN_OR_RETURN(first, GetIntOr(json, "max_window_layers", first));
  }
  HX_ASSIGN_OR_RETURN(
      const std::vector<bool> sliding,
      ReadSlidingLayers(json, config.layers,
                        [first](int64_t layer) { return layer >= first; }));
  HX_ASSIGN_OR_RETURN(const int64_t tokens,
                      GetIntOr(json, "sliding_window", 4096));
  return SetWindows(config, sliding, "sliding_window", tokens);
}

}  // namespace hexllm::models
