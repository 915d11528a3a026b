#include "compile/calibration_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/quote.h"
#include "compile/default_calibration_text.h"
#include "runtime/artifact_text.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

constexpr size_t kRandomTokens = 256;

// Makes sequences from one source after the other.
class SetBuilder {
 public:
  SetBuilder(const CalibrationOptions& options, const TextAssets& text,
             size_t max_tokens)
      : options_(options), text_(text), max_tokens_(max_tokens) {}

  Status AddPrompts();
  Status AddIds(int64_t vocab);
  Status AddSamples();
  Status AddTasks();
  Status AddDefaultChat();
  Status AddDefault(int64_t vocab, ProgressSink& progress);

  TokenSequences Take() { return std::move(set_); }

 private:
  bool Full(size_t used) const {
    return options_.limit && used >= static_cast<size_t>(*options_.limit);
  }
  Result<const Tokenizer*> GetTokenizer();
  Status AddChat(const Json& messages, bool add_generation_prompt);
  Status AddText(std::string_view text, AddSpecial special);
  Status AddSample(const Json& sample);
  void AddPieces(std::span<const int32_t> ids);

  const CalibrationOptions& options_;
  const TextAssets& text_;
  const size_t max_tokens_;
  std::optional<Tokenizer> tokenizer_;
  TokenSequences set_;
};

void SetBuilder::AddPieces(std::span<const int32_t> ids) {
  while (!ids.empty()) {
    const auto piece = ids.first(std::min(ids.size(), max_tokens_));
    set_.emplace_back(piece.begin(), piece.end());
    ids = ids.subspan(piece.size());
  }
}

// Made when the first text needs it.
Result<const Tokenizer*> SetBuilder::GetTokenizer() {
  if (!text_.tokenizer) {
    return Error{ErrorCode::kUnsupported,
                 "calibration: the checkpoint has no tokenizer, expected token "
                 "ids (--calib-tokens), found text"};
  }
  if (!tokenizer_) {
    HX_ASSIGN_OR_RETURN(Tokenizer made,
                        Tokenizer::Create(TokenizerData(*text_.tokenizer)));
    tokenizer_.emplace(std::move(made));
  }
  return &*tokenizer_;
}

Status SetBuilder::AddText(std::string_view text, AddSpecial special) {
  HX_ASSIGN_OR_RETURN(const Tokenizer* tokenizer, GetTokenizer());
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                      tokenizer->Encode(text, special));
  AddPieces(ids);
  return OkStatus();
}

// Without a template, the contents one after the other.
Status SetBuilder::AddChat(const Json& messages, bool add_generation_prompt) {
  std::string plain;
  for (const Json& message : messages) {
    HX_ASSIGN_OR_RETURN(const std::string content,
                        GetString(message, "content"));
    plain += (plain.empty() ? "" : "\n") + content;
  }
  if (!text_.chat_template) return AddText(plain, AddSpecial::kYes);
  HX_ASSIGN_OR_RETURN(
      const ChatTemplate chat,
      ChatTemplate::Parse(*text_.chat_template,
                          ChatTokensFrom(text_.special_tokens)));
  ChatRenderOptions render;
  render.add_generation_prompt = add_generation_prompt;
  render.now = std::tm{};  // the same day for templates that print a date
  HX_ASSIGN_OR_RETURN(const std::string rendered,
                      chat.Render(messages, render));
  return AddText(rendered, AddSpecial::kNo);
}

Status SetBuilder::AddPrompts() {
  for (size_t i = 0; i < options_.prompts.size() && !Full(i); ++i) {
    const Json messages =
        Json::array({{{"role", "user"}, {"content", options_.prompts[i]}}});
    HX_RETURN_IF_ERROR(AddChat(messages, true));
  }
  return OkStatus();
}

Status SetBuilder::AddIds(int64_t vocab) {
  for (size_t i = 0; i < options_.ids.size() && !Full(i); ++i) {
    for (const int32_t id : options_.ids[i]) {
      if (id >= 0 && id < vocab) continue;
      return Error{ErrorCode::kBadInput,
                   fmt::format("--calib-tokens: expected ids from 0 to {}, "
                               "found {}",
                               vocab - 1, id)};
    }
    AddPieces(options_.ids[i]);
  }
  return OkStatus();
}

Status SetBuilder::AddSample(const Json& sample) {
  if (sample.is_string())
    return AddText(sample.get_ref<const std::string&>(), AddSpecial::kYes);
  const Json* messages =
      sample.is_object() ? FindMember(sample, "messages") : &sample;
  if (messages == nullptr || !messages->is_array() || messages->empty()) {
    return Error{ErrorCode::kBadInput,
                 "expected text, an array of messages, or an object with "
                 "\"messages\""};
  }
  return AddChat(*messages, false);
}

Status SetBuilder::AddSamples() {
  const std::string& path = options_.samples_path;
  if (path.empty()) return OkStatus();
  HX_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  if (!json.is_array()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{}: expected an array of chats, found {}", path,
                             JsonTypeName(json))};
  }
  for (size_t i = 0; i < json.size() && !Full(i); ++i) {
    Status status = AddSample(json[i]);
    if (!status.ok()) {
      return std::move(status).error().With(
          fmt::format("{}: chat {}", path, i));
    }
  }
  return OkStatus();
}

Status SetBuilder::AddTasks() {
  if (options_.tasks.empty()) return OkStatus();
  if (options_.tasks != "wikitext") {
    return Error{ErrorCode::kUsage,
                 fmt::format("--calib-tasks: expected wikitext, found {}",
                             Quoted(options_.tasks))};
  }
  if (options_.data_dir.empty()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--calib-tasks wikitext: expected --data-dir, the "
                             "folder that holds {}",
                             kWikitextFile)};
  }
  HX_ASSIGN_OR_RETURN(const MappedFile file,
                      MappedFile::Open(WikitextPath(options_.data_dir)));
  const std::string_view text = AsText(file.bytes());
  if (Status status = CheckUtf8(text); !status.ok())
    return std::move(status).error().With(file.path());
  HX_ASSIGN_OR_RETURN(const Tokenizer* tokenizer, GetTokenizer());
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                      tokenizer->Encode(text, AddSpecial::kNo));
  // From the end: evaluation counts windows from the beginning.
  const size_t window = std::min(kTaskWindowTokens, max_tokens_);
  const auto windows =
      static_cast<size_t>(options_.limit.value_or(kDefaultTaskWindows));
  for (size_t i = 1; i <= windows && i * window <= ids.size(); ++i) {
    AddPieces(std::span(ids).subspan(ids.size() - i * window, window));
  }
  return OkStatus();
}

// The tokens between turns have activations of their own: without them the
// ranges of SmolLM2 135M clip whole positions of a chat.
Status SetBuilder::AddDefaultChat() {
  Json messages = Json::array();
  for (const CalibrationTurn& turn : kDefaultCalibrationChat) {
    messages.push_back({{"role", "user"}, {"content", turn.question}});
    messages.push_back({{"role", "assistant"}, {"content", turn.answer}});
  }
  return AddChat(messages, false);
}

Status SetBuilder::AddDefault(int64_t vocab, ProgressSink& progress) {
  if (text_.tokenizer) {
    HX_RETURN_IF_ERROR(AddText(kDefaultCalibrationText, AddSpecial::kYes));
    return text_.chat_template ? AddDefaultChat() : OkStatus();
  }
  progress.Warn(
      "calibration: the checkpoint has no tokenizer and no --calib-tokens were "
      "given; using pseudo-random ids, which are a poor stand-in for text");
  std::vector<int32_t> ids;
  uint64_t state = 1;
  while (ids.size() < kRandomTokens) {
    // Knuth's MMIX generator.
    state = state * 6364136223846793005U + 1442695040888963407U;
    ids.push_back(
        static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocab)));
  }
  AddPieces(ids);
  return OkStatus();
}

bool NamesSources(const CalibrationOptions& options) {
  return !options.prompts.empty() || !options.ids.empty() ||
         !options.samples_path.empty() || !options.tasks.empty();
}

}  // namespace

std::string WikitextPath(const std::string& data_dir) {
  return fmt::format("{}/{}", data_dir, kWikitextFile);
}

bool IsGiven(const CalibrationOptions& options) {
  return NamesSources(options) || options.limit;
}

Result<TokenSequences> MakeCalibrationSet(const CalibrationOptions& options,
                                          const TextAssets& text, int64_t vocab,
                                          size_t max_tokens,
                                          ProgressSink& progress) {
  if (options.limit && !NamesSources(options)) {
    return Error{ErrorCode::kUsage,
                 "--calib-limit: expected with --calib-prompt, --calib-tokens, "
                 "--calib-samples or --calib-tasks, found none of them"};
  }
  SetBuilder builder(options, text, max_tokens);
  HX_RETURN_IF_ERROR(builder.AddPrompts());
  HX_RETURN_IF_ERROR(builder.AddIds(vocab));
  HX_RETURN_IF_ERROR(builder.AddSamples());
  HX_RETURN_IF_ERROR(builder.AddTasks());
  if (!NamesSources(options))
    HX_RETURN_IF_ERROR(builder.AddDefault(vocab, progress));
  TokenSequences set = builder.Take();
  if (set.empty()) {
    return Error{
        ErrorCode::kBadInput,
        "calibration: the set is empty; give at least one prompt, chat "
        "or text that has tokens"};
  }
  return set;
}

}  // namespace hexllm
