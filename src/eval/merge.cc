#include "eval/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/quote.h"
#include "eval/result_json.h"

namespace hexllm {
namespace {

// What parts of one run have in common, and what it is called.
struct Fact {
  std::string name;
  std::string value;
};

std::vector<Fact> FactsOf(const EvalResult& result) {
  std::vector<Fact> facts = {{"producer", result.producer},
                             {"model", result.model},
                             {"model_id", result.model_id},
                             {"mode", result.mode},
                             {"shards", fmt::to_string(result.shard.count)}};
  for (const TaskResult& task : result.tasks) {
    const auto add = [&](std::string_view name, std::string value) {
      facts.push_back(
          {fmt::format("{} {}", task.name, name), std::move(value)});
    };
    facts.push_back({"task", task.name});
    add("kind", std::string(TaskKindName(task.kind)));
    add("window", fmt::to_string(task.window));
    add("stride", fmt::to_string(task.stride));
    add("num_fewshot", fmt::to_string(task.num_fewshot));
    add("bos", task.bos);
    add("items", fmt::to_string(task.items));
    add("digest of the items", task.digest);
    for (const StageResult& stage : task.stages) {
      add("stage", stage.stage);
      add(stage.stage + " recipe", stage.recipe);
      add(stage.stage + " weight_bytes", fmt::to_string(stage.weight_bytes));
      add(stage.stage + " digest of recipe, calibration and chip",
          stage.digest);
    }
  }
  return facts;
}

Status CheckSameRun(const ShardPart& first, const ShardPart& other) {
  const std::vector<Fact> wanted = FactsOf(first.result);
  const std::vector<Fact> found = FactsOf(other.result);
  for (size_t i = 0; i < std::max(wanted.size(), found.size()); ++i) {
    const auto value = [i](const std::vector<Fact>& facts) {
      return i < facts.size() ? Quoted(facts[i].value) : "none";
    };
    if (i < wanted.size() && i < found.size() &&
        wanted[i].name == found[i].name && wanted[i].value == found[i].value)
      continue;
    return Error{
        ErrorCode::kBadInput,
        fmt::format("{}: {}: expected {} as in {}, found {}; give parts of "
                    "one run",
                    other.path, i < wanted.size() ? wanted[i].name : "task",
                    value(wanted), first.path, value(found))};
  }
  return OkStatus();
}

Status CheckShards(const std::vector<ShardPart>& parts) {
  const uint32_t count = parts.front().result.shard.count;
  for (uint32_t number = 1; number <= count; ++number) {
    const ShardPart* seen = nullptr;
    for (const ShardPart& part : parts) {
      if (part.result.shard.number != number) continue;
      if (seen != nullptr) {
        return Error{ErrorCode::kBadInput,
                     fmt::format("{}: expected one part of each shard, found "
                                 "shard {}/{} in {} as well",
                                 part.path, number, count, seen->path)};
      }
      seen = &part;
    }
    if (seen == nullptr) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("expected one part of each shard, found none "
                               "of shard {}/{}",
                               number, count)};
    }
  }
  return OkStatus();
}

// Sorts the items of all parts and checks that none is missing or twice.
Status FinishStage(const TaskResult& task, StageResult& stage) {
  std::vector<ItemResult>& items = stage.items;
  std::ranges::sort(items, {}, &ItemResult::index);
  uint64_t in_place = 0;
  while (in_place < items.size() && items[in_place].index == in_place)
    ++in_place;
  if (in_place != task.items || items.size() != task.items || items.empty()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{} {}: expected each of {} items once, found {} "
                             "and item {} missing, twice or too many; a part "
                             "is damaged",
                             task.name, stage.stage, task.items, items.size(),
                             in_place)};
  }
  stage.figures = FiguresOf(task.kind, items);
  return OkStatus();
}

void MoveItems(EvalResult& from, EvalResult& to) {
  for (size_t t = 0; t < to.tasks.size(); ++t) {
    for (size_t s = 0; s < to.tasks[t].stages.size(); ++s) {
      auto& items = from.tasks[t].stages[s].items;
      auto& all = to.tasks[t].stages[s].items;
      all.insert(all.end(), std::make_move_iterator(items.begin()),
                 std::make_move_iterator(items.end()));
    }
  }
}

}  // namespace

Result<EvalResult> MergeShards(std::vector<ShardPart> parts) {
  HX_CHECK(!parts.empty());
  for (const ShardPart& part : parts)
    HX_RETURN_IF_ERROR(CheckSameRun(parts.front(), part));
  HX_RETURN_IF_ERROR(CheckShards(parts));
  EvalResult merged = std::move(parts.front().result);
  for (size_t p = 1; p < parts.size(); ++p) MoveItems(parts[p].result, merged);
  merged.shard = {};
  for (TaskResult& task : merged.tasks) {
    for (StageResult& stage : task.stages)
      HX_RETURN_IF_ERROR(FinishStage(task, stage));
  }
  return merged;
}

}  // namespace hexllm
