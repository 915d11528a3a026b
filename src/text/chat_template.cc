#include "text/chat_template.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "text/jinja/eval.h"
#include "text/jinja/from_json.h"
#include "text/jinja/functions.h"
#include "text/jinja/parser.h"
#include "text/utf8.h"

namespace hexllm {

using jinja::Context;
using jinja::Dict;
using jinja::Scope;
using jinja::Value;

struct ChatTemplate::Parsed {
  std::string source;
  ChatTokens tokens;
  jinja::Block body;
};

namespace {

// Older names of a message's reasoning, the standard one first.
constexpr std::string_view kReasoningNames[] = {"reasoning_content", "thinking",
                                                "reasoning"};

// A message as transformers hands it to templates: without null members, and
// with the reasoning under its standard name and under `thinking`.
Json Normalized(const Json& message) {
  const Json* reasoning = nullptr;
  for (const std::string_view name : kReasoningNames) {
    if (reasoning == nullptr) reasoning = FindMember(message, name);
  }
  Json out = Json::object();
  if (reasoning != nullptr) out["thinking"] = *reasoning;
  for (const auto& [name, member] : message.items()) {
    if (!member.is_null()) out[name] = member;
  }
  if (reasoning != nullptr) out["reasoning_content"] = *reasoning;
  return out;
}

Result<Value> MessagesValue(Context& context, const Json& messages) {
  if (!messages.is_array() || messages.empty()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("chat messages: expected a list with at least one "
                             "message, found {}",
                             messages.is_array() ? "an empty list"
                                                 : JsonTypeName(messages))};
  }
  std::vector<Value> values;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object()) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("chat message {}: expected an object, found {}",
                               i, JsonTypeName(messages[i]))};
    }
    auto value = jinja::FromJson(context, Normalized(messages[i]));
    if (!value.ok())
      return std::move(value).error().With(fmt::format("chat message {}", i));
    values.push_back(std::move(value).value());
  }
  return context.NewList(std::move(values));
}

// Sets `name` to a list, or to None when there is none.
Status SetList(Context& context, Scope& globals,
               const std::pair<std::string_view, const Json*>& list) {
  const auto& [name, json] = list;
  if (json == nullptr || json->is_null()) {
    globals.Set(name, Value());
    return OkStatus();
  }
  if (!json->is_array()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("chat {}: expected a list, found {}", name,
                             JsonTypeName(*json))};
  }
  auto value = jinja::FromJson(context, *json);
  if (!value.ok())
    return std::move(value).error().With(fmt::format("chat {}", name));
  globals.Set(name, std::move(value).value());
  return OkStatus();
}

void SetTokens(const ChatTokens& tokens, Scope& globals) {
  const auto set = [&globals](std::string_view name,
                              const std::optional<std::string>& token) {
    if (token) globals.Set(name, Value::Text(*token));
  };
  set("bos_token", tokens.bos_token);
  set("eos_token", tokens.eos_token);
  set("pad_token", tokens.pad_token);
  set("unk_token", tokens.unk_token);
}

Status SetVariables(Context& context, Scope& globals, const Json& variables) {
  if (!variables.is_object()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("chat variables: expected an object, found {}",
                             JsonTypeName(variables))};
  }
  for (const auto& [name, json] : variables.items()) {
    auto value = jinja::FromJson(context, json);
    if (!value.ok())
      return std::move(value).error().With(
          fmt::format("chat variable '{}'", name));
    globals.Set(name, std::move(value).value());
  }
  return OkStatus();
}

Status CheckTokens(const ChatTokens& tokens) {
  for (const auto* token : {&tokens.bos_token, &tokens.eos_token,
                            &tokens.pad_token, &tokens.unk_token}) {
    if (*token && !IsValidUtf8(**token))
      return Error{ErrorCode::kBadInput,
                   "chat template: a special token is not valid UTF-8"};
  }
  return OkStatus();
}

}  // namespace

Result<ChatTemplate> ChatTemplate::Parse(std::string source,
                                         ChatTokens tokens) {
  if (source.size() > kMaxChatTemplateBytes) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("chat template: {} bytes; the limit is {}",
                             source.size(), kMaxChatTemplateBytes)};
  }
  if (!IsValidUtf8(source))
    return Error{ErrorCode::kBadInput,
                 "chat template: the text is not valid UTF-8"};
  HX_RETURN_IF_ERROR(CheckTokens(tokens));
  HX_ASSIGN_OR_RETURN(jinja::Block body, jinja::ParseTemplate(source));
  return ChatTemplate(std::make_shared<const Parsed>(
      Parsed{std::move(source), std::move(tokens), std::move(body)}));
}

Result<std::string> ChatTemplate::Render(
    const Json& messages, const ChatRenderOptions& options) const {
  Context context(options.limits, options.now);
  Scope globals(nullptr);
  HX_RETURN_IF_ERROR(jinja::DefineFunctions(context, globals));
  SetTokens(parsed_->tokens, globals);
  HX_ASSIGN_OR_RETURN(Value list, MessagesValue(context, messages));
  if (options.variables != nullptr)
    HX_RETURN_IF_ERROR(SetVariables(context, globals, *options.variables));
  globals.Set("messages", std::move(list));
  HX_RETURN_IF_ERROR(SetList(context, globals, {"tools", options.tools}));
  HX_RETURN_IF_ERROR(
      SetList(context, globals, {"documents", options.documents}));
  globals.Set("add_generation_prompt",
              Value::Bool(options.add_generation_prompt));
  jinja::Evaluator evaluator(context, globals);
  return evaluator.Render(parsed_->body);
}

const std::string& ChatTemplate::source() const { return parsed_->source; }

}  // namespace hexllm
