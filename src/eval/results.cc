#include "eval/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "base/check.h"

namespace hexllm {
namespace {

Score SumOf(std::span<const ItemResult> items) {
  Score sum;
  for (const ItemResult& item : items) {
    for (const Score& score : item.scores) {
      sum.nll += score.nll;
      sum.squares += score.squares;
      sum.tokens += score.tokens;
    }
  }
  return sum;
}

Figure TokenPerplexity(const Score& sum) {
  const auto n = static_cast<double>(sum.tokens);
  const double mean = sum.nll / n;
  const double variance = std::max(0.0, sum.squares / n - mean * mean);
  return {"token_perplexity", std::exp(mean),
          std::exp(mean) * std::sqrt(variance / n)};
}

// Share of the items for which `holds`.
Figure ShareOf(std::string name, std::span<const ItemResult> items,
               const std::function<bool(const ItemResult&)>& holds) {
  const auto n = static_cast<double>(items.size());
  const auto right =
      static_cast<double>(std::count_if(items.begin(), items.end(), holds));
  const double share = right / n;
  Figure figure{std::move(name), share};
  if (items.size() > 1)
    figure.standard_error = std::sqrt(share * (1 - share) / (n - 1));
  return figure;
}

// The choice with the greatest log-probability divided by its `lengths`.
size_t BestBy(const ItemResult& question, std::span<const uint32_t> lengths) {
  const auto value = [&](size_t i) {
    const double length = lengths.empty() ? 1 : std::max(1U, lengths[i]);
    return -question.scores[i].nll / length;
  };
  size_t best = 0;
  for (size_t i = 1; i < question.scores.size(); ++i) {
    if (value(i) > value(best)) best = i;
  }
  return best;
}

std::vector<Figure> ChoiceFigures(std::span<const ItemResult> items) {
  const auto right = [](const auto& lengths) {
    return [lengths](const ItemResult& item) {
      return BestBy(item, lengths(item)) == item.facts.label;
    };
  };
  return {ShareOf("acc", items,
                  [](const ItemResult& item) {
                    return BestChoice(item) == item.facts.label;
                  }),
          ShareOf("acc_norm", items, right([](const ItemResult& item) {
                    return std::span(item.facts.choice_chars);
                  })),
          ShareOf("acc_bytes", items, right([](const ItemResult& item) {
                    return std::span(item.facts.choice_bytes);
                  }))};
}

std::vector<Figure> DocumentFigures(std::span<const ItemResult> items) {
  const Score sum = SumOf(items);
  double words = 0, bytes = 0;
  for (const ItemResult& item : items) {
    words += static_cast<double>(item.facts.words);
    bytes += static_cast<double>(item.facts.bytes);
  }
  return {{"word_perplexity", std::exp(sum.nll / words)},
          {"byte_perplexity", std::exp(sum.nll / bytes)},
          {"bits_per_byte", sum.nll / bytes / std::log(2.0)},
          TokenPerplexity(sum)};
}

// What parts of one run have in common.
auto HeadOf(const EvalResult& result) {
  return std::tie(result.producer, result.model, result.model_id, result.mode);
}
auto HeadOf(const TaskResult& task) {
  return std::tie(task.name, task.kind, task.window, task.stride,
                  task.num_fewshot, task.bos, task.items);
}
auto HeadOf(const StageResult& stage) {
  return std::tie(stage.stage, stage.recipe, stage.weight_bytes);
}

bool IsSameRun(const EvalResult& a, const EvalResult& b) {
  const auto same_stage = [](const StageResult& x, const StageResult& y) {
    return HeadOf(x) == HeadOf(y);
  };
  const auto same_task = [&](const TaskResult& x, const TaskResult& y) {
    return HeadOf(x) == HeadOf(y) &&
           std::equal(x.stages.begin(), x.stages.end(), y.stages.begin(),
                      y.stages.end(), same_stage);
  };
  return HeadOf(a) == HeadOf(b) &&
         std::equal(a.tasks.begin(), a.tasks.end(), b.tasks.begin(),
                    b.tasks.end(), same_task);
}

// Sorts the items of all parts and checks that none is missing or twice.
Status FinishStage(const TaskResult& task, StageResult& stage) {
  std::vector<ItemResult>& items = stage.items;
  std::sort(items.begin(), items.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  uint64_t in_place = 0;
  while (in_place < items.size() && items[in_place].index == in_place)
    ++in_place;
  if (in_place != task.items || items.size() != task.items || items.empty()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{} {}: expected each of {} items once, found {} "
                             "and item {} missing, twice or too many; give "
                             "one part of each shard",
                             task.name, stage.stage, task.items, items.size(),
                             in_place)};
  }
  stage.figures = FiguresOf(task.kind, items);
  return OkStatus();
}

}  // namespace

std::vector<Figure> FiguresOf(TaskKind kind,
                              std::span<const ItemResult> items) {
  HX_CHECK(!items.empty());
  switch (kind) {
    case TaskKind::kDocuments:
      return DocumentFigures(items);
    case TaskKind::kFixedWindows:
      return {TokenPerplexity(SumOf(items))};
    case TaskKind::kChoices:
      return ChoiceFigures(items);
    case TaskKind::kContinuations:
      break;
  }
  return {TokenPerplexity(SumOf(items)),
          ShareOf("greedy", items, [](const ItemResult& item) {
            return item.scores.front().greedy;
          })};
}

size_t BestChoice(const ItemResult& question) { return BestBy(question, {}); }

Counts CountsOf(const TaskResult& task) {
  Counts counts;
  if (task.stages.empty()) return counts;
  const std::vector<ItemResult>& items = task.stages.front().items;
  counts.tokens = SumOf(items).tokens;
  for (const ItemResult& item : items) {
    counts.words += item.facts.words;
    counts.bytes += item.facts.bytes;
  }
  return counts;
}

Result<EvalResult> MergeShards(std::vector<EvalResult> parts) {
  HX_CHECK(!parts.empty());
  EvalResult merged = std::move(parts.front());
  for (size_t p = 1; p < parts.size(); ++p) {
    if (!IsSameRun(merged, parts[p])) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("part {}: expected the same model, stages, tasks "
                      "and options as in part 1, found others",
                      p + 1)};
    }
    for (size_t t = 0; t < merged.tasks.size(); ++t) {
      for (size_t s = 0; s < merged.tasks[t].stages.size(); ++s) {
        auto& items = parts[p].tasks[t].stages[s].items;
        auto& all = merged.tasks[t].stages[s].items;
        all.insert(all.end(), std::make_move_iterator(items.begin()),
                   std::make_move_iterator(items.end()));
      }
    }
  }
  merged.shard = {};
  for (TaskResult& task : merged.tasks) {
    for (StageResult& stage : task.stages)
      HX_RETURN_IF_ERROR(FinishStage(task, stage));
  }
  return merged;
}

}  // namespace hexllm
