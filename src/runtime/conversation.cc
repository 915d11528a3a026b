#include "runtime/conversation.h"

#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/artifact_text.h"
#include "text/chat_template.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_data.h"

namespace hexllm {
namespace {

// The answer's buffer from the start, so that it rarely grows while decoding.
constexpr size_t kAnswerBytes = size_t{1} << 14;

Json Message(const char* role, std::string text) {
  Json message = Json::object();
  message["role"] = role;
  message["content"] = std::move(text);
  return message;
}

std::optional<std::tm> LocalTime(std::time_t time) {
  std::tm local = {};
  if (localtime_r(&time, &local) == nullptr) return std::nullopt;
  return local;
}

// A chat as session files keep it.
struct SavedChat {
  Json messages;
  std::time_t start = 0;
};

Json ChatToJson(const SavedChat& chat) {
  return {{"messages", chat.messages},
          {"start", static_cast<int64_t>(chat.start)}};
}

Result<SavedChat> ChatFromJson(const Json& json) {
  SavedChat chat;
  HX_ASSIGN_OR_RETURN(const int64_t start, GetInt(json, "start"));
  chat.start = static_cast<std::time_t>(start);
  const Json* messages = FindMember(json, "messages");
  if (messages == nullptr || !messages->is_array())
    return Error{ErrorCode::kBadInput, "messages: expected an array"};
  for (const Json& message : *messages) {
    HX_RETURN_IF_ERROR(GetString(message, "role").status());
    HX_RETURN_IF_ERROR(GetString(message, "content").status());
  }
  chat.messages = *messages;
  return chat;
}

}  // namespace

struct Conversation::Impl {
  Impl(Session& owner, Tokenizer made)
      : session(owner), tokenizer(std::move(made)) {}

  Result<std::string> Render() const;
  Result<GenerateResult> Generate(const GenerateOptions& options,
                                  const TextCallback& on_text);

  Session& session;
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;
  // `start` is the time of the first turn: a template that prints the date must
  // not change the prefix that later turns reuse.
  SavedChat chat{.messages = Json::array(), .start = std::time(nullptr)};
  std::string answer;  // of the last Generate
};

Result<std::string> Conversation::Impl::Render() const {
  if (!chat_template) {
    return Error{ErrorCode::kUnsupported,
                 session.artifact().path() +
                     ": the checkpoint came without a chat template; continue "
                     "plain text instead (--raw)"};
  }
  ChatRenderOptions options;
  options.add_generation_prompt = true;
  options.now = LocalTime(chat.start);
  return chat_template->Render(chat.messages, options);
}

Result<GenerateResult> Conversation::Impl::Generate(
    const GenerateOptions& options, const TextCallback& on_text) {
  StreamDetokenizer stream(tokenizer, SpecialTokens::kSkip);
  answer.clear();
  answer.reserve(kAnswerBytes);
  const auto give = [&](std::string_view text) -> Result<TokenAction> {
    if (text.empty()) return TokenAction::kContinue;
    answer += text;
    return on_text(text);
  };
  const TokenCallback on_token = [&](int32_t id) {
    return give(stream.Feed(id));
  };
  HX_ASSIGN_OR_RETURN(const GenerateResult result,
                      session.Generate(options, on_token));
  if (result.reason != FinishReason::kStopped)
    HX_RETURN_IF_ERROR(give(stream.Finish()).status());
  return result;
}

Conversation::Conversation(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
Conversation::~Conversation() = default;

Result<std::unique_ptr<Conversation>> Conversation::Create(Session& session) {
  const artifact::Artifact& artifact = session.artifact();
  HX_ASSIGN_OR_RETURN(Tokenizer tokenizer, TokenizerOf(artifact));
  auto impl = std::make_unique<Impl>(session, std::move(tokenizer));
  if (const auto segment = artifact.manifest().chat_template_segment) {
    HX_ASSIGN_OR_RETURN(
        impl->chat_template,
        ChatTemplate::Parse(
            std::string(AsText(artifact.Segment(*segment))),
            ChatTokensFrom(artifact.manifest().special_tokens)));
  }
  return std::unique_ptr<Conversation>(new Conversation(std::move(impl)));
}

Status Conversation::SetSystem(std::string text) {
  if (!impl_->chat.messages.empty()) {
    return Error{ErrorCode::kUsage,
                 "the system message comes before the first turn, and once"};
  }
  impl_->chat.messages.push_back(Message("system", std::move(text)));
  return OkStatus();
}

Result<GenerateResult> Conversation::Chat(std::string text,
                                          const GenerateOptions& options,
                                          const TextCallback& on_text) {
  Json& messages = impl_->chat.messages;
  messages.push_back(Message("user", std::move(text)));
  const auto turn = [&]() -> Result<GenerateResult> {
    HX_ASSIGN_OR_RETURN(const std::string prompt, impl_->Render());
    HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                        impl_->tokenizer.Encode(prompt, AddSpecial::kNo));
    HX_RETURN_IF_ERROR(impl_->session.ReplacePrompt(ids).status());
    return impl_->Generate(options, on_text);
  };
  auto result = turn();
  if (result.ok()) {
    messages.push_back(Message("assistant", impl_->answer));
  } else {
    messages.erase(messages.size() - 1);
  }
  return result;
}

Result<GenerateResult> Conversation::Complete(std::string_view text,
                                              const GenerateOptions& options,
                                              const TextCallback& on_text) {
  const AddSpecial add_special =
      impl_->session.ids().empty() ? AddSpecial::kYes : AddSpecial::kNo;
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                      impl_->tokenizer.Encode(text, add_special));
  if (!text.empty() || impl_->session.ids().empty())
    HX_RETURN_IF_ERROR(impl_->session.Prefill(ids));
  return impl_->Generate(options, on_text);
}

Status Conversation::Save(OutputFile& file) const {
  const SavedChat& chat = impl_->chat;
  return impl_->session.Save(file,
                             chat.messages.empty() ? Json() : ChatToJson(chat));
}

Status Conversation::Restore(const SavedSession& saved, Form form) {
  SavedChat chat{.messages = Json::array(), .start = impl_->chat.start};
  const bool is_chat = !saved.head.conversation.is_null();
  if (is_chat != (form == Form::kChat)) {
    return Error{ErrorCode::kUsage,
                 is_chat ? "a chat, which --raw cannot go on with"
                         : "a plain text, which only --raw can go on with"};
  }
  if (is_chat) {
    HX_ASSIGN_OR_RETURN(chat, ChatFromJson(saved.head.conversation));
  }
  HX_RETURN_IF_ERROR(impl_->session.Restore(saved));
  impl_->chat = std::move(chat);
  return OkStatus();
}

}  // namespace hexllm
