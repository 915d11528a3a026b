// Which graphs of a model are built: their lengths, who looks tokens up, the
// parts of a step. Used by compile/compiler and compile/probe_target.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifact/manifest.h"
#include "base/status.h"
#include "compile/compiler.h"
#include "models/decoder.h"
#include "models/decoder_config.h"

namespace hexllm {

struct GraphPlan {
  int64_t context = 0;  // C
  int64_t prefill = 0;  // T of the prefill graph; 1 = none
  std::optional<artifact::LookaheadShape> lookahead = {};  // of its graph
  models::EmbeddingPlace embedding = models::EmbeddingPlace::kGraph;
  int64_t shards = 1;
};

// Fills defaults in. kUsage for lengths and numbers that do not fit each other
// or the model, naming the flag.
Result<GraphPlan> PlanGraphs(const CompileOptions& options,
                             const models::DecoderConfig& config);

// Prefill, lookahead, kv, each in order of its parts.
std::vector<models::GraphRequest> GraphRequests(const GraphPlan& plan,
                                                LogitsRows prefill_logits);

}  // namespace hexllm
