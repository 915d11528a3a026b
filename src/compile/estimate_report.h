// Estimates for people and for tools, with what they are and are not. Used by
// cli/ and for the segment that artifacts keep.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "compile/estimate_graphs.h"

namespace hexllm {

// Tokens a second when a graph runs again and again: T / latency.
double TokensPerSecond(const GraphFigures& graph);

// A table with a row for each graph and SoC and, where a step runs several
// graphs in turn (the parts of a model), one for their sums, which alone has
// tokens a second; then the `top` ops of each graph that are busy longest. Says
// first that nothing was measured.
std::string DescribeModelEstimate(const ModelEstimate& estimate, size_t top);

// docs/formats.md. All ops.
Json EstimateToJson(const ModelEstimate& estimate);
// The same back. kBadInput names what is missing or no such number.
Result<ModelEstimate> EstimateFromJson(const Json& json);

}  // namespace hexllm
