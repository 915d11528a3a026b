#include "runtime/artifact_text.h"

namespace hexllm {
namespace {

struct Row {
  std::string_view name;
  std::optional<std::string> ChatTokens::*member;
};

constexpr Row kRows[] = {
    {"bos_token", &ChatTokens::bos_token},
    {"eos_token", &ChatTokens::eos_token},
    {"pad_token", &ChatTokens::pad_token},
    {"unk_token", &ChatTokens::unk_token},
};

}  // namespace

Result<Tokenizer> TokenizerOf(const artifact::Artifact& artifact) {
  const auto segment = artifact.manifest().tokenizer_segment;
  if (!segment) {
    return Error{ErrorCode::kUnsupported,
                 artifact.path() +
                     ": the checkpoint came without a tokenizer, so this "
                     "artifact takes token ids only (--tokens IDS --ids)"};
  }
  HX_ASSIGN_OR_RETURN(TokenizerData data,
                      ParseTokenizerBlob(artifact.Segment(*segment)));
  auto tokenizer = Tokenizer::Create(std::move(data));
  if (!tokenizer.ok())
    return std::move(tokenizer).error().With(artifact.path());
  return tokenizer;
}

ChatTokens ChatTokensFrom(std::span<const artifact::NamedText> tokens) {
  ChatTokens out;
  for (const artifact::NamedText& token : tokens) {
    for (const Row& row : kRows) {
      if (row.name == token.name) out.*row.member = token.text;
    }
  }
  return out;
}

std::vector<artifact::NamedText> NamedTextsFrom(const ChatTokens& tokens) {
  std::vector<artifact::NamedText> out;
  for (const Row& row : kRows) {
    if (const auto& text = tokens.*row.member) {
      out.push_back({std::string(row.name), *text});
    }
  }
  return out;
}

}  // namespace hexllm
