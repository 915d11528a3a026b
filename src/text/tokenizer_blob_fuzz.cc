// Any bytes as the tokenizer of an artifact.
#include <cstddef>
#include <cstdint>

#include "text/tokenizer_exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto parsed = hexllm::ParseTokenizerBlob(
      {reinterpret_cast<const std::byte*>(data), size});
  if (parsed.ok()) hexllm::ExerciseTokenizer(std::move(*parsed));
  return 0;
}
