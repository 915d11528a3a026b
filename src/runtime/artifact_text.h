// The text half of an artifact: its tokenizer, and its special tokens as a chat
// template takes them. Used by runtime/, compile/, eval/ and cli/.
#pragma once

#include <span>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/manifest.h"
#include "base/status.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace hexllm {

// The tokenizer of `artifact`. kUnsupported when it has none, kBadInput when it
// is damaged.
Result<Tokenizer> TokenizerOf(const artifact::Artifact& artifact);

// Names that ChatTokens has no place for are left out.
ChatTokens ChatTokensFrom(std::span<const artifact::NamedText> tokens);
std::vector<artifact::NamedText> NamedTextsFrom(const ChatTokens& tokens);

}  // namespace hexllm
