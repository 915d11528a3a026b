// What an evaluation measured: scores of items, and the figures that they give.
// Plain data, used by eval/run, reports and cli/. As JSON: eval/result_json.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/compare.h"
#include "eval/taps.h"
#include "eval/task.h"

namespace hexllm {

// The scores of one item's requests, in order, and what they are divided by.
struct ItemResult {
  uint64_t index = 0;
  std::vector<Score> scores = {};
  ItemFacts facts = {};
};

struct Figure {
  std::string name;  // "word_perplexity", "acc_norm": lm-evaluation-harness's
  double value = 0;
  std::optional<double> standard_error = {};
};

// The figures of a kind of task, in the order in which they are shown.
//   kDocuments      word_, byte_, token_perplexity = exp(nll / count), and
//                   bits_per_byte
//   kFixedWindows   token_perplexity
//   kChoices        acc, acc_norm (log-probabilities divided by the choice's
//                   code points), acc_bytes (by its bytes); of equal choices
//                   the first one is chosen
//   kContinuations  token_perplexity; greedy = share of continuations that
//                   greedy decoding would give
// Standard errors, of more than one value: of token_perplexity from the spread
// of the tokens' values, of accuracies s / sqrt(n) with the sample's standard
// deviation s. `items` is not empty.
std::vector<Figure> FiguresOf(TaskKind kind, std::span<const ItemResult> items);

// The index of the likeliest choice.
size_t BestChoice(const ItemResult& question);

struct StageResult {
  std::string stage;  // "fp", "qdq", "device"
  std::string recipe;
  uint64_t weight_bytes = 0;
  std::string digest = {};  // of what ran: recipe, calibration, chip's rounding
  std::vector<ItemResult> items = {};
  std::vector<Figure> figures = {};
};

struct TaskResult {
  std::string name;
  TaskKind kind = TaskKind::kDocuments;
  uint32_t window = 0;
  uint32_t stride = 0;
  uint32_t num_fewshot = 0;
  std::string bos;
  uint64_t items = 0;       // of the task, also when this is a shard of it
  std::string digest = {};  // of these items
  std::vector<StageResult> stages = {};
};

// Items with index % count == number - 1.
struct Shard {
  uint32_t number = 1;  // 1 to count
  uint32_t count = 1;
  bool Has(uint64_t index) const { return index % count == number - 1; }
  bool operator==(const Shard&) const = default;
};
// "i/n", and back: nothing unless 1 <= i <= n.
std::string ShardText(const Shard& shard);
std::optional<Shard> ParseShard(std::string_view text);

// Where one stage leaves another.
struct Bisection {
  std::string stage;
  std::string reference;
  std::string recipe = {};  // of the stage
  double tolerance_db = 0;
  std::vector<TapComparison> values;  // in the order of the graph, not empty
  std::optional<size_t> first = {};   // the first of them beyond the tolerance
};

// The recipe of a stage as JSON, for the report alone.
struct StageRecipe {
  std::string stage;
  std::string json;
};

struct EvalResult {
  std::string producer;
  std::string model;          // the manifest's name
  std::string model_id = {};  // the manifest's, in hexadecimal digits
  std::string mode;  // which graphs: "kv", "hybrid", ...; "" = the largest
  Shard shard = {};
  std::vector<TaskResult> tasks = {};
  std::vector<int32_t> prompt = {};  // of comparisons and bisections
  std::vector<StageComparison> comparisons = {};
  std::vector<Bisection> bisections = {};
  std::vector<StageRecipe> recipes = {};
};

// Tokens, words and bytes of the first stage's items.
struct Counts {
  uint64_t tokens = 0, words = 0, bytes = 0;
};
Counts CountsOf(const TaskResult& task);

}  // namespace hexllm
