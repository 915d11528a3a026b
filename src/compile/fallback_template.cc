#include "compile/fallback_template.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>

namespace hexllm {
namespace {

// Llama 3: the encode_dialog_prompt of its reference code (contents trimmed, no
// system prompt of its own).
constexpr std::string_view kLlama3Needs[] = {"<|start_header_id|>",
                                             "<|end_header_id|>", "<|eot_id|>"};
constexpr std::string_view kLlama3 =
    R"({{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>

{{ message.content | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %})";

// Gemma 1 to 3: "model" answers, and there is no system role.
constexpr std::string_view kGemmaNeeds[] = {"<start_of_turn>", "<end_of_turn>"};
constexpr std::string_view kGemma =
    R"({{ bos_token }}{% for message in messages %}{% if message.role not in ['user', 'assistant'] %}{{ raise_exception('Gemma has no role ' + message.role) }}{% endif %}{% if (message.role == 'user') != loop.index0 is even %}{{ raise_exception('roles must alternate user, assistant, user, ...') }}{% endif %}<start_of_turn>{{ 'model' if message.role == 'assistant' else 'user' }}
{{ message.content | trim }}<end_of_turn>
{% endfor %}{% if add_generation_prompt %}<start_of_turn>model
{% endif %})";

// ChatML: Qwen, SmolLM, InternVL.
constexpr std::string_view kChatmlNeeds[] = {"<|im_start|>", "<|im_end|>"};
constexpr std::string_view kChatml =
    R"({% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %})";

// Granite 3.3: without a system message its own, with the date.
constexpr std::string_view kGraniteNeeds[] = {
    "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"};
constexpr std::string_view kGranite =
    R"({% if messages[0].role != 'system' %}<|start_of_role|>system<|end_of_role|>Knowledge Cutoff Date: April 2024.
Today's Date: {{ strftime_now('%B %d, %Y') }}.
You are Granite, developed by IBM. You are a helpful AI assistant.<|end_of_text|>
{% endif %}{% for message in messages %}<|start_of_role|>{{ message.role }}<|end_of_role|>{{ message.content }}<|end_of_text|>
{% endfor %}{% if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{% endif %})";

// Phi-4-mini. Phi-3's has lines, and the vocabulary of Llama 2 with
// placeholders.
constexpr std::string_view kPhiNeeds[] = {"<|user|>", "<|assistant|>",
                                          "<|end|>"};
constexpr std::string_view kPhi =
    R"({% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% else %}{{ eos_token }}{% endif %})";

// GLM-Edge: roles have a line, turns no end, and the model itself ends the line
// of its role.
constexpr std::string_view kGlmNeeds[] = {"<|user|>", "<|assistant|>",
                                          "<|observation|>"};
constexpr std::string_view kGlm =
    R"({% for message in messages %}<|{{ message.role }}|>
{{ message.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %})";

// What all of them ask of a message: anything else would be rendered as Jinja
// prints it.
constexpr std::string_view kCheck =
    R"({% for message in messages %}{% if message.role is not string or message.content is not string %}{{ raise_exception('expected messages with a role and a content that are strings') }}{% endif %}{% endfor %})";

// kCheck, then `kSource`.
template <const std::string_view& kSource>
struct Checked {
  static constexpr auto kChars = [] {
    std::array<char, kCheck.size() + kSource.size()> chars{};
    std::copy(kSource.begin(), kSource.end(),
              std::copy(kCheck.begin(), kCheck.end(), chars.begin()));
    return chars;
  }();
  static constexpr std::string_view kText{kChars.data(), kChars.size()};
};

constexpr FallbackTemplate kTemplates[] = {
    {"llama3", kLlama3Needs, Checked<kLlama3>::kText},
    {"gemma", kGemmaNeeds, Checked<kGemma>::kText},
    {"chatml", kChatmlNeeds, Checked<kChatml>::kText},
    {"granite", kGraniteNeeds, Checked<kGranite>::kText},
    {"phi", kPhiNeeds, Checked<kPhi>::kText, "<|placeholder1|>"},
    {"glm", kGlmNeeds, Checked<kGlm>::kText},
};

}  // namespace

std::span<const FallbackTemplate> FallbackTemplates() { return kTemplates; }

const FallbackTemplate* FindFallbackTemplate(const TokenizerData& data) {
  std::unordered_set<std::string_view> spellings;
  for (size_t id = 0; id < data.pieces.size(); ++id)
    spellings.insert(data.pieces[id]);
  for (const AddedToken& token : data.added_tokens)
    spellings.insert(token.content);
  const auto known = [&](std::string_view token) {
    return spellings.contains(token);
  };
  for (const FallbackTemplate& row : kTemplates) {
    const bool fits = std::all_of(row.needs.begin(), row.needs.end(), known);
    if (fits && (row.lacks.empty() || !known(row.lacks))) return &row;
  }
  return nullptr;
}

}  // namespace hexllm
