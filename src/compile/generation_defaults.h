// End tokens and sampling defaults as the checkpoint's authors set them. Used
// by compile/text_assets.cc.
#pragma once

#include <optional>
#include <string>

#include "artifact/manifest.h"
#include "base/json.h"
#include "base/status.h"
#include "checkpoint/gguf.h"

namespace hexllm {

// From generation_config.json, or config.json where that is missing (both may
// be null). Values out of range are kBadInput. do_sample = false means
// temperature 0. Source: transformers GenerationConfig.
Result<artifact::GenerationDefaults> GenerationFromHf(
    const Json* generation_config, const Json* config);

// From tokenizer.ggml.{bos,eos,eot,eom}_token_id and general.sampling.*.
// Source: ggml's GGUF specification.
Result<artifact::GenerationDefaults> GenerationFromGguf(
    const GgufMetadata& metadata);

}  // namespace hexllm
