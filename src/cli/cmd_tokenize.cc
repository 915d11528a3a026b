#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>

#include "base/json.h"
#include "cli/command.h"
#include "cli/ids_argument.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "compile/text_assets.h"
#include "runtime/artifact_text.h"
#include "text/tokenizer.h"

namespace hexllm::cli {
namespace {

struct Flags {
  std::string tokenizer;
  std::optional<std::string> input;
  bool no_special = false;
  bool jsonl = false;
};

Result<Tokenizer> OpenTokenizer(const std::string& path) {
  if (IsArtifact(path)) {
    HX_ASSIGN_OR_RETURN(const auto artifact, artifact::Artifact::Open(path));
    return TokenizerOf(*artifact);
  }
  HX_ASSIGN_OR_RETURN(TokenizerData data, LoadTokenizer(path));
  auto tokenizer = Tokenizer::Create(std::move(data));
  if (!tokenizer.ok()) return std::move(tokenizer).error().With(path);
  return tokenizer;
}

Error StdinError() {
  return Error{
      ErrorCode::kEnvironment,
      fmt::format("standard input: cannot read: {}", std::strerror(errno))};
}

// All of standard input.
Result<std::string> ReadInput() {
  std::string text;
  char part[1 << 16];
  while (const size_t n = std::fread(part, 1, sizeof(part), stdin)) {
    text.append(part, n);
  }
  if (std::ferror(stdin) != 0) return StdinError();
  return text;
}

// The INPUT argument, or standard input.
Result<std::string> InputOf(const Flags& flags) {
  if (flags.input) return *flags.input;
  return ReadInput();
}

// Calls `handle` with each JSON value of standard input, one a line, and prints
// what it returns.
template <typename F>
Status ForEachLine(F&& handle) {
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    const std::string where = fmt::format("standard input, line {}", number);
    auto json = ParseJson(line);
    if (!json.ok()) return std::move(json).error().With(where);
    Result<std::string> out = handle(*json);
    if (!out.ok()) return std::move(out).error().With(where);
    HX_RETURN_IF_ERROR(Print(*out + "\n"));
  }
  if (std::ferror(stdin) != 0) return StdinError();
  return OkStatus();
}

Result<std::vector<int32_t>> IdsFromJson(const Json& json) {
  const auto fail = [](const Json& found) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("expected a JSON array of token ids, found {}",
                             JsonTypeName(found))};
  };
  if (!json.is_array()) return fail(json);
  std::vector<int32_t> ids;
  for (const Json& entry : json) {
    if (!entry.is_number_unsigned() || entry.get<uint64_t>() > INT32_MAX)
      return fail(entry);
    ids.push_back(entry.get<int32_t>());
  }
  return ids;
}

Status Tokenize(const Flags& flags) {
  HX_ASSIGN_OR_RETURN(const Tokenizer tokenizer,
                      OpenTokenizer(flags.tokenizer));
  const AddSpecial add_special =
      flags.no_special ? AddSpecial::kNo : AddSpecial::kYes;
  const auto encode = [&](std::string_view text) -> Result<std::string> {
    HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                        tokenizer.Encode(text, add_special));
    return IdsToJson(ids);
  };
  if (flags.jsonl) {
    return ForEachLine([&](const Json& json) -> Result<std::string> {
      if (!json.is_string())
        return Error{ErrorCode::kBadInput,
                     fmt::format("expected a JSON string, found {}",
                                 JsonTypeName(json))};
      return encode(json.get_ref<const std::string&>());
    });
  }
  HX_ASSIGN_OR_RETURN(const std::string text, InputOf(flags));
  HX_ASSIGN_OR_RETURN(const std::string ids, encode(text));
  return Print(ids + "\n");
}

Status Detokenize(const Flags& flags) {
  HX_ASSIGN_OR_RETURN(const Tokenizer tokenizer,
                      OpenTokenizer(flags.tokenizer));
  const SpecialTokens special =
      flags.no_special ? SpecialTokens::kSkip : SpecialTokens::kKeep;
  const auto decode = [&](const Json& json) -> Result<std::string> {
    HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, IdsFromJson(json));
    for (const int32_t id : ids) {
      if (id < tokenizer.vocab_size()) continue;
      return Error{ErrorCode::kUsage,
                   fmt::format("token ids: expected ids below {}, the size of "
                               "the vocabulary, found {}",
                               tokenizer.vocab_size(), id)};
    }
    return tokenizer.Decode(ids, special);
  };
  if (flags.jsonl) {
    return ForEachLine([&](const Json& json) -> Result<std::string> {
      HX_ASSIGN_OR_RETURN(std::string text, decode(json));
      return DumpJson(Json(std::move(text)));
    });
  }
  HX_ASSIGN_OR_RETURN(std::string input, InputOf(flags));
  if (const size_t start = input.find_first_not_of(" \t\r\n");
      start == std::string::npos || input[start] != '[')
    input = "[" + input + "]";
  auto json = ParseJson(input);
  if (!json.ok())
    return Error{
        ErrorCode::kUsage,
        "token ids: expected whole numbers like 1,2,3 or a JSON array"};
  HX_ASSIGN_OR_RETURN(const std::string text, decode(*json));
  return Print(text + "\n");
}

std::shared_ptr<Flags> AddFlags(CLI::App& app, const char* input_help) {
  auto flags = std::make_shared<Flags>();
  app.add_option("input", flags->input, input_help)->type_name("INPUT");
  app.add_option("--tokenizer", flags->tokenizer,
                 "A model folder or file, a tokenizer file or an artifact")
      ->required()
      ->type_name("DIR|FILE");
  app.add_flag(
      "--jsonl", flags->jsonl,
      "Read one JSON value a line from standard input, print one a line");
  return flags;
}

Status CheckInput(const Flags& flags) {
  if (flags.jsonl && flags.input)
    return Error{ErrorCode::kUsage,
                 "--jsonl reads standard input: expected no INPUT argument"};
  return OkStatus();
}

}  // namespace

Body AddTokenize(CLI::App& app) {
  auto flags = AddFlags(app, "The text; standard input when left out");
  app.add_flag("--no-special", flags->no_special,
               "Leave out the BOS and EOS that the tokenizer would add");
  return [flags]() -> Status {
    HX_RETURN_IF_ERROR(CheckInput(*flags));
    return Tokenize(*flags);
  };
}

Body AddDetokenize(CLI::App& app) {
  auto flags = AddFlags(
      app, "The ids, 1,2,3 or a JSON array; standard input when left out");
  app.add_flag("--no-special", flags->no_special, "Leave out special tokens");
  return [flags]() -> Status {
    HX_RETURN_IF_ERROR(CheckInput(*flags));
    return Detokenize(*flags);
  };
}

}  // namespace hexllm::cli
