// The token sequences that activations are observed on: prompts, chats, texts
// and ids that the user names, or the built-in text. Used by compile/quantize.
// It only makes ids; running them is compile/calibrate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "compile/text_assets.h"

namespace hexllm {

// What to calibrate on. All sources that are named are used, in this order;
// with none, the built-in text and, for a model with a chat template, the
// built-in chat (for a model without tokenizer, a fixed pseudo-random sequence,
// with a warning).
struct CalibrationOptions {
  // A user's message each, in the model's chat template where it has one.
  std::vector<std::string> prompts = {};
  std::vector<std::vector<int32_t>> ids = {};
  // JSON file: an array of chats. A chat is an array of messages, an object
  // with "messages" (ExecuTorch's form), or a string, which is plain text.
  std::string samples_path = {};
  // Comma-separated names: "wikitext".
  std::string tasks = {};
  std::string data_dir = {};  // holds wikitext-2/test.txt
  // Most sequences of each source; unset = kDefaultTaskWindows of a task's, all
  // of the others.
  std::optional<int64_t> limit = {};
};

// WikiText-2's test text, in a data folder.
inline constexpr std::string_view kWikitextFile = "wikitext-2/test.txt";
// It in the folder of --data-dir.
std::string WikitextPath(const std::string& data_dir);

inline constexpr int64_t kDefaultTaskWindows = 4;
inline constexpr size_t kTaskWindowTokens = 512;

// True when a source or the limit is given.
bool IsGiven(const CalibrationOptions& options);

using TokenSequences = std::vector<std::vector<int32_t>>;

// Sequences of 1 to `max_tokens` valid ids; longer ones are cut into pieces. At
// least one. kBadInput for an empty set, a malformed file or ids outside the
// vocabulary, kUsage for an unknown task or a limit of nothing, kUnsupported
// for text when the model has no tokenizer.
Result<TokenSequences> MakeCalibrationSet(const CalibrationOptions& options,
                                          const TextAssets& text, int64_t vocab,
                                          size_t max_tokens,
                                          ProgressSink& progress);

}  // namespace hexllm
