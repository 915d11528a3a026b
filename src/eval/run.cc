#include "eval/run.h"

#include <fmt/format.h>

#include "eval/result_json.h"

namespace hexllm {
namespace {

int64_t TokensOf(const TaskItem& item) {
  size_t tokens = 0;
  for (const Request& request : item.requests) tokens += request.ids.size() - 1;
  return static_cast<int64_t>(tokens);
}

void AddRequests(const TaskItem& item, Hasher& hasher) {
  for (const Request& request : item.requests) {
    hasher.AddNumbers(std::span(request.ids));
    hasher.AddNumber(request.first_counted);
  }
}

// Of all that the scores of `item` depend on.
std::string DigestOfItem(const Digest& identity, const TaskItem& item) {
  Hasher hasher;
  hasher.Add(identity);
  AddRequests(item, hasher);
  return DigestToHex(hasher.Finish());
}

// True when `stored` has as many scores, of as many tokens, as `item`.
bool Fits(const ItemResult& stored, const TaskItem& item) {
  if (stored.scores.size() != item.requests.size()) return false;
  for (size_t i = 0; i < stored.scores.size(); ++i) {
    const Request& request = item.requests[i];
    if (stored.scores[i].tokens != request.ids.size() - request.first_counted)
      return false;
  }
  return true;
}

Result<ItemResult> FromJournal(const Json& json, const Task& task,
                               const TaskItem& item,
                               const std::string& digest) {
  HX_ASSIGN_OR_RETURN(ItemResult stored, ItemFromJson(json, task.kind));
  HX_ASSIGN_OR_RETURN(const std::string found, GetString(json, "digest"));
  if (found != digest || !Fits(stored, item)) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{} item {}: expected the scores of its {} "
                             "requests, found others; the task's text, the "
                             "model or the recipe has changed, choose another "
                             "--resume file",
                             task.name, item.index, item.requests.size())};
  }
  stored.facts = item.facts;
  return stored;
}

Result<ItemResult> RunItem(Session& session, const Task& task,
                           const TaskItem& item) {
  ItemResult result{.index = item.index, .facts = item.facts};
  for (const Request& request : item.requests) {
    auto score = ScoreRequest(session, request);
    if (!score.ok()) {
      return std::move(score).error().With(
          fmt::format("{} item {}", task.name, item.index));
    }
    result.scores.push_back(*score);
  }
  return result;
}

}  // namespace

std::string DigestOfItems(const Task& task) {
  Hasher hasher;
  for (const TaskItem& item : task.items) {
    AddRequests(item, hasher);
    hasher.AddNumber(item.facts.label);
    hasher.AddNumber(item.facts.words);
    hasher.AddNumber(item.facts.bytes);
    hasher.AddNumbers<uint32_t>(item.facts.choice_chars);
    hasher.AddNumbers<uint32_t>(item.facts.choice_bytes);
  }
  return DigestToHex(hasher.Finish());
}

Result<std::vector<ItemResult>> RunTask(Session& session, const Task& task,
                                        const RunOptions& options,
                                        ProgressSink& progress) {
  if (session.context_tokens() < task.window) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("--window: expected at most {}, the context of the "
                    "artifact, found {}",
                    session.context_tokens(), task.window)};
  }
  std::vector<const TaskItem*> items;
  int64_t total = 0;
  for (const TaskItem& item : task.items) {
    if (!options.shard.Has(item.index)) continue;
    items.push_back(&item);
    total += TokensOf(item);
  }
  progress.Begin(fmt::format("{} {}", task.name, options.stage), "tokens",
                 total);
  std::vector<ItemResult> results;
  int64_t done = 0;
  for (const TaskItem* item : items) {
    const std::string digest = DigestOfItem(options.identity, *item);
    const Json* stored =
        options.journal == nullptr
            ? nullptr
            : options.journal->Find(task.name, options.stage, item->index);
    if (stored != nullptr) {
      auto read = FromJournal(*stored, task, *item, digest);
      if (!read.ok())
        return std::move(read).error().With(options.journal->path());
      results.push_back(std::move(read).value());
    } else {
      HX_ASSIGN_OR_RETURN(ItemResult result, RunItem(session, task, *item));
      if (options.journal != nullptr)
        HX_RETURN_IF_ERROR(
            options.journal->Add(task.name, options.stage, digest, result));
      results.push_back(std::move(result));
    }
    done += TokensOf(*item);
    progress.Update(done);
  }
  return results;
}

}  // namespace hexllm
