// Tasks as JSON lines: one object a line. Used by eval/task. Texts only: what
// becomes of them as tokens is eval/task's business.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace hexllm {

// {"query": "...", "choices": ["...", ...], "label": 0}
struct ChoiceQuestion {
  std::string query;
  std::vector<std::string> choices;  // at least two, none empty
  uint32_t label = 0;                // index of the right one
};

// {"context": "...", "continuation": "..."}
struct Continuation {
  std::string context;  // may be empty
  std::string continuation;
};

// What a file holds: one of these kinds, told by its first line.
struct TaskTexts {
  std::vector<std::string> documents;  // {"text": "..."}
  std::vector<ChoiceQuestion> questions;
  std::vector<Continuation> continuations;
};

// Reads `text`, the contents of a file. Lines end with LF or CR LF; empty ones
// are skipped; members beyond the named ones are ignored ("gold" is read where
// "label" is missing). kBadInput with the line's number for what is none of the
// kinds, two of them, or another one than the first line, for a missing or
// empty member, a label that is no index of a choice or given twice, and a file
// without lines.
Result<TaskTexts> ParseTaskLines(std::string_view text);

// HellaSwag's own form: {"activity_label", "ctx", "endings", "label"}, made
// into questions as lm-evaluation-harness does ("label: ctx", brackets and
// double spaces taken out). Errors as above.
Result<std::vector<ChoiceQuestion>> ParseHellaswag(std::string_view text);

}  // namespace hexllm
