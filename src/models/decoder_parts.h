// The parts of a decoder layer and the inputs that they share. One file per
// part: decoder_inputs.cc, decoder_attention.cc, decoder_mlp.cc. Internal to
// models/decoder*.
#pragma once

#include <optional>
#include <vector>

#include "models/graph_builder.h"

namespace hexllm::models {

// The inputs of a graph. Those of layers are by place: layer - first_layer().
struct StepInputs {
  // Tokens [T], or embeddings or hidden states [T,M].
  ir::ValueId first;
  // By row of DecoderConfig::ropes and ::windows; nothing where no layer of the
  // graph uses it.
  std::vector<std::optional<ir::ValueId>> cos, sin, masks;
  std::vector<ir::ValueId> k_in, v_in;
};

// True when the graph looks tokens up in the embedding table.
bool TakesTokens(const GraphBuilder& builder);
StepInputs AddStepInputs(GraphBuilder& builder);

// Names of the value that the embedding table gives.
inline constexpr const char* kEmbedded = "model.embed_tokens";

// What the attention of a layer makes.
struct AttentionOutputs {
  ir::ValueId out;           // [T,M]
  ir::ValueId k_new, v_new;  // [G,D,T], [G,T,D]
};
Result<AttentionOutputs> AddAttention(GraphBuilder& builder,
                                      const StepInputs& inputs, int64_t layer,
                                      ir::ValueId x);

// x[T,M] -> [T,M].
Result<ir::ValueId> AddMlp(GraphBuilder& builder, int64_t layer, ir::ValueId x);

}  // namespace hexllm::models
