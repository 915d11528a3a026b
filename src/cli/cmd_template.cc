#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "compile/text_assets.h"
#include "runtime/artifact_text.h"
#include "text/chat_template.h"

namespace hexllm::cli {
namespace {

struct Flags {
  std::string model;
  std::string messages;
  bool add_generation_prompt = false;
  std::vector<std::string> variables;
};

// "KEY=JSON" into an object.
Result<Json> ParseVariables(const std::vector<std::string>& texts) {
  Json out = Json::object();
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{ErrorCode::kUsage,
                   fmt::format("--var: expected KEY=JSON, found '{}'", text)};
    const std::string key = text.substr(0, equals);
    for (const std::string_view reserved :
         {"messages", "tools", "documents", "add_generation_prompt"}) {
      if (key != reserved) continue;
      return Error{ErrorCode::kUsage,
                   fmt::format("--var {}: expected another variable; this one "
                               "comes from --messages or a flag of its own",
                               key)};
    }
    auto value = ParseJson(std::string_view(text).substr(equals + 1));
    if (!value.ok())
      return Error{ErrorCode::kUsage,
                   fmt::format("--var {}: {}", text, value.error().message)};
    out[key] = std::move(*value);
  }
  return out;
}

std::tm Now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return local;
}

// The messages: an array, or an object with "messages" and, if need be, "tools"
// and "documents".
struct Chat {
  const Json* messages;
  const Json* tools;
  const Json* documents;
};

Chat ChatOf(const Json& json) {
  if (!json.is_object()) return {&json, nullptr, nullptr};
  const Json* messages = FindMember(json, "messages");
  return {messages == nullptr ? &json : messages, FindMember(json, "tools"),
          FindMember(json, "documents")};
}

Status Template(const Flags& flags) {
  HX_ASSIGN_OR_RETURN(const TextAssets assets, LoadChatTemplate(flags.model));
  HX_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(flags.messages));
  HX_ASSIGN_OR_RETURN(const Json variables, ParseVariables(flags.variables));
  const Chat chat = ChatOf(json);
  ChatRenderOptions options;
  options.add_generation_prompt = flags.add_generation_prompt;
  options.tools = chat.tools;
  options.documents = chat.documents;
  options.variables = &variables;
  options.now = Now();
  HX_ASSIGN_OR_RETURN(
      const ChatTemplate chat_template,
      ChatTemplate::Parse(*assets.chat_template,
                          ChatTokensFrom(assets.special_tokens)));
  HX_ASSIGN_OR_RETURN(const std::string text,
                      chat_template.Render(*chat.messages, options));
  return Print(text);
}

}  // namespace

Body AddTemplate(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--model", flags->model, "A model folder or GGUF file")
      ->required()
      ->type_name("DIR|FILE");
  app.add_option("--messages", flags->messages,
                 "JSON: an array of messages, or an object with messages, "
                 "tools, documents")
      ->required()
      ->type_name("FILE");
  app.add_flag("--add-generation-prompt", flags->add_generation_prompt,
               "End with the start of the assistant's answer");
  app.add_option("--var", flags->variables,
                 "A further variable of the template")
      ->type_name("KEY=JSON")
      ->allow_extra_args(false)
      ->default_str("");
  return [flags] { return Template(*flags); };
}

}  // namespace hexllm::cli
