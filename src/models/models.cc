#include <algorithm>

#include "models/families.h"
#include "models/model.h"

namespace hexllm::models {
namespace {

constexpr const ModelSpec* kModels[] = {
    &kCodeGen, &kGemma, &kGemma2, &kGemma3, &kGlm,     &kGranite,
    &kLlama,   &kPhi3,  &kQwen2,  &kQwen3,  &kSmolLm3,
};

using NameList = std::span<const std::string_view> ModelSpec::*;

const ModelSpec* FindIn(NameList names, std::string_view name) {
  for (const ModelSpec* spec : kModels) {
    const auto list = spec->*names;
    if (std::find(list.begin(), list.end(), name) != list.end()) return spec;
  }
  return nullptr;
}

}  // namespace

std::span<const ModelSpec* const> AllModels() { return kModels; }

const ModelSpec* FindByHfArchitecture(std::string_view architecture) {
  return FindIn(&ModelSpec::hf_architectures, architecture);
}
const ModelSpec* FindByGgufArchitecture(std::string_view architecture) {
  return FindIn(&ModelSpec::gguf_architectures, architecture);
}
const ModelSpec* FindByDecoderModel(std::string_view name) {
  return FindIn(&ModelSpec::decoder_models, name);
}

}  // namespace hexllm::models
