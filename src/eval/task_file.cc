#include "eval/task_file.h"

#include <fmt/format.h>

#include <functional>

#include "base/quote.h"

namespace hexllm {
namespace {

using LineReader = std::function<Status(const Json& line)>;

// Calls `read` for each line that is not empty; errors get the line's number.
Status ForEachLine(std::string_view text, const LineReader& read) {
  size_t number = 0, lines = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    ++lines;
    const auto context = [&] { return fmt::format("line {}", number); };
    auto json = ParseJson(line);
    if (!json.ok()) return std::move(json).error().With(context());
    Status status = read(*json);
    if (!status.ok()) return std::move(status).error().With(context());
  }
  if (lines > 0) return OkStatus();
  return Error{ErrorCode::kBadInput,
               "expected one JSON object a line, found no lines"};
}

Result<std::string> GetFilled(const Json& json, std::string_view key) {
  HX_ASSIGN_OR_RETURN(std::string text, GetString(json, key));
  if (!text.empty()) return text;
  return Error{ErrorCode::kBadInput,
               fmt::format("{}: expected a text, found an empty one", key)};
}

Result<std::vector<std::string>> GetTexts(const Json& json,
                                          std::string_view key) {
  const Json* member = FindMember(json, key);
  if (member == nullptr || !member->is_array() || member->size() < 2) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("{}: expected an array of two texts or more, "
                    "found {}",
                    key, member == nullptr ? "none" : JsonTypeName(*member))};
  }
  std::vector<std::string> texts;
  for (const Json& text : *member) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("{}: expected texts that are not empty, found {}", key,
                      text.is_string() ? "an empty one" : JsonTypeName(text))};
    }
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

// A number, or as HellaSwag's publishers have it, a number in a string.
Result<uint32_t> GetLabel(const Json& json, size_t choices) {
  const char* key = FindMember(json, "label") == nullptr ? "gold" : "label";
  if (std::string_view(key) == "label" && FindMember(json, "gold") != nullptr) {
    return Error{ErrorCode::kBadInput,
                 "expected \"label\" or \"gold\", found both; remove one"};
  }
  const Json* member = FindMember(json, key);
  int64_t label = -1;
  if (member != nullptr && member->is_string()) {
    HX_ASSIGN_OR_RETURN(const Json number,
                        ParseJson(member->get_ref<const std::string&>()));
    HX_ASSIGN_OR_RETURN(label, GetInt(Json{{key, number}}, key));
  } else {
    HX_ASSIGN_OR_RETURN(label, GetInt(json, member == nullptr ? "label" : key));
  }
  if (label >= 0 && static_cast<uint64_t>(label) < choices)
    return static_cast<uint32_t>(label);
  return Error{ErrorCode::kBadInput,
               fmt::format("label: expected 0 to {}, an index of a choice, "
                           "found {}",
                           choices - 1, label)};
}

Result<ChoiceQuestion> ReadQuestion(const Json& json) {
  ChoiceQuestion question;
  HX_ASSIGN_OR_RETURN(question.query, GetString(json, "query"));
  HX_ASSIGN_OR_RETURN(question.choices, GetTexts(json, "choices"));
  HX_ASSIGN_OR_RETURN(question.label, GetLabel(json, question.choices.size()));
  return question;
}

Result<Continuation> ReadContinuation(const Json& json) {
  Continuation out;
  HX_ASSIGN_OR_RETURN(out.context, GetString(json, "context"));
  HX_ASSIGN_OR_RETURN(out.continuation, GetFilled(json, "continuation"));
  return out;
}

// The member that tells a line's kind; nothing for no kind. kBadInput for two.
Result<std::string_view> KindOf(const Json& line) {
  std::string_view kind;
  for (const std::string_view key : {"text", "query", "continuation"}) {
    if (FindMember(line, key) == nullptr) continue;
    if (!kind.empty()) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("expected one of \"text\", \"query\" and "
                               "\"continuation\", which tells what the line "
                               "is, found \"{}\" and \"{}\"; remove one",
                               kind, key)};
    }
    kind = key;
  }
  return kind;
}

Status ReadLine(const Json& line, std::string_view kind, TaskTexts& out) {
  if (kind == "text") {
    HX_ASSIGN_OR_RETURN(std::string text, GetString(line, "text"));
    out.documents.push_back(std::move(text));
  } else if (kind == "query") {
    HX_ASSIGN_OR_RETURN(ChoiceQuestion question, ReadQuestion(line));
    out.questions.push_back(std::move(question));
  } else {
    HX_ASSIGN_OR_RETURN(Continuation read, ReadContinuation(line));
    out.continuations.push_back(std::move(read));
  }
  return OkStatus();
}

bool IsAsciiSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The harness's preprocess(): strip, " [title]" to ". ", other brackets out,
// double spaces to one (each pair once).
std::string Preprocessed(std::string_view text) {
  while (!text.empty() && IsAsciiSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsAsciiSpace(text.back())) text.remove_suffix(1);
  constexpr std::string_view kTitle = " [title]";
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(kTitle)) {
      plain += ". ";
      at += kTitle.size();
    } else {
      plain += text[at++];
    }
  }
  std::string out;
  for (size_t at = 0; at < plain.size(); ++at) {
    // A bracket that no line break parts from its end.
    const size_t end =
        plain[at] == '[' ? plain.find_first_of("]\n", at) : std::string::npos;
    if (end != std::string::npos && plain[end] == ']') {
      at = end;
    } else {
      out += plain[at];
    }
  }
  std::string single;
  for (size_t at = 0; at < out.size(); ++at) {
    single += out[at];
    if (out[at] == ' ' && at + 1 < out.size() && out[at + 1] == ' ') ++at;
  }
  return single;
}

}  // namespace

Result<TaskTexts> ParseTaskLines(std::string_view text) {
  TaskTexts out;
  std::string kind;
  HX_RETURN_IF_ERROR(ForEachLine(text, [&](const Json& line) -> Status {
    HX_ASSIGN_OR_RETURN(const std::string_view found, KindOf(line));
    if (kind.empty()) kind = found;
    if (!found.empty() && found == kind) return ReadLine(line, kind, out);
    return Error{ErrorCode::kBadInput,
                 fmt::format("expected an object with {}, found {}",
                             kind.empty() ? "\"text\", \"query\" or "
                                            "\"continuation\""
                                          : Quoted(kind) + " as the first line",
                             found.empty() ? JsonTypeName(line) : found)};
  }));
  return out;
}

Result<std::vector<ChoiceQuestion>> ParseHellaswag(std::string_view text) {
  std::vector<ChoiceQuestion> questions;
  HX_RETURN_IF_ERROR(ForEachLine(text, [&](const Json& line) -> Status {
    ChoiceQuestion question;
    HX_ASSIGN_OR_RETURN(const std::string activity,
                        GetString(line, "activity_label"));
    HX_ASSIGN_OR_RETURN(const std::string context, GetString(line, "ctx"));
    question.query = Preprocessed(activity + ": " + context);
    HX_ASSIGN_OR_RETURN(question.choices, GetTexts(line, "endings"));
    for (std::string& choice : question.choices) choice = Preprocessed(choice);
    HX_ASSIGN_OR_RETURN(question.label,
                        GetLabel(line, question.choices.size()));
    questions.push_back(std::move(question));
    return OkStatus();
  }));
  return questions;
}

}  // namespace hexllm
