// Text on top of a Session: raw prompts and chats of several turns. Used by
// cli/ and serve/. Not thread-safe.
//
// A chat renders the whole conversation for each turn and keeps the KV columns
// of the tokens that the new rendering has in common with the last one:
//
//   in the cache    [sys][user 1][assistant 1]
//   new rendering   [sys][user 1][assistant 1]<end>[user 2][assistant
//                    \----- kept -----------/ \----- run ---------/
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/session.h"

namespace hexllm {

// Called with each new piece of the answer: whole UTF-8 characters, not empty.
using TextCallback = std::function<Result<TokenAction>(std::string_view text)>;

class Conversation {
 public:
  // Reads tokenizer and template from the session's artifact. kUnsupported when
  // the artifact has no tokenizer. `session` is borrowed and must outlive this.
  static Result<std::unique_ptr<Conversation>> Create(Session& session);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // The message before all turns; may be set before the first turn only
  // (kUsage).
  Status SetSystem(std::string text);

  // One chat turn: renders all messages and the new one with the template,
  // generates, keeps the answer as a message. kUnsupported without a chat
  // template; kUsage with both numbers when the prompt exceeds the context. On
  // an error the conversation is as before.
  Result<GenerateResult> Chat(std::string text, const GenerateOptions& options,
                              const TextCallback& on_text);

  // Appends `text`, tokenized as it stands (the tokenizer's own BOS only at the
  // start of a sequence), and generates: no template. An empty text goes on
  // where the last answer stopped.
  Result<GenerateResult> Complete(std::string_view text,
                                  const GenerateOptions& options,
                                  const TextCallback& on_text);

  // Writes the session with its messages to `file` and commits it. Errors as
  // Session::Save's.
  Status Save(OutputFile& file) const;

  // Puts what Save wrote in the place of all that was said. kUsage when it is
  // of another form than `form`, kBadInput for messages that are none, else
  // errors as Session::Restore's. On an error the conversation is as before.
  enum class Form : uint8_t { kChat, kPlainText };
  Status Restore(const SavedSession& saved, Form form);

 private:
  struct Impl;
  explicit Conversation(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hexllm
