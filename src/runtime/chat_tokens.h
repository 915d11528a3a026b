// The special tokens of an artifact's manifest as a chat template takes them,
// and back. Used by runtime/, compile/ and cli/.
#pragma once

#include <span>
#include <vector>

#include "artifact/manifest.h"
#include "text/chat_template.h"

namespace hexllm {

// Names that ChatTokens has no place for are left out.
ChatTokens ChatTokensFrom(std::span<const artifact::NamedText> tokens);
std::vector<artifact::NamedText> NamedTextsFrom(const ChatTokens& tokens);

}  // namespace hexllm
