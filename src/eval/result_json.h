// Results of evaluations as JSON: what --json writes, `eval merge` reads, and
// the lines of a --resume file. docs/evaluation.md describes the form.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "eval/results.h"

namespace hexllm {

// "documents", "fixed_windows", "choices", "continuations".
std::string_view TaskKindName(TaskKind kind);

// One item: its index, scores (an array for each field) and facts.
Json ItemToJson(const ItemResult& item);
// The same back. kBadInput names what is missing, malformed or of an unequal
// number; for choices, two or more and the label one of them.
Result<ItemResult> ItemFromJson(const Json& json, TaskKind kind);

// Whether the scores of items are written too: shards and --log-samples.
enum class WithItems : uint8_t { kNo, kYes };
Json ResultToJson(const EvalResult& result, WithItems with_items);
// What merging needs of it: figures and comparisons are not read. kBadInput
// for what ResultToJson with items would not write.
Result<EvalResult> ResultFromJson(const Json& json);

}  // namespace hexllm
