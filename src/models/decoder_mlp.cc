// The MLP of a layer, gated or plain.
#include "models/decoder_parts.h"

namespace hexllm::models {
namespace {

using ir::AttrName;
using ir::OpKind;
using ir::ValueId;

ValueId AddActivation(GraphBuilder& builder, ValueId x,
                      const std::string& name) {
  const HiddenActivation activation = builder.config().activation;
  if (activation == HiddenActivation::kSilu)
    return builder.Add(OpKind::kSilu, {x}, {}, name);
  const int64_t tanh_form = activation == HiddenActivation::kGeluTanh ? 1 : 0;
  return builder.Add(OpKind::kGelu, {x}, {{AttrName::kApproximate, tanh_form}},
                     name);
}

}  // namespace

Result<ValueId> AddMlp(GraphBuilder& builder, int64_t layer, ValueId x) {
  const DecoderConfig& config = builder.config();
  const std::string prefix = LayerName(layer) + ".mlp.";
  const auto linear = [&](ValueId in, const char* name, int64_t out) {
    return builder.Linear(
        in, {.name = prefix + name, .out = out, .bias = config.mlp_bias});
  };
  const bool gated = config.mlp_form == MlpForm::kGated;
  const std::string act = prefix + "act_fn";
  ValueId gate;
  if (gated) {
    HX_ASSIGN_OR_RETURN(gate, linear(x, "gate_proj", config.ffn));
  }
  HX_ASSIGN_OR_RETURN(const ValueId up, linear(x, "up_proj", config.ffn));
  const ValueId inner =
      gated ? builder.Add(OpKind::kMul, {AddActivation(builder, gate, act), up},
                          {}, prefix + "gated")
            : AddActivation(builder, up, act);
  return linear(inner, "down_proj", config.hidden);
}

}  // namespace hexllm::models
