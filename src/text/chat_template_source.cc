#include "text/chat_template_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/quote.h"

namespace hexllm {
namespace {

constexpr std::string_view kDefaultName = "default";
constexpr std::string_view kToolUseName = "tool_use";

const NamedChatTemplate* FindByName(
    std::span<const NamedChatTemplate> templates, std::string_view name) {
  const auto it = std::find_if(
      templates.begin(), templates.end(),
      [name](const NamedChatTemplate& t) { return t.name == name; });
  return it != templates.end() ? &*it : nullptr;
}

Status Add(NamedChatTemplate named, std::vector<NamedChatTemplate>& templates) {
  if (FindByName(templates, named.name) != nullptr) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("chat_template: the name {} is given twice",
                             Quoted(named.name))};
  }
  templates.push_back(std::move(named));
  return OkStatus();
}

// The member chat_template of tokenizer_config.json.
Result<std::vector<NamedChatTemplate>> FromConfig(const Json& config) {
  std::vector<NamedChatTemplate> templates;
  const Json* member = FindMember(config, "chat_template");
  if (member == nullptr) return templates;
  if (member->is_string()) {
    templates.push_back(
        {std::string(kDefaultName), member->get<std::string>()});
    return templates;
  }
  if (!member->is_array()) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("chat_template: expected a string or a list, found {}",
                    JsonTypeName(*member))};
  }
  for (size_t i = 0; i < member->size(); ++i) {
    const std::string where = fmt::format("chat_template[{}]", i);
    auto name = GetString((*member)[i], "name");
    if (!name.ok()) return std::move(name).error().With(where);
    auto source = GetString((*member)[i], "template");
    if (!source.ok()) return std::move(source).error().With(where);
    HX_RETURN_IF_ERROR(
        Add({std::move(name).value(), std::move(source).value()}, templates));
  }
  return templates;
}

std::string NameList(std::span<const NamedChatTemplate> templates) {
  std::string names;
  for (const NamedChatTemplate& named : templates) {
    if (!names.empty()) names += ", ";
    names += Quoted(named.name);
  }
  return names;
}

Result<std::optional<std::string>> ReadToken(const Json& config,
                                             std::string_view key) {
  const Json* member = FindMember(config, key);
  if (member == nullptr) return std::optional<std::string>();
  if (member->is_string())
    return std::optional<std::string>(member->get<std::string>());
  const Json* content = FindMember(*member, "content");
  if (content != nullptr && content->is_string())
    return std::optional<std::string>(content->get<std::string>());
  return Error{ErrorCode::kBadInput,
               fmt::format("'{}': expected a string or an object with a string "
                           "'content', found {}",
                           key, JsonTypeName(*member))};
}

}  // namespace

Result<std::vector<NamedChatTemplate>> FindChatTemplates(
    const ChatTemplateFiles& files) {
  std::vector<NamedChatTemplate> templates;
  if (files.chat_template_jinja)
    templates.push_back(
        {std::string(kDefaultName), *files.chat_template_jinja});
  for (const NamedChatTemplate& named : files.additional)
    HX_RETURN_IF_ERROR(Add(named, templates));
  if (!templates.empty() || files.tokenizer_config == nullptr) return templates;
  return FromConfig(*files.tokenizer_config);
}

Result<const NamedChatTemplate*> ChooseChatTemplate(
    std::span<const NamedChatTemplate> templates, std::string_view wanted,
    ChatTools tools) {
  if (!wanted.empty()) {
    if (const NamedChatTemplate* named = FindByName(templates, wanted))
      return named;
    return Error{ErrorCode::kUsage,
                 fmt::format("no chat template is called {}; there are: {}",
                             Quoted(wanted), NameList(templates))};
  }
  if (tools == ChatTools::kGiven) {
    if (const NamedChatTemplate* named = FindByName(templates, kToolUseName))
      return named;
  }
  if (const NamedChatTemplate* named = FindByName(templates, kDefaultName))
    return named;
  if (templates.empty())
    return Error{ErrorCode::kBadInput,
                 "the model has no chat template; pass raw text, or a template "
                 "of your own"};
  return Error{
      ErrorCode::kBadInput,
      fmt::format("the model has no default chat template; choose one of: {}",
                  NameList(templates))};
}

Result<ChatTokens> ReadChatTokens(const Json& tokenizer_config) {
  ChatTokens tokens;
  HX_ASSIGN_OR_RETURN(tokens.bos_token,
                      ReadToken(tokenizer_config, "bos_token"));
  HX_ASSIGN_OR_RETURN(tokens.eos_token,
                      ReadToken(tokenizer_config, "eos_token"));
  HX_ASSIGN_OR_RETURN(tokens.pad_token,
                      ReadToken(tokenizer_config, "pad_token"));
  HX_ASSIGN_OR_RETURN(tokens.unk_token,
                      ReadToken(tokenizer_config, "unk_token"));
  return tokens;
}

}  // namespace hexllm
