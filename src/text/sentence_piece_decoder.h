// The decoder steps of vocabularies made by SentencePiece, wherever they come
// from. Used by the readers of its own models and of llama2.c's files.
#pragma once

#include <string_view>

#include "text/tokenizer_data.h"

namespace hexllm {

// Whether encoding puts a space before the text, which decoding takes away.
enum class DummyPrefix { kAbsent, kPresent };

// Pieces to text: `space` to a space, <0xAB> to bytes, and the dummy prefix
// away.
void AppendSentencePieceDecoder(std::string_view space, DummyPrefix prefix,
                                TokenizerData& data);

}  // namespace hexllm
