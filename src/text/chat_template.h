// ChatTemplate: turns a conversation into the text that a chat model was
// trained on, by running the model's own jinja template as Hugging Face
// transformers does (jinja2's sandbox with trim_blocks, lstrip_blocks, loop
// controls, `raise_exception`, `strftime_now`, plain `tojson`, and the tag
// `generation`). Used by the runtime, the compiler and the server. Not for
// choosing the template out of a checkpoint's files: that is
// text/chat_template_source.h.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "text/jinja/context.h"

namespace hexllm {

// The special tokens that templates print as variables. A model without one
// leaves it empty: the variable is then undefined, as in transformers.
struct ChatTokens {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> pad_token;
  std::optional<std::string> unk_token;
};

struct ChatRenderOptions {
  bool add_generation_prompt = false;
  const Json* tools =
      nullptr;  // array of tool schemas; null renders as without tools
  const Json* documents = nullptr;  // array of documents, or null
  const Json* variables =
      nullptr;  // object with further variables (enable_thinking, ...); they
                // win over the special tokens
  // The local time for strftime_now(); without it the function does not exist,
  // and templates that test for it take their built-in date.
  std::optional<std::tm> now;
  jinja::Limits limits;
};

// The longest template that Parse takes; real ones stay below 100 KiB.
inline constexpr size_t kMaxChatTemplateBytes = size_t{4} << 20;

// A parsed template. Immutable, so one may render in many threads at once;
// cheap to copy.
class ChatTemplate {
 public:
  // Parses `source`. kBadInput "chat template line N: ..." for text that is not
  // UTF-8 and for errors of syntax; kUnsupported, naming construct and line,
  // for what jinja2 has and hexllm has not.
  static Result<ChatTemplate> Parse(std::string source, ChatTokens tokens);

  // The prompt of `messages`, an array of objects with `role`, `content` (text,
  // or a list of parts, which is passed to the template as it is) and whatever
  // else the template reads. Members that are null are left out, as in
  // transformers. kBadInput: messages of the wrong shape; errors of the
  // template with their line; exactly the template's own words where it calls
  // raise_exception (e.g. that roles must alternate); a limit that is exceeded.
  Result<std::string> Render(const Json& messages,
                             const ChatRenderOptions& options) const;

  const std::string& source() const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed)
      : parsed_(std::move(parsed)) {}

  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace hexllm
