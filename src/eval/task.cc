#include "eval/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/mapped_file.h"
#include "base/quote.h"
#include "eval/question.h"
#include "eval/task_file.h"
#include "eval/wikitext.h"
#include "eval/windows.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

struct Builtin {
  std::string_view name;
  std::string_view file;  // in --data-dir
};
constexpr Builtin kBuiltins[] = {
    {"wikitext", "wikitext-2/test.txt"},
    {"wikitext-fixed", "wikitext-2/test.txt"},
    {"hellaswag", "hellaswag/validation-2000.jsonl"},
};
constexpr std::string_view kFixed = "wikitext-fixed";

const Builtin* FindBuiltin(std::string_view name) {
  const auto* const found = std::find_if(
      std::begin(kBuiltins), std::end(kBuiltins),
      [&](const Builtin& builtin) { return builtin.name == name; });
  return found == std::end(kBuiltins) ? nullptr : found;
}

size_t Limited(size_t items, const TaskOptions& options) {
  return static_cast<size_t>(
      std::min<uint64_t>(items, options.limit.value_or(items)));
}

// Makes the items of one task.
class TaskBuilder {
 public:
  TaskBuilder(const std::string& name, const TaskOptions& options,
              const TaskTokens& tokens, ProgressSink& progress)
      : options_(options), tokens_(tokens), progress_(progress) {
    task_.name = FindBuiltin(name) != nullptr
                     ? name
                     : std::filesystem::path(name).stem().string();
    task_.window = options.window;
  }

  Status AddWikitext(std::string_view text);
  Status AddFixed(std::string_view text);
  Status AddLines(std::string_view text);
  Status AddQuestions(std::vector<ChoiceQuestion> questions);
  Result<Task> Take() &&;

 private:
  Status AddDocument(std::string_view encoded, std::string_view original);
  Status AddDocuments(std::span<const std::string> documents);
  Status AddContinuations(std::span<const Continuation> continuations);
  std::string PrefixText() const;
  void DescribeQuestions(TaskKind kind);
  TaskItem& NewItem();

  const TaskOptions& options_;
  const TaskTokens& tokens_;
  ProgressSink& progress_;
  Task task_;
  uint64_t empty_ = 0;  // documents without tokens
  uint64_t cut_ = 0;    // requests that lost tokens
};

TaskItem& TaskBuilder::NewItem() {
  task_.items.push_back({.index = task_.items.size()});
  return task_.items.back();
}

std::string TaskBuilder::PrefixText() const {
  if (!tokens_.prefix) return "no BOS: the first token of each is given";
  return fmt::format(
      "{} before each, not counted",
      Printable(tokens_.tokenizer.Decode(std::span(&*tokens_.prefix, 1),
                                         SpecialTokens::kKeep)));
}

Status TaskBuilder::AddDocument(std::string_view encoded,
                                std::string_view original) {
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                      tokens_.tokenizer.Encode(encoded, AddSpecial::kNo));
  auto requests = RollingWindows(ids, tokens_.prefix, options_.window);
  if (requests.empty()) {
    ++empty_;
    return OkStatus();
  }
  TaskItem& item = NewItem();
  item.requests = std::move(requests);
  item.facts.words = CountWords(original);
  item.facts.bytes = original.size();
  return OkStatus();
}

Status TaskBuilder::AddDocuments(std::span<const std::string> documents) {
  task_.kind = TaskKind::kDocuments;
  task_.stride = options_.window;
  task_.bos = PrefixText();
  for (const std::string& text :
       documents.first(Limited(documents.size(), options_)))
    HX_RETURN_IF_ERROR(AddDocument(text, text));
  return OkStatus();
}

Status TaskBuilder::AddWikitext(std::string_view text) {
  task_.kind = TaskKind::kDocuments;
  task_.stride = options_.window;
  task_.bos = PrefixText();
  const std::vector<std::string> documents = WikitextDocuments(text);
  for (const std::string& document :
       std::span(documents).first(Limited(documents.size(), options_)))
    HX_RETURN_IF_ERROR(AddDocument(WikitextDetokenized(document), document));
  return OkStatus();
}

Status TaskBuilder::AddFixed(std::string_view text) {
  task_.kind = TaskKind::kFixedWindows;
  task_.stride = options_.stride.value_or(options_.window);
  task_.bos = "no BOS: the first token of each is given";
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                      tokens_.tokenizer.Encode(text, AddSpecial::kNo));
  if (ids.size() < options_.window) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("expected at least one window of {} tokens, found "
                             "{} tokens; give a smaller --window",
                             options_.window, ids.size())};
  }
  auto windows = FixedWindows(ids, options_.window, task_.stride);
  windows.resize(Limited(windows.size(), options_));
  for (Request& window : windows)
    NewItem().requests.push_back(std::move(window));
  return OkStatus();
}

void TaskBuilder::DescribeQuestions(TaskKind kind) {
  task_.kind = kind;
  task_.bos = tokens_.adds_prefix && tokens_.prefix
                  ? PrefixText()
                  : "no BOS, but before an empty context";
}

Status TaskBuilder::AddQuestions(std::vector<ChoiceQuestion> questions) {
  DescribeQuestions(TaskKind::kChoices);
  task_.num_fewshot = options_.num_fewshot;
  if (options_.num_fewshot >= questions.size()) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("--num-fewshot: expected fewer than the {} "
                    "questions of {}, found {}",
                    questions.size(), task_.name, options_.num_fewshot)};
  }
  PairEncoder pairs(tokens_, options_.window);
  for (size_t i = 0; i < Limited(questions.size(), options_); ++i) {
    const std::string context =
        FewShotContext(questions, i, options_.num_fewshot);
    TaskItem& item = NewItem();
    item.facts.label = questions[i].label;
    for (const std::string& choice : questions[i].choices) {
      auto request = pairs.Encode(context, " " + choice);
      if (!request.ok()) {
        return std::move(request).error().With(
            fmt::format("question {}", i + 1));
      }
      item.requests.push_back(std::move(request).value());
      uint32_t chars = 0;
      ForEachChar(choice, [&](uint32_t, size_t, size_t) { ++chars; });
      item.facts.choice_chars.push_back(chars);
      item.facts.choice_bytes.push_back(static_cast<uint32_t>(choice.size()));
    }
  }
  cut_ = pairs.cut();
  return OkStatus();
}

Status TaskBuilder::AddContinuations(
    std::span<const Continuation> continuations) {
  DescribeQuestions(TaskKind::kContinuations);
  PairEncoder pairs(tokens_, options_.window);
  for (size_t i = 0; i < Limited(continuations.size(), options_); ++i) {
    const auto& [context, continuation] = continuations[i];
    auto request = pairs.Encode(context, continuation);
    if (!request.ok()) {
      return std::move(request).error().With(
          fmt::format("continuation {}", i + 1));
    }
    NewItem().requests.push_back(std::move(request).value());
  }
  cut_ = pairs.cut();
  return OkStatus();
}

Status TaskBuilder::AddLines(std::string_view text) {
  HX_ASSIGN_OR_RETURN(TaskTexts texts, ParseTaskLines(text));
  if (!texts.questions.empty()) return AddQuestions(std::move(texts.questions));
  if (options_.num_fewshot > 0) {
    return Error{ErrorCode::kUsage,
                 "--num-fewshot: expected with a file of questions"};
  }
  return texts.documents.empty() ? AddContinuations(texts.continuations)
                                 : AddDocuments(texts.documents);
}

Result<Task> TaskBuilder::Take() && {
  if (task_.items.empty()) {
    return Error{ErrorCode::kBadInput,
                 "expected texts with tokens, found none"};
  }
  if (empty_ > 0) {
    progress_.Warn(fmt::format("{}: {} documents without tokens are left out",
                               task_.name, empty_));
  }
  if (cut_ > 0) {
    progress_.Warn(fmt::format(
        "{}: {} texts are longer than the window of {} tokens and lose their "
        "beginning; a larger --window keeps it",
        task_.name, cut_, options_.window));
  }
  return std::move(task_);
}

}  // namespace

std::vector<std::string_view> BuiltinTasks() {
  std::vector<std::string_view> names;
  for (const Builtin& builtin : kBuiltins) names.push_back(builtin.name);
  return names;
}

std::string TaskPath(const std::string& name, const std::string& data_dir) {
  const Builtin* builtin = FindBuiltin(name);
  return builtin == nullptr ? name
                            : fmt::format("{}/{}", data_dir, builtin->file);
}

Status CheckTask(const std::string& name, const TaskOptions& options) {
  const auto usage = [](std::string message) {
    return Error{ErrorCode::kUsage, std::move(message)};
  };
  const Builtin* builtin = FindBuiltin(name);
  if (builtin == nullptr && !name.ends_with(".jsonl")) {
    return usage(fmt::format("--tasks: expected {} or FILE.jsonl, found {}",
                             fmt::join(BuiltinTasks(), ", "), Quoted(name)));
  }
  if (builtin != nullptr && options.data_dir.empty()) {
    return usage(
        fmt::format("--tasks {}: expected --data-dir, the folder that "
                    "holds {}",
                    name, builtin->file));
  }
  if (options.stride && name != kFixed) {
    return usage(fmt::format("--stride: expected with --tasks {}, found {}",
                             kFixed, Quoted(name)));
  }
  if (options.stride &&
      (*options.stride < 1 || *options.stride > options.window))
    return usage(fmt::format("--stride: expected 1 to {}, the window, found {}",
                             options.window, *options.stride));
  if (options.num_fewshot > 0 && builtin != nullptr && name != "hellaswag") {
    return usage(
        fmt::format("--num-fewshot: expected with questions, found {}", name));
  }
  if (options.limit == 0) return usage("--limit: expected at least 1, found 0");
  return OkStatus();
}

Result<Task> LoadTask(const std::string& name, const TaskOptions& options,
                      const TaskTokens& tokens, ProgressSink& progress) {
  const std::string path = TaskPath(name, options.data_dir);
  auto file = MappedFile::Open(path);
  if (!file.ok()) {
    return std::move(file).error().With(
        fmt::format("task {} (hexllm downloads no data)", name));
  }
  const std::string_view text = AsText(file->bytes());
  TaskBuilder builder(name, options, tokens, progress);
  const auto add = [&]() -> Status {
    if (name == "wikitext" || name == kFixed) {
      HX_RETURN_IF_ERROR(CheckUtf8(text));
      return name == kFixed ? builder.AddFixed(text)
                            : builder.AddWikitext(text);
    }
    if (name != "hellaswag") return builder.AddLines(text);
    HX_ASSIGN_OR_RETURN(auto questions, ParseHellaswag(text));
    return builder.AddQuestions(std::move(questions));
  };
  Status status = add();
  if (!status.ok()) return std::move(status).error().With(path);
  auto task = std::move(builder).Take();
  if (!task.ok()) return std::move(task).error().With(path);
  return task;
}

}  // namespace hexllm
