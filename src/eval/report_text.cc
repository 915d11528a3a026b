#include "eval/report_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/quote.h"

namespace hexllm {
namespace {

bool IsPerplexity(const Figure& figure) {
  return figure.name.ends_with("perplexity");
}

// " (+0.23% of fp)".
std::string Difference(const Figure& figure, const StageResult& first) {
  for (const Figure& other : first.figures) {
    if (other.name != figure.name || other.value == 0) continue;
    return fmt::format(" ({:+.2f}% of {})",
                       (figure.value / other.value - 1) * 100, first.stage);
  }
  return "";
}

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos)
    return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string CsvRow(const std::vector<std::string>& fields) {
  std::vector<std::string> escaped;
  for (const std::string& field : fields) escaped.push_back(CsvField(field));
  return fmt::format("{}\r\n", fmt::join(escaped, ","));
}

}  // namespace

std::string StageLine(const TaskResult& task, size_t stage) {
  const StageResult& result = task.stages[stage];
  std::vector<std::string> figures;
  for (const Figure& figure : result.figures) {
    std::string text = fmt::format("{} {:.4f}", figure.name, figure.value);
    if (figure.standard_error)
      text += fmt::format(" +- {:.4f}", *figure.standard_error);
    if (stage > 0 && IsPerplexity(figure))
      text += Difference(figure, task.stages.front());
    figures.push_back(std::move(text));
  }
  if (figures.empty()) figures.push_back("no items of this shard");
  return fmt::format("{} {} ({}, weights {:.1f} MB): {}\n",
                     Printable(task.name), result.stage, result.recipe,
                     static_cast<double>(result.weight_bytes) / 1e6,
                     fmt::join(figures, ", "));
}

std::string DescribeMeasure(const TaskResult& task) {
  const Counts counts = CountsOf(task);
  const size_t items =
      task.stages.empty() ? 0 : task.stages.front().items.size();
  switch (task.kind) {
    case TaskKind::kDocuments:
      return fmt::format(
          "{} documents, {} tokens counted, {} words, {} bytes; rolling "
          "windows of {}, stride {}, {}",
          items, counts.tokens, counts.words, counts.bytes, task.window,
          task.stride, task.bos);
    case TaskKind::kFixedWindows:
      return fmt::format(
          "{} windows, {} tokens counted; windows of {}, stride "
          "{}, {}",
          items, counts.tokens, task.window, task.stride, task.bos);
    case TaskKind::kChoices:
      return fmt::format(
          "{} questions, {} tokens counted; {}-shot, at most {} "
          "tokens each, {}",
          items, counts.tokens, task.num_fewshot, task.window, task.bos);
    case TaskKind::kContinuations:
      break;
  }
  return fmt::format(
      "{} continuations, {} tokens counted; at most {} tokens each, {}", items,
      counts.tokens, task.window, task.bos);
}

std::string FootLine(const TaskResult& task, const Shard& shard) {
  const std::string part = shard.count == 1 ? "" : " shard " + ShardText(shard);
  return fmt::format("{}{}: {}\n", Printable(task.name), part,
                     DescribeMeasure(task));
}

std::string ComparisonLine(const StageComparison& comparison) {
  return fmt::format(
      "{} against {} on {} tokens: SQNR {:.2f} dB, mean KL divergence {:.6f} "
      "nats, top-1 flips {}\n",
      comparison.stage, comparison.reference, comparison.positions.size(),
      comparison.sqnr_db, comparison.mean_kld, comparison.flips);
}

std::string BisectionLine(const Bisection& bisection) {
  const std::vector<TapComparison>& values = bisection.values;
  if (!bisection.first) {
    const auto worst = std::min_element(
        values.begin(), values.end(),
        [](const auto& a, const auto& b) { return a.sqnr_db < b.sqnr_db; });
    return fmt::format(
        "{} stays within {:g} dB of {} in all {} values; the "
        "furthest is {} with {:.2f} dB\n",
        bisection.stage, bisection.tolerance_db, bisection.reference,
        values.size(), Printable(worst->name), worst->sqnr_db);
  }
  const TapComparison& at = values[*bisection.first];
  const auto layer = LayerOf(at.name);
  std::string line =
      fmt::format("{} leaves {} (below {:g} dB) at {}{}: SQNR {:.2f} dB",
                  bisection.stage, bisection.reference, bisection.tolerance_db,
                  layer ? fmt::format("layer {}, ", *layer) : "",
                  Printable(at.name), at.sqnr_db);
  if (at.worst_channel) {
    line += fmt::format("; its channel {} {:.2f} dB, with {:.0f}% of the noise",
                        *at.worst_channel, at.worst_channel_db,
                        at.worst_channel_share * 100);
  }
  if (*bisection.first > 0) {
    const TapComparison& before = values[*bisection.first - 1];
    line += fmt::format("; before it {} {:.2f} dB", Printable(before.name),
                        before.sqnr_db);
  }
  return line + "\n";
}

std::string ResultToCsv(const EvalResult& result) {
  std::string csv =
      CsvRow({"model", "mode", "shard", "task", "stage", "recipe", "figure",
              "value", "standard_error", "window", "stride", "num_fewshot",
              "bos", "items", "counted_tokens"});
  const std::string shard = ShardText(result.shard);
  for (const TaskResult& task : result.tasks) {
    const std::string tokens = fmt::to_string(CountsOf(task).tokens);
    for (const StageResult& stage : task.stages) {
      for (const Figure& figure : stage.figures) {
        csv += CsvRow({result.model, result.mode, shard, task.name, stage.stage,
                       stage.recipe, figure.name, fmt::to_string(figure.value),
                       figure.standard_error
                           ? fmt::to_string(*figure.standard_error)
                           : "",
                       fmt::to_string(task.window), fmt::to_string(task.stride),
                       fmt::to_string(task.num_fewshot), task.bos,
                       fmt::to_string(stage.items.size()), tokens});
      }
    }
  }
  for (const StageComparison& comparison : result.comparisons) {
    const auto row = [&](const char* figure, double value) {
      csv +=
          CsvRow({result.model, result.mode, shard, "sqnr", comparison.stage,
                  comparison.recipe, figure, fmt::to_string(value), "", "", "",
                  "", "", "", fmt::to_string(comparison.positions.size())});
    };
    row("sqnr_db", comparison.sqnr_db);
    row("mean_kld", comparison.mean_kld);
    row("top1_flips", static_cast<double>(comparison.flips));
  }
  return csv;
}

}  // namespace hexllm
