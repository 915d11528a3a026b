// Questions and continuations as requests, split into tokens as
// lm-evaluation-harness does. Used by eval/task.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "eval/task.h"
#include "eval/task_file.h"

namespace hexllm {

// Makes requests; counts what it cut.
class PairEncoder {
 public:
  PairEncoder(const TaskTokens& tokens, uint32_t window)
      : tokens_(tokens), window_(window) {}

  // `context` then `continuation`, of which the latter's tokens count. White
  // space at the end of the context goes to the continuation; both are encoded
  // together and split where the context alone would end; an empty context is
  // the prefix, or without one the continuation's first token. Tokens beyond
  // the window are cut off at the left. kBadInput for a continuation without
  // tokens, or longer than the window.
  // Source: lm-evaluation-harness, TemplateLM._encode_pair.
  Result<Request> Encode(std::string_view context,
                         std::string_view continuation);

  uint64_t cut() const { return cut_; }  // requests that lost tokens

 private:
  Result<Request> Split(std::string_view context, std::string_view rest) const;
  const TaskTokens& tokens_;
  uint32_t window_;
  uint64_t cut_ = 0;
};

// The context of question `index`: up to `shots` other questions with their
// right answers, the first of the file, then its query. Parts are joined as the
// harness does: query, space, answer; two line breaks between questions.
std::string FewShotContext(std::span<const ChoiceQuestion> questions,
                           size_t index, uint32_t shots);

}  // namespace hexllm
