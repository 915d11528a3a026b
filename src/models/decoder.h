// Builds the float graphs of a decoder-only transformer from its configuration
// and weights.
#pragma once

#include <span>
#include <string_view>

#include "base/graph_role.h"
#include "base/status.h"
#include "ir/graph.h"
#include "models/model_source.h"

namespace hexllm::models {

// Who looks tokens up in the embedding table.
enum class EmbeddingPlace : uint8_t {
  kGraph,  // the graph, whose input is token
  kHost,   // the runtime: the graph's input is embedding
};

// The constant of linears that rotate heads (DecoderConfig::head_rotation).
inline constexpr std::string_view kHeadRotation = "model.head_rotation";

// One graph that is wanted: a step of T = step_tokens tokens with a context of
// C = context_tokens, or the part of one.
struct GraphRequest {
  GraphKind kind = GraphKind::kKv;
  int64_t step_tokens = 1;
  int64_t context_tokens = 1;
  LogitsRows logits = LogitsRows::kAll;
  EmbeddingPlace embedding = EmbeddingPlace::kGraph;
  // Part `shard` of `shards` (at most L): layers l with shard * L / shards <= l
  // < (shard + 1) * L / shards. The first part has the embedding, the last one
  // the head.
  int64_t shard = 0;
  int64_t shards = 1;
  // Rows of the embedding table and of the head: a graph that nobody runs needs
  // only the first few. 0 = V.
  int64_t vocab_rows = 0;
};

// The layers of a request of a model with L = `layers`: first to end - 1.
int64_t FirstLayer(const GraphRequest& request, int64_t layers);
int64_t EndLayer(const GraphRequest& request, int64_t layers);

// The graphs share their constants, which point into source.checkpoint. Inputs:
// token or embedding or hidden_in; rope_cos[i], rope_sin[i] and mask[j] that
// their layers use; k_in[l], v_in[l]; outputs: logits (unless kNone) or
// hidden_out, k_out[l], v_out[l]. Values of embedding and hidden_in have the
// name of the value that is passed. kBadInput for missing or misshapen tensors,
// a head that contradicts the configuration and, when all layers were asked
// for, unknown tensors.
Result<ir::Module> BuildDecoder(const ModelSource& source,
                                std::span<const GraphRequest> requests);

// The embedding table [V,M]. kBadInput when it is missing or misshapen.
Result<ir::Constant> EmbeddingTable(const ModelSource& source);

}  // namespace hexllm::models
