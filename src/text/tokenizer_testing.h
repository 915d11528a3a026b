// Helpers of the tokenizer tests: where the fixtures are and how to read them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/tokenizer.h"

namespace hexllm {

// A file of the source tree or the fixtures; a ".zst" one is expanded with the
// zstd program. Nothing when it cannot be read.
std::optional<std::string> ReadTestFile(const std::string& path);

// A tokenizer with its golden results.
struct TokenizerFixture {
  std::string tokenizer_json;
  std::vector<Json> golden;  // the lines of golden.jsonl
};
// Nothing when the fixture `name` is neither in tests/data/tokenizers nor among
// the large fixtures.
std::optional<TokenizerFixture> LoadTokenizerFixture(const std::string& name);

// The tokenizer of a tokenizer.json that must be right.
Tokenizer MustCreate(std::string_view tokenizer_json);

// The message of a result that must be an error.
template <typename T>
std::string MessageOf(const Result<T>& result) {
  return result.ok() ? "no error" : result.error().message;
}

}  // namespace hexllm
