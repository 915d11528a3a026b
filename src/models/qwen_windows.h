// The attention windows of Qwen2 and Qwen3, which their published models leave
// off. Used by qwen2.cc and qwen3.cc.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "models/decoder_config.h"

namespace hexllm::models {

// With use_sliding_window, layers from max_window_layers on (or those that
// layer_types names) see sliding_window tokens.
Status ReadQwenWindows(const Json& json, DecoderConfig& config);

}  // namespace hexllm::models
