// Any bytes as a tokenizer.json.
#include <cstddef>
#include <cstdint>

#include "text/tokenizer_exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto parsed =
      hexllm::ParseTokenizerJson({reinterpret_cast<const char*>(data), size});
  if (parsed.ok()) hexllm::ExerciseTokenizer(std::move(*parsed));
  return 0;
}
