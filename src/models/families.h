// The rows of models.cc; each is defined in the file of its name.
#pragma once

#include "models/model.h"

namespace hexllm::models {

extern const ModelSpec kCodeGen;
extern const ModelSpec kGemma;
extern const ModelSpec kGemma2;
extern const ModelSpec kGemma3;
extern const ModelSpec kGlm;
extern const ModelSpec kGranite;
extern const ModelSpec kLlama;
extern const ModelSpec kPhi3;
extern const ModelSpec kQwen2;
extern const ModelSpec kQwen3;
extern const ModelSpec kSmolLm3;

}  // namespace hexllm::models
