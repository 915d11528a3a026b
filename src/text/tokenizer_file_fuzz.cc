// Any bytes as a tokenizer file: SentencePiece, tiktoken and llama2.c, each
// asked in turn.
#include <cstddef>
#include <cstdint>

#include "text/tokenizer_exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hexllm::ByteSpan bytes = std::as_bytes(std::span(data, size));
  (void)hexllm::ParseTokenizerFile(bytes).ok();
  if (auto made = hexllm::ParseSentencePiece(bytes); made.ok())
    hexllm::ExerciseTokenizer(*std::move(made));
  if (auto made = hexllm::ParseTiktoken(hexllm::AsText(bytes)); made.ok())
    hexllm::ExerciseTokenizer(*std::move(made));
  if (auto made = hexllm::ParseLlama2c(bytes); made.ok())
    hexllm::ExerciseTokenizer(*std::move(made));
  return 0;
}
