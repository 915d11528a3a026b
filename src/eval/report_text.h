// Results of evaluations for people (lines of text) and for tables (CSV). Used
// by cli/, which prints them. HTML: eval/report_html.h.
#pragma once

#include <cstddef>
#include <string>

#include "eval/results.h"

namespace hexllm {

// "wikitext qdq (16a8w, weights 134.7 MB): word_perplexity 31.2041,
// token_perplexity 19.1213 +- 0.3012 (+0.23% of fp)": the task's stage number
// `stage`, compared with its first one. Ends with a line break.
std::string StageLine(const TaskResult& task, size_t stage);

// What the figures are per: items, tokens, words, windows, BOS policy.
std::string FootLine(const TaskResult& task, const Shard& shard);
// The same without name and shard: "20 documents, 104000 tokens counted, ...".
std::string DescribeMeasure(const TaskResult& task);

// "qdq against fp on 64 tokens: SQNR 31.20 dB, ...".
std::string ComparisonLine(const StageComparison& comparison);

// "qdq leaves fp (below 20 dB) at layer 3, model.layers.3.mlp.up_proj: ...".
std::string BisectionLine(const Bisection& bisection);

// One row for each figure of each stage of each task, and for each figure of a
// comparison; RFC 4180, with a header.
std::string ResultToCsv(const EvalResult& result);

}  // namespace hexllm
