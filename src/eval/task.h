// A task as token sequences: what is run, what of it counts, and what its
// figures are per. Used by cli/; run by eval/run. Made from texts and a
// tokenizer alone, so that all stages of a model run the same one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "eval/score.h"
#include "text/tokenizer.h"

namespace hexllm {

enum class TaskKind : uint8_t {
  kDocuments,      // perplexity of each document, rolling windows
  kFixedWindows,   // perplexity over windows of one text
  kChoices,        // the likeliest of several endings
  kContinuations,  // log-probabilities of given continuations
};

// What a figure of an item is divided by; zeros where the kind has no use for
// it.
struct ItemFacts {
  uint64_t words = 0;  // of a document, as Python's re.split(r"\s+") counts
  uint64_t bytes = 0;  // UTF-8, of a document
  uint32_t label = 0;  // of a question
  std::vector<uint32_t> choice_chars = {};  // code points of each choice
  std::vector<uint32_t> choice_bytes = {};
};

// A document, window, question or continuation.
struct TaskItem {
  uint64_t index = 0;                  // place in the task
  std::vector<Request> requests = {};  // windows of a document, choices, or
                                       // one
  ItemFacts facts = {};
};

struct Task {
  std::string name;
  TaskKind kind = TaskKind::kDocuments;
  uint32_t window = 0;  // most tokens that a request runs
  uint32_t stride = 0;  // of texts: tokens from one window to the next
  uint32_t num_fewshot = 0;
  std::string bos = {};  // the policy, in words: "<s> before each document"
  std::vector<TaskItem> items = {};
};

struct TaskOptions {
  std::string data_dir = {};
  uint32_t window = 512;                // at least 2
  std::optional<uint32_t> stride = {};  // wikitext-fixed: unset = window
  std::optional<uint64_t> limit = {};   // items; unset = all
  uint32_t num_fewshot = 0;             // questions only
};

// The tokenizer and how it begins a text.
struct TaskTokens {
  const Tokenizer& tokenizer;
  // BOS, else an end token: what stands before a text's first token.
  std::optional<int32_t> prefix = {};
  // The tokenizer begins texts with `prefix` by itself: questions get it too.
  bool adds_prefix = false;
};

// "wikitext", "wikitext-fixed", "hellaswag", in the order of messages.
std::vector<std::string_view> BuiltinTasks();
// The file that the task reads: of a built-in one in `data_dir`, else `name`
// itself.
std::string TaskPath(const std::string& name, const std::string& data_dir);
// kUsage when `name` is neither built in nor a file name that ends in .jsonl,
// when a built-in task has no data_dir, and for options that the task has no
// use for.
Status CheckTask(const std::string& name, const TaskOptions& options);

// Reads and encodes a task that CheckTask accepts. Documents without tokens are
// left out, questions longer than the window lose tokens at the left, both with
// a warning. kEnvironment when the file is not there (tasks are not
// downloaded), kBadInput with file and line for what it should not hold, a
// choice longer than the window and a text shorter than one window, kUsage for
// a limit of 0.
Result<Task> LoadTask(const std::string& name, const TaskOptions& options,
                      const TaskTokens& tokens, ProgressSink& progress);

}  // namespace hexllm
