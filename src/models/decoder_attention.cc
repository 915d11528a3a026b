// The attention of a layer: projections, head norms, RoPE, attention.
#include "models/decoder_parts.h"

namespace hexllm::models {
namespace {

using ir::AttrName;
using ir::OpKind;
using ir::ValueId;

// A projection of x[T,M] to query or key heads.
struct HeadsSpec {
  ValueId x;
  std::string prefix;  // "model.layers.3.self_attn."
  std::string name;    // "q" or "k"
  int64_t heads;
};

// [T,heads,D], ready for attention.
Result<ValueId> AddHeads(GraphBuilder& builder, const StepInputs& inputs,
                         const HeadsSpec& spec, const LayerConfig& layer) {
  const DecoderConfig& config = builder.config();
  // Rows of layers without RoPE may stand in any order, the same for q and k.
  const int64_t rotary_dim = config.ropes[layer.rope.value_or(0)].rotary_dim;
  const std::string projection = spec.prefix + spec.name + "_proj";
  HX_ASSIGN_OR_RETURN(
      ValueId x, builder.Linear(spec.x, {.name = projection,
                                         .out = spec.heads * config.head_dim,
                                         .bias = config.qkv_bias,
                                         .head_dim = config.head_dim,
                                         .rotary_dim = rotary_dim}));
  x = builder.Reshape(x, {builder.step_tokens(), spec.heads, config.head_dim},
                      projection);
  if (config.qk_norm == QkNorm::kPerHead) {
    HX_ASSIGN_OR_RETURN(
        x, builder.HeadNorm(x, {.name = spec.prefix + spec.name + "_norm",
                                .head_dim = config.head_dim,
                                .rotary_dim = rotary_dim}));
  }
  if (layer.rope) {
    x = builder.Add(OpKind::kRope,
                    {x, *inputs.cos[*layer.rope], *inputs.sin[*layer.rope]}, {},
                    spec.prefix + spec.name + "_rope");
  }
  return builder.RotatedHeads(x, spec.prefix + spec.name + "_rotation");
}

// [T,G,D].
Result<ValueId> AddValues(GraphBuilder& builder, const std::string& prefix,
                          ValueId x) {
  const DecoderConfig& config = builder.config();
  const std::string name = prefix + "v_proj";
  HX_ASSIGN_OR_RETURN(
      const ValueId v,
      builder.Linear(x, {.name = name,
                         .out = config.kv_heads * config.head_dim,
                         .bias = config.qkv_bias}));
  return builder.Reshape(
      v, {builder.step_tokens(), config.kv_heads, config.head_dim}, name);
}

ir::Attrs AttentionAttrs(const DecoderConfig& config) {
  // Numbers of f32, as plans keep them: the interpreter then computes the same.
  const double scale = static_cast<float>(config.attention_scale);
  const double softcap = static_cast<float>(config.attention_softcap);
  return {{AttrName::kScale, scale}, {AttrName::kSoftcap, softcap}};
}

}  // namespace

Result<AttentionOutputs> AddAttention(GraphBuilder& builder,
                                      const StepInputs& inputs, int64_t layer,
                                      ValueId x) {
  const DecoderConfig& config = builder.config();
  const auto& flavour = config.layer_configs[static_cast<size_t>(layer)];
  const std::string prefix = LayerName(layer) + ".self_attn.";
  HX_ASSIGN_OR_RETURN(
      const ValueId q,
      AddHeads(builder, inputs, {x, prefix, "q", config.heads}, flavour));
  HX_ASSIGN_OR_RETURN(
      const ValueId k,
      AddHeads(builder, inputs, {x, prefix, "k", config.kv_heads}, flavour));
  HX_ASSIGN_OR_RETURN(const ValueId v, AddValues(builder, prefix, x));
  const auto moved = [&](ValueId heads, std::vector<int64_t> perm,
                         const char* name) {
    return builder.Add(OpKind::kTranspose, {heads},
                       {{AttrName::kPerm, std::move(perm)}}, prefix + name);
  };
  AttentionOutputs made;
  made.k_new = moved(k, {1, 2, 0}, "k_new");  // [T,G,D] -> [G,D,T]
  made.v_new = moved(v, {1, 0, 2}, "v_new");  // [T,G,D] -> [G,T,D]
  const auto place = static_cast<size_t>(layer - builder.first_layer());
  const ValueId heads =
      builder.Add(OpKind::kAttention,
                  {q, inputs.k_in[place], inputs.v_in[place], made.k_new,
                   made.v_new, *inputs.masks[flavour.window]},
                  AttentionAttrs(config), prefix + "attention");
  const ValueId flat = builder.Reshape(
      heads, {builder.step_tokens(), config.heads * config.head_dim},
      prefix + "attention");
  HX_ASSIGN_OR_RETURN(
      made.out, builder.Linear(flat, {.name = prefix + "o_proj",
                                      .out = config.hidden,
                                      .bias = config.attention_out_bias}));
  return made;
}

}  // namespace hexllm::models
