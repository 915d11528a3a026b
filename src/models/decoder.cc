#include "models/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "models/decoder_parts.h"
#include "models/graph_builder.h"
#include "models/weight_binder.h"

namespace hexllm::models {
namespace {

using ir::AttrName;
using ir::OpKind;
using ir::ValueId;

constexpr const char* kTable = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

// True when each layer is in one of the graphs.
bool HasAllLayers(std::span<const GraphRequest> requests, int64_t layers) {
  std::vector<bool> found(static_cast<size_t>(layers));
  for (const GraphRequest& request : requests) {
    std::fill(found.begin() + FirstLayer(request, layers),
              found.begin() + EndLayer(request, layers), true);
  }
  return std::find(found.begin(), found.end(), false) == found.end();
}

Result<ValueId> AddEmbedding(GraphBuilder& builder, ValueId first) {
  const DecoderConfig& config = builder.config();
  ValueId x = first;
  if (TakesTokens(builder)) {
    HX_ASSIGN_OR_RETURN(
        const ValueId table,
        builder.VocabWeight({kTable, {config.vocab, config.hidden}}));
    x = builder.Add(OpKind::kEmbedding, {first, table}, {}, kEmbedded);
  }
  if (builder.first_layer() > 0) return x;
  return builder.Scaled(x, config.embedding_scale, "model.embed_scaled");
}

// What a part of a layer adds to its input, and the names around it.
struct Residual {
  ValueId out;             // of attention or MLP
  std::string part;        // "model.layers.3.mlp"
  std::string norm_after;  // used with NormPlacement::kBeforeAndAfter
};

Result<ValueId> AddNormAfter(GraphBuilder& builder, const Residual& residual) {
  const DecoderConfig& config = builder.config();
  ValueId out = residual.out;
  if (config.norm_placement == NormPlacement::kBeforeAndAfter) {
    HX_ASSIGN_OR_RETURN(out, builder.Norm(out, residual.norm_after));
  }
  return builder.Scaled(out, config.residual_scale, residual.part + ".scaled");
}

struct LayerOutputs {
  ValueId hidden;  // [T,M]
  AttentionOutputs attention;
};

Result<LayerOutputs> AddLayer(GraphBuilder& builder, const StepInputs& inputs,
                              int64_t layer, ValueId hidden) {
  const DecoderConfig& config = builder.config();
  const std::string name = LayerName(layer);
  const bool after = config.norm_placement == NormPlacement::kBeforeAndAfter;
  HX_ASSIGN_OR_RETURN(const ValueId normed,
                      builder.Norm(hidden, name + ".input_layernorm"));
  LayerOutputs made;
  HX_ASSIGN_OR_RETURN(made.attention,
                      AddAttention(builder, inputs, layer, normed));
  HX_ASSIGN_OR_RETURN(
      const ValueId attended,
      AddNormAfter(builder, {made.attention.out, name + ".self_attn",
                             name + ".post_attention_layernorm"}));
  hidden = builder.Add(OpKind::kAdd, {attended, hidden}, {},
                       name + ".attention_residual");
  ValueId mlp_in = normed;
  if (config.layer_form == LayerForm::kSequential) {
    HX_ASSIGN_OR_RETURN(
        mlp_in,
        builder.Norm(hidden, name + (after ? ".pre_feedforward_layernorm"
                                           : ".post_attention_layernorm")));
  }
  HX_ASSIGN_OR_RETURN(const ValueId mlp, AddMlp(builder, layer, mlp_in));
  HX_ASSIGN_OR_RETURN(
      const ValueId added,
      AddNormAfter(builder,
                   {mlp, name + ".mlp", name + ".post_feedforward_layernorm"}));
  made.hidden = builder.Add(OpKind::kAdd, {added, hidden}, {}, name);
  return made;
}

Status AddLogits(GraphBuilder& builder, ValueId hidden) {
  const DecoderConfig& config = builder.config();
  const int64_t tokens = builder.step_tokens();
  if (builder.request().logits == LogitsRows::kLast && tokens > 1) {
    hidden = builder.Add(
        OpKind::kSliceRows, {hidden},
        {{AttrName::kBegin, tokens - 1}, {AttrName::kCount, int64_t{1}}},
        "model.last_row");
  }
  HX_ASSIGN_OR_RETURN(const ValueId normed, builder.Norm(hidden, "model.norm"));
  const bool tied = config.head == Head::kTied;
  HX_ASSIGN_OR_RETURN(const ValueId weight,
                      builder.VocabWeight({tied ? kTable : kHead,
                                           {config.vocab, config.hidden}}));
  std::vector<ValueId> operands = {normed, weight};
  if (config.head_bias == Bias::kPresent) {
    HX_ASSIGN_OR_RETURN(const ValueId bias,
                        builder.VocabWeight({"lm_head.bias", {config.vocab}}));
    operands.push_back(bias);
  }
  ValueId logits =
      builder.Add(OpKind::kLinear, std::move(operands), {}, "lm_head");
  logits = builder.Scaled(logits, config.logits_scale, "lm_head.scaled");
  if (config.logits_softcap > 0) {
    const double cap = static_cast<float>(config.logits_softcap);
    logits = builder.Add(OpKind::kSoftcap, {logits}, {{AttrName::kCap, cap}},
                         "lm_head.capped");
  }
  builder.graph().AddOutput({RoleKind::kLogits}, logits);
  return OkStatus();
}

Result<ir::Graph> BuildGraph(const GraphBuilder::Context& context,
                             const GraphRequest& request) {
  GraphBuilder builder(context, request);
  const StepInputs inputs = AddStepInputs(builder);
  HX_ASSIGN_OR_RETURN(ValueId hidden, AddEmbedding(builder, inputs.first));
  std::vector<AttentionOutputs> attentions;
  for (int64_t l = builder.first_layer(); l < builder.end_layer(); ++l) {
    HX_ASSIGN_OR_RETURN(LayerOutputs made,
                        AddLayer(builder, inputs, l, hidden));
    hidden = made.hidden;
    attentions.push_back(made.attention);
  }
  ir::Graph& graph = builder.graph();
  if (builder.end_layer() < context.config.layers) {
    graph.AddOutput({RoleKind::kHiddenOut}, hidden);
  } else if (request.logits != LogitsRows::kNone) {
    HX_RETURN_IF_ERROR(AddLogits(builder, hidden));
  }
  auto index = static_cast<int32_t>(builder.first_layer());
  for (const AttentionOutputs& attention : attentions) {
    graph.AddOutput({RoleKind::kKOut, index}, attention.k_new);
    graph.AddOutput({RoleKind::kVOut, index}, attention.v_new);
    ++index;
  }
  return std::move(graph);
}

// A tied model may still carry a head, as long as it says the same as the
// table.
Status CheckTiedHead(const ModelSource& source, WeightBinder& binder) {
  if (source.config.head != Head::kTied) return OkStatus();
  const TensorView* head = binder.Find(kHead);
  if (head == nullptr) return OkStatus();
  const TensorView* table = binder.Find(kTable);
  const bool same =
      table != nullptr && head->dtype == table->dtype &&
      head->shape == table->shape && head->data.size() == table->data.size() &&
      std::memcmp(head->data.data(), table->data.data(), head->data.size()) ==
          0;
  if (!same) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format(
            "{}: tensor '{}': tie_word_embeddings is true, expected no head or "
            "one equal to the embedding table, found a different one; "
            "pass --set tie_word_embeddings=false to use it",
            source.checkpoint->path(), head->name)};
  }
  binder.Ignore(kHead);
  return OkStatus();
}

}  // namespace

int64_t FirstLayer(const GraphRequest& request, int64_t layers) {
  return request.shard * layers / request.shards;
}
int64_t EndLayer(const GraphRequest& request, int64_t layers) {
  return (request.shard + 1) * layers / request.shards;
}

Result<ir::Module> BuildDecoder(const ModelSource& source,
                                std::span<const GraphRequest> requests) {
  ir::Module module;
  WeightBinder binder(source, module.constants);
  HX_RETURN_IF_ERROR(CheckTiedHead(source, binder));
  for (const GraphRequest& request : requests) {
    HX_CHECK(request.step_tokens >= 1 &&
             request.context_tokens >= request.step_tokens);
    HX_CHECK(request.shard >= 0 && request.shard < request.shards &&
             request.shards <= source.config.layers);
    HX_ASSIGN_OR_RETURN(
        ir::Graph graph,
        BuildGraph({source.config, binder, module.constants}, request));
    module.graphs.push_back(std::move(graph));
  }
  if (!HasAllLayers(requests, source.config.layers)) return module;
  // Graphs without logits never ask for the head, those that are given
  // embeddings not for the table; both still belong to the model.
  for (const char* name :
       {kTable, "model.norm.weight", "model.norm.bias", kHead, "lm_head.bias"})
    binder.Ignore(name);
  HX_RETURN_IF_ERROR(binder.CheckAllUsed());
  return module;
}

Result<ir::Constant> EmbeddingTable(const ModelSource& source) {
  ir::ConstantStore constants;
  HX_ASSIGN_OR_RETURN(
      const ir::ConstantId id,
      WeightBinder(source, constants)
          .Bind({kTable, {source.config.vocab, source.config.hidden}}));
  return constants[id];
}

}  // namespace hexllm::models
