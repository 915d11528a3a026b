#include "text/gguf_pre_tokenizers.h"

#include <algorithm>

#include "text/tokenizer_json_steps.h"

namespace hexllm {
namespace {

constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kDigits3 = R"(\p{N}{1,3})";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";

// Patterns shared by several families: Llama 3 and Qwen2 differ in how many
// digits stand together.
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekCjk =
    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr std::string_view kDeepSeek3Pattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBailingPattern =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoderPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBloomPattern = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

constexpr GgufPatterns kDefault{
    {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Pattern, R"(\p{N}+)", kThreeDigits}};
constexpr GgufPatterns kGpt2{{kGpt2Pattern}};
constexpr GgufPatterns kDigitsGpt2{{kDigit, kGpt2Pattern}};
constexpr GgufPatterns kFalcon{
    {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Pattern, kThreeDigits}};
constexpr GgufPatterns kLlama3{{kLlama3Pattern}};
constexpr GgufPatterns kQwen2{{kQwen2Pattern}, true};
constexpr GgufPatterns kQwen2Plain{{kQwen2Pattern}};
constexpr GgufPatterns kQwen35{{kQwen35Pattern}, true};
constexpr GgufPatterns kO200k{{kO200kPattern}};
constexpr GgufPatterns kTekken{{kTekkenPattern}};
constexpr GgufPatterns kDeepSeekCoder{
    {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
     R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)", kDigit}};
constexpr GgufPatterns kDeepSeek3{{kDigits3, kDeepSeekCjk, kDeepSeek3Pattern}};
constexpr GgufPatterns kBailing{{kBailingPattern}};
constexpr GgufPatterns kSeedCoder{{kSeedCoderPattern}};
constexpr GgufPatterns kBloom{{kBloomPattern}};
constexpr GgufPatterns kViking{{kBloomPattern, kDigit}};

constexpr GgufPreTokenizer kRows[] = {
    {"", &kDefault},
    {"default", &kDefault},
    {"llama3", &kLlama3, true, true},
    {"llama-v3", &kLlama3, true, true},
    {"llama-bpe", &kLlama3, true, true},
    {"falcon3", &kLlama3, true, true},
    {"falcon-h1", &kLlama3, true, true},
    {"pixtral", &kLlama3, true, true},
    {"midm-2.0", &kLlama3, true, true},
    {"lfm2", &kLlama3, true, true},
    {"dbrx", &kLlama3},
    {"smaug-bpe", &kLlama3},
    {"glm4", &kLlama3},
    {"chatglm-bpe", &kLlama3},
    {"gpt-2", &kGpt2},
    {"phi-2", &kGpt2},
    {"mpt", &kGpt2},
    {"olmo", &kGpt2},
    {"jais", &kGpt2},
    {"gigachat", &kGpt2},
    {"a.x-4.0", &kGpt2},
    {"mellum", &kGpt2},
    {"modern-bert", &kGpt2},
    {"exaone4", &kGpt2},
    {"trillion", &kGpt2},
    {"granite-docling", &kGpt2},
    {"smollm", &kDigitsGpt2},
    {"starcoder", &kDigitsGpt2},
    {"refact", &kDigitsGpt2},
    {"command-r", &kDigitsGpt2},
    {"codeshell", &kDigitsGpt2},
    {"exaone", &kDigitsGpt2},
    {"minerva-7b", &kDigitsGpt2},
    {"mellum2", &kDigitsGpt2},
    {"falcon", &kFalcon},
    {"qwen2", &kQwen2},
    {"deepseek-r1-qwen", &kQwen2},
    {"qwen35", &kQwen35},
    {"megrez", &kQwen2Plain},
    {"stablelm2", &kQwen2Plain},
    {"hunyuan", &kQwen2Plain},
    {"solar-open", &kQwen2Plain},
    {"grok-2", &kQwen2Plain},
    {"gpt-4o", &kO200k},
    {"llama4", &kO200k},
    {"kanana2", &kO200k},
    {"minimax-m2", &kO200k},
    {"tekken", &kTekken, true, true},
    {"deepseek-coder", &kDeepSeekCoder},
    {"deepseek-v3", &kDeepSeek3},
    {"hunyuan-dense", &kDeepSeek3},
    {"joyai-llm", &kDeepSeek3},
    {"bailingmoe", &kBailing},
    {"bailingmoe2", &kBailing},
    {"llada-moe", &kBailing},
    {"seed-coder", &kSeedCoder},
    {"bloom", &kBloom},
    {"gpt3-finnish", &kBloom},
    {"poro-chat", &kBloom},
    {"viking", &kViking},
};

}  // namespace

const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const auto& r) { return r.name == name; });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace hexllm
