// The Llama family: Llama 2/3.x, SmolLM2 and their like.
#pragma once

#include "models/model.h"

namespace hexllm::models {

extern const ModelSpec kLlama;

}  // namespace hexllm::models
