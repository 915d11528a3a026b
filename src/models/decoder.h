// Builds the float graphs of a decoder-only transformer from its configuration
// and weights.
#pragma once

#include <span>

#include "base/graph_role.h"
#include "base/status.h"
#include "ir/graph.h"
#include "models/model_source.h"

namespace hexllm::models {

// One graph that is wanted: a step of T = step_tokens tokens with a context of
// C = context_tokens.
struct GraphRequest {
  GraphKind kind = GraphKind::kKv;
  int64_t step_tokens = 1;
  int64_t context_tokens = 1;
  LogitsRows logits = LogitsRows::kAll;
};

// The graphs share their constants, which point into source.checkpoint. Inputs:
// token, rope_cos[0], rope_sin[0], mask[0], k_in[l], v_in[l]; outputs: logits
// (unless kNone), k_out[l], v_out[l]. kBadInput for missing, misshapen or
// unknown tensors and a head that contradicts the configuration.
Result<ir::Module> BuildDecoder(const ModelSource& source,
                                std::span<const GraphRequest> requests);

}  // namespace hexllm::models
