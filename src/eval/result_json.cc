#include "eval/result_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/quote.h"

namespace hexllm {
namespace {

constexpr std::string_view kKinds[] = {"documents", "fixed_windows", "choices",
                                       "continuations"};
constexpr int64_t kFormat = 1;

Error Bad(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

Result<const Json*> GetArray(const Json& json, std::string_view key) {
  const Json* member = FindMember(json, key);
  if (member != nullptr && member->is_array()) return member;
  return Bad(fmt::format("{}: expected an array, found {}", key,
                         member == nullptr ? "none" : JsonTypeName(*member)));
}

template <typename T>
Result<T> GetCount(const Json& json, std::string_view key) {
  HX_ASSIGN_OR_RETURN(const int64_t value, GetInt(json, key));
  if (value >= 0 && static_cast<uint64_t>(value) <=
                        static_cast<uint64_t>(std::numeric_limits<T>::max()))
    return static_cast<T>(value);
  return Bad(fmt::format("{}: expected a count, found {}", key, value));
}

// Of what is not empty.
template <typename T>
Result<T> GetSize(const Json& json, std::string_view key) {
  HX_ASSIGN_OR_RETURN(const T value, GetCount<T>(json, key));
  if (value > 0) return value;
  return Bad(fmt::format("{}: expected 1 or more, found 0", key));
}

Result<std::vector<uint32_t>> GetCounts(const Json& json, std::string_view key,
                                        size_t size) {
  HX_ASSIGN_OR_RETURN(const Json* array, GetArray(json, key));
  std::vector<uint32_t> counts;
  for (const Json& value : *array) {
    HX_ASSIGN_OR_RETURN(
        const auto count,
        GetSize<uint32_t>(Json{{std::string(key), value}}, key));
    counts.push_back(count);
  }
  if (counts.size() == size) return counts;
  return Bad(fmt::format("{}: expected {} numbers, found {}", key, size,
                         counts.size()));
}

// A sum of negative log-likelihoods, or of their squares, whose sum over all
// items is a number again.
Result<double> GetSum(const Json& json, std::string_view key) {
  constexpr double kMost = 1e80;  // of f32 logits, squared
  HX_ASSIGN_OR_RETURN(const double sum, GetNumber(json, key));
  if (sum >= 0 && sum <= kMost) return sum;
  return Bad(
      fmt::format("{}: expected 0 to {:g}, found {:g}", key, kMost, sum));
}

Result<Score> ScoreFromJson(const Json& json) {
  Score score;
  HX_ASSIGN_OR_RETURN(score.nll, GetSum(json, "nll"));
  HX_ASSIGN_OR_RETURN(score.squares, GetSum(json, "squares"));
  HX_ASSIGN_OR_RETURN(score.tokens, GetSize<uint64_t>(json, "tokens"));
  HX_ASSIGN_OR_RETURN(score.greedy, GetBool(json, "greedy"));
  return score;
}

Status ReadChoiceFacts(const Json& json, size_t choices, ItemFacts& facts) {
  HX_ASSIGN_OR_RETURN(facts.label, GetCount<uint32_t>(json, "label"));
  HX_ASSIGN_OR_RETURN(facts.choice_chars, GetCounts(json, "chars", choices));
  HX_ASSIGN_OR_RETURN(facts.choice_bytes, GetCounts(json, "bytes", choices));
  if (choices >= 2 && facts.label < choices) return OkStatus();
  return Bad(
      fmt::format("label: expected one of two choices or more, found {} "
                  "of {}",
                  facts.label, choices));
}

Json FigureToJson(const Figure& figure) {
  Json json = {{"value", figure.value}};
  if (figure.standard_error) json["standard_error"] = *figure.standard_error;
  return json;
}

Json StageToJson(const StageResult& stage, WithItems with_items) {
  Json json = {{"stage", stage.stage},
               {"recipe", stage.recipe},
               {"weight_bytes", stage.weight_bytes},
               {"digest", stage.digest}};
  for (const Figure& figure : stage.figures)
    json["figures"][figure.name] = FigureToJson(figure);
  if (with_items == WithItems::kNo) return json;
  json["items"] = Json::array();
  for (const ItemResult& item : stage.items)
    json["items"].push_back(ItemToJson(item));
  return json;
}

Json TaskToJson(const TaskResult& task, WithItems with_items) {
  const Counts counts = CountsOf(task);
  Json json = {{"task", task.name},     {"kind", TaskKindName(task.kind)},
               {"bos", task.bos},       {"window", task.window},
               {"stride", task.stride}, {"num_fewshot", task.num_fewshot},
               {"items", task.items},   {"counted_tokens", counts.tokens},
               {"digest", task.digest}};
  if (task.kind == TaskKind::kDocuments) {
    json["words"] = counts.words;
    json["bytes"] = counts.bytes;
  }
  json["stages"] = Json::array();
  for (const StageResult& stage : task.stages)
    json["stages"].push_back(StageToJson(stage, with_items));
  return json;
}

Json ComparisonToJson(const StageComparison& comparison) {
  Json json = {
      {"stage", comparison.stage},     {"reference", comparison.reference},
      {"recipe", comparison.recipe},   {"tokens", comparison.positions.size()},
      {"sqnr_db", comparison.sqnr_db}, {"mean_kld", comparison.mean_kld},
      {"top1_flips", comparison.flips}};
  json["positions"] = Json::array();
  for (const PositionComparison& position : comparison.positions) {
    json["positions"].push_back({{"sqnr_db", position.sqnr_db},
                                 {"kld", position.kld},
                                 {"top1_flip", position.top1_flip}});
  }
  json["layers"] = Json::array();
  for (const ValueComparison& layer : comparison.layers)
    json["layers"].push_back(
        {{"name", layer.name}, {"sqnr_db", layer.sqnr_db}});
  return json;
}

Json TapToJson(const TapComparison& value) {
  Json json = {{"name", value.name}, {"sqnr_db", value.sqnr_db}};
  if (value.worst_channel) {
    json["worst_channel"] = *value.worst_channel;
    json["worst_channel_db"] = value.worst_channel_db;
    json["worst_channel_share"] = value.worst_channel_share;
  }
  return json;
}

Json BisectionToJson(const Bisection& bisection) {
  Json json = {{"stage", bisection.stage},
               {"reference", bisection.reference},
               {"recipe", bisection.recipe},
               {"tolerance_db", bisection.tolerance_db},
               {"first", nullptr}};
  if (bisection.first)
    json["first"] = TapToJson(bisection.values[*bisection.first]);
  json["values"] = Json::array();
  for (const TapComparison& value : bisection.values)
    json["values"].push_back(TapToJson(value));
  return json;
}

Result<StageResult> StageFromJson(const Json& json, TaskKind kind) {
  StageResult stage;
  HX_ASSIGN_OR_RETURN(stage.stage, GetString(json, "stage"));
  HX_ASSIGN_OR_RETURN(stage.recipe, GetString(json, "recipe"));
  HX_ASSIGN_OR_RETURN(stage.weight_bytes,
                      GetCount<uint64_t>(json, "weight_bytes"));
  HX_ASSIGN_OR_RETURN(stage.digest, GetString(json, "digest"));
  HX_ASSIGN_OR_RETURN(const Json* items, GetArray(json, "items"));
  for (const Json& item : *items) {
    HX_ASSIGN_OR_RETURN(ItemResult read, ItemFromJson(item, kind));
    stage.items.push_back(std::move(read));
  }
  return stage;
}

Result<TaskResult> TaskFromJson(const Json& json) {
  TaskResult task;
  HX_ASSIGN_OR_RETURN(task.name, GetString(json, "task"));
  HX_ASSIGN_OR_RETURN(const std::string kind, GetString(json, "kind"));
  const auto* const found =
      std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (found == std::end(kKinds))
    return Bad(
        fmt::format("kind: expected one of a task, found {}", Quoted(kind)));
  task.kind = static_cast<TaskKind>(found - std::begin(kKinds));
  HX_ASSIGN_OR_RETURN(task.bos, GetString(json, "bos"));
  HX_ASSIGN_OR_RETURN(task.window, GetCount<uint32_t>(json, "window"));
  HX_ASSIGN_OR_RETURN(task.stride, GetCount<uint32_t>(json, "stride"));
  HX_ASSIGN_OR_RETURN(task.num_fewshot,
                      GetCount<uint32_t>(json, "num_fewshot"));
  HX_ASSIGN_OR_RETURN(task.items, GetCount<uint64_t>(json, "items"));
  HX_ASSIGN_OR_RETURN(task.digest, GetString(json, "digest"));
  HX_ASSIGN_OR_RETURN(const Json* stages, GetArray(json, "stages"));
  for (const Json& stage : *stages) {
    HX_ASSIGN_OR_RETURN(StageResult read, StageFromJson(stage, task.kind));
    task.stages.push_back(std::move(read));
  }
  return task;
}

}  // namespace

std::string_view TaskKindName(TaskKind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

Json ItemToJson(const ItemResult& item) {
  Json json = {{"item", item.index}};
  json["scores"] = Json::array();
  for (const Score& score : item.scores) {
    json["scores"].push_back({{"nll", score.nll},
                              {"squares", score.squares},
                              {"tokens", score.tokens},
                              {"greedy", score.greedy}});
  }
  const ItemFacts& facts = item.facts;
  if (!facts.choice_chars.empty()) {
    json["label"] = facts.label;
    json["chars"] = facts.choice_chars;
    json["bytes"] = facts.choice_bytes;
  } else if (facts.words > 0) {
    json["words"] = facts.words;
    json["bytes"] = facts.bytes;
  }
  return json;
}

Result<ItemResult> ItemFromJson(const Json& json, TaskKind kind) {
  ItemResult item;
  HX_ASSIGN_OR_RETURN(item.index, GetCount<uint64_t>(json, "item"));
  HX_ASSIGN_OR_RETURN(const Json* scores, GetArray(json, "scores"));
  for (const Json& score : *scores) {
    HX_ASSIGN_OR_RETURN(const Score read, ScoreFromJson(score));
    item.scores.push_back(read);
  }
  if (item.scores.empty())
    return Bad("scores: expected at least one, found none");
  if (kind == TaskKind::kDocuments) {
    HX_ASSIGN_OR_RETURN(item.facts.words, GetSize<uint64_t>(json, "words"));
    HX_ASSIGN_OR_RETURN(item.facts.bytes, GetSize<uint64_t>(json, "bytes"));
  } else if (kind == TaskKind::kChoices) {
    HX_RETURN_IF_ERROR(ReadChoiceFacts(json, item.scores.size(), item.facts));
  }
  return item;
}

Json ResultToJson(const EvalResult& result, WithItems with_items) {
  Json json = {{"version", kFormat},
               {"producer", result.producer},
               {"model", result.model},
               {"model_id", result.model_id},
               {"mode", result.mode}};
  if (result.shard.count > 1) {
    json["shard"] = ShardText(result.shard);
  }
  json["tasks"] = Json::array();
  for (const TaskResult& task : result.tasks)
    json["tasks"].push_back(TaskToJson(task, with_items));
  if (!result.prompt.empty()) json["prompt_ids"] = result.prompt;
  for (const StageComparison& comparison : result.comparisons)
    json["comparisons"].push_back(ComparisonToJson(comparison));
  for (const Bisection& bisection : result.bisections)
    json["bisections"].push_back(BisectionToJson(bisection));
  return json;
}

Result<EvalResult> ResultFromJson(const Json& json) {
  HX_ASSIGN_OR_RETURN(const int64_t version, GetInt(json, "version"));
  if (version != kFormat)
    return Bad(fmt::format("version: expected {}, found {}", kFormat, version));
  EvalResult result;
  HX_ASSIGN_OR_RETURN(result.producer, GetString(json, "producer"));
  HX_ASSIGN_OR_RETURN(result.model, GetString(json, "model"));
  HX_ASSIGN_OR_RETURN(result.model_id, GetString(json, "model_id"));
  HX_ASSIGN_OR_RETURN(result.mode, GetString(json, "mode"));
  HX_ASSIGN_OR_RETURN(const std::string shard,
                      GetStringOr(json, "shard", "1/1"));
  const auto parsed = ParseShard(shard);
  if (!parsed)
    return Bad(fmt::format("shard: expected i/n, found {}", Quoted(shard)));
  result.shard = *parsed;
  HX_ASSIGN_OR_RETURN(const Json* tasks, GetArray(json, "tasks"));
  for (const Json& task : *tasks) {
    HX_ASSIGN_OR_RETURN(TaskResult read, TaskFromJson(task));
    result.tasks.push_back(std::move(read));
  }
  return result;
}

}  // namespace hexllm
