#include "eval/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

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
  Figure figure{"token_perplexity", std::exp(mean)};
  const double variance = std::max(0.0, sum.squares / n - mean * mean);
  if (sum.tokens > 1)
    figure.standard_error = std::exp(mean) * std::sqrt(variance / n);
  return figure;
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

std::optional<Shard> ParseShard(std::string_view text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto [slash, bad] = std::from_chars(text.data(), end, shard.number);
  if (bad != std::errc() || slash == end || *slash != '/') return std::nullopt;
  const auto [stop, error] = std::from_chars(slash + 1, end, shard.count);
  const bool fits = error == std::errc() && stop == end && 1 <= shard.number &&
                    shard.number <= shard.count;
  return fits ? std::optional(shard) : std::nullopt;
}

std::string ShardText(const Shard& shard) {
  return fmt::format("{}/{}", shard.number, shard.count);
}

}  // namespace hexllm
