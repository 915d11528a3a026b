// Graph inputs: tokens, RoPE rows, masks, caches.
#include "models/decoder_parts.h"

namespace hexllm::models {
namespace {

using ir::ValueId;

// What the step begins with; hidden states are called what they were called
// where they were made.
ValueId AddFirstInput(GraphBuilder& builder) {
  ir::Graph& graph = builder.graph();
  const int64_t tokens = builder.step_tokens();
  if (TakesTokens(builder))
    return graph.AddInput({RoleKind::kToken}, {DType::kI32, {tokens}});
  const bool host = builder.first_layer() == 0;
  const ValueId id =
      graph.AddInput({host ? RoleKind::kEmbedding : RoleKind::kHiddenIn},
                     {DType::kF32, {tokens, builder.config().hidden}});
  graph[id].name = host ? kEmbedded : LayerName(builder.first_layer() - 1);
  return id;
}

// The RoPE tables and masks that layers of this graph use, in order.
void AddShared(GraphBuilder& builder, StepInputs& inputs) {
  const DecoderConfig& config = builder.config();
  const int64_t tokens = builder.step_tokens();
  std::vector<bool> ropes(config.ropes.size());
  std::vector<bool> windows(config.windows.size());
  for (int64_t l = builder.first_layer(); l < builder.end_layer(); ++l) {
    const LayerConfig& layer = config.layer_configs[static_cast<size_t>(l)];
    if (layer.rope) ropes[*layer.rope] = true;
    windows[layer.window] = true;
  }
  ir::Graph& graph = builder.graph();
  inputs.cos.resize(ropes.size());
  inputs.sin.resize(ropes.size());
  inputs.masks.resize(windows.size());
  for (size_t i = 0; i < ropes.size(); ++i) {
    if (!ropes[i]) continue;
    const ir::TensorType type = {DType::kF32,
                                 {tokens, config.ropes[i].rotary_dim / 2}};
    const auto index = static_cast<int32_t>(i);
    inputs.cos[i] = graph.AddInput({RoleKind::kRopeCos, index}, type);
    inputs.sin[i] = graph.AddInput({RoleKind::kRopeSin, index}, type);
  }
  for (size_t j = 0; j < windows.size(); ++j) {
    if (!windows[j]) continue;
    inputs.masks[j] = graph.AddInput(
        {RoleKind::kMask, static_cast<int32_t>(j)},
        {DType::kF32, {tokens, builder.request().context_tokens}});
  }
}

}  // namespace

bool TakesTokens(const GraphBuilder& builder) {
  return builder.first_layer() == 0 &&
         builder.request().embedding == EmbeddingPlace::kGraph;
}

StepInputs AddStepInputs(GraphBuilder& builder) {
  const DecoderConfig& config = builder.config();
  StepInputs inputs;
  inputs.first = AddFirstInput(builder);
  AddShared(builder, inputs);
  ir::Graph& graph = builder.graph();
  const int64_t past = builder.past_tokens();
  for (int64_t l = builder.first_layer(); l < builder.end_layer(); ++l) {
    const auto index = static_cast<int32_t>(l);
    inputs.k_in.push_back(graph.AddInput(
        {RoleKind::kKIn, index},
        {DType::kF32, {config.kv_heads, config.head_dim, past}}));
    inputs.v_in.push_back(graph.AddInput(
        {RoleKind::kVIn, index},
        {DType::kF32, {config.kv_heads, past, config.head_dim}}));
  }
  return inputs;
}

}  // namespace hexllm::models
