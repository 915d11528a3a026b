// A decoder of two layers, small enough to read: grouped attention, RoPE, gated
// MLP, bias, tied head. For tests that need a whole model graph without a
// checkpoint; made with the same calls as models/ makes real ones.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/pseudo_random.h"
#include "tests/support/ir_tensors.h"

namespace hexllm::testing {

inline constexpr int64_t kTinyLayers = 2;
inline constexpr int64_t kTinyHeads = 4;
inline constexpr int64_t kTinyKvHeads = 2;
inline constexpr int64_t kTinyHeadDim = 4;
inline constexpr int64_t kTinyWidth = 32;
inline constexpr int64_t kTinyFfn = 64;
inline constexpr int64_t kTinyVocab = 11;

// Adds graphs of one tiny decoder to one module; they share its weights.
class TinyDecoder {
 public:
  TinyDecoder() {
    embed_ =
        Weight("model.embed_tokens", {kTinyVocab, kTinyWidth}, DType::kF16);
  }

  ir::Module Take() && { return std::move(module_); }

  // A graph of `step_tokens` in a context of `context_tokens`, named `name`;
  // logits for all rows.
  void AddGraph(std::string name, int64_t step_tokens, int64_t context_tokens) {
    graph_ = &module_.graphs.emplace_back();
    graph_->name = std::move(name);
    graph_->kind = step_tokens == 1 ? GraphKind::kKv : GraphKind::kPrefill;
    graph_->step_tokens = step_tokens;
    graph_->context_tokens = context_tokens;
    AddInputs();
    ir::ValueId x = Node(ir::OpKind::kEmbedding, {token_, Use(embed_)}, {},
                         "model.embed_tokens");
    for (int32_t layer = 0; layer < kTinyLayers; ++layer)
      x = AddLayer(layer, x);
    x = Norm(x, "model.norm");
    graph_->AddOutput(
        {.kind = RoleKind::kLogits},
        Node(ir::OpKind::kLinear, {x, Use(embed_)}, {}, "lm_head"));
  }

 private:
  // Constants of one name are one constant.
  ir::ConstantId Weight(const std::string& name, Shape shape, DType dtype) {
    const std::string full = name + ".weight";
    for (size_t i = 0; i < module_.constants.size(); ++i) {
      const ir::ConstantId id = {static_cast<int32_t>(i)};
      if (module_.constants[id].name == full) return id;
    }
    return module_.constants.Add(ir::MakeRandomConstant(
        full, {.dtype = dtype, .shape = std::move(shape)}));
  }

  ir::ValueId Use(ir::ConstantId id) {
    return graph_->AddConstant(id, module_.constants[id]);
  }

  ir::ValueId Node(ir::OpKind op, std::vector<ir::ValueId> inputs,
                   ir::Attrs attrs, std::string name) {
    return graph_->AddNode(op, std::move(inputs), std::move(attrs),
                           std::move(name));
  }

  void AddInputs() {
    const int64_t t = graph_->step_tokens;
    const int64_t past = graph_->context_tokens - t;
    token_ = graph_->AddInput({.kind = RoleKind::kToken},
                              {.dtype = DType::kI32, .shape = {t}});
    cos_ = graph_->AddInput({.kind = RoleKind::kRopeCos},
                            F32Type({t, kTinyHeadDim / 2}));
    sin_ = graph_->AddInput({.kind = RoleKind::kRopeSin},
                            F32Type({t, kTinyHeadDim / 2}));
    mask_ = graph_->AddInput({.kind = RoleKind::kMask},
                             F32Type({t, graph_->context_tokens}));
    k_in_.clear();
    v_in_.clear();
    for (int32_t layer = 0; layer < kTinyLayers; ++layer) {
      k_in_.push_back(
          graph_->AddInput({.kind = RoleKind::kKIn, .index = layer},
                           F32Type({kTinyKvHeads, kTinyHeadDim, past})));
      v_in_.push_back(
          graph_->AddInput({.kind = RoleKind::kVIn, .index = layer},
                           F32Type({kTinyKvHeads, past, kTinyHeadDim})));
    }
  }

  ir::ValueId Norm(ir::ValueId x, const std::string& name) {
    return Node(
        ir::OpKind::kRmsNorm, {x, Use(Weight(name, {kTinyWidth}, DType::kF32))},
        {{ir::AttrName::kEps, 1e-5}, {ir::AttrName::kWeightOffset, 0.0}}, name);
  }

  ir::ValueId Linear(ir::ValueId x, int64_t width, const std::string& name) {
    const int64_t in = graph_->type(x).shape[1];
    const DType dtype = in % 32 == 0 ? DType::kQ8_0 : DType::kBF16;
    return Node(ir::OpKind::kLinear, {x, Use(Weight(name, {width, in}, dtype))},
                {}, name);
  }

  ir::ValueId Heads(ir::ValueId x, int64_t heads, const std::string& name) {
    return Node(ir::OpKind::kReshape, {x},
                {{ir::AttrName::kShape,
                  Shape{graph_->step_tokens, heads, kTinyHeadDim}}},
                name);
  }

  ir::ValueId Transpose(ir::ValueId x, Shape perm, const std::string& name) {
    return Node(ir::OpKind::kTranspose, {x},
                {{ir::AttrName::kPerm, std::move(perm)}}, name);
  }

  ir::ValueId Add(ir::ValueId a, ir::ValueId b, const std::string& name) {
    return Node(ir::OpKind::kAdd, {a, b}, {}, name);
  }

  ir::ValueId AddLayer(int32_t layer, ir::ValueId x) {
    const std::string name = "model.layers." + std::to_string(layer);
    const ir::ValueId attention = AddAttention(
        layer, Norm(x, name + ".input_layernorm"), name + ".self_attn");
    x = Add(x, attention, name + ".attention_residual");
    const ir::ValueId mlp =
        AddMlp(Norm(x, name + ".post_attention_layernorm"), name + ".mlp");
    return Add(x, mlp, name);
  }

  ir::ValueId AddAttention(int32_t layer, ir::ValueId x,
                           const std::string& name) {
    const auto at = static_cast<size_t>(layer);
    ir::ValueId q =
        Heads(Linear(x, kTinyHeads * kTinyHeadDim, name + ".q_proj"),
              kTinyHeads, name + ".q");
    ir::ValueId k =
        Heads(Linear(x, kTinyKvHeads * kTinyHeadDim, name + ".k_proj"),
              kTinyKvHeads, name + ".k");
    ir::ValueId v =
        Heads(Linear(x, kTinyKvHeads * kTinyHeadDim, name + ".v_proj"),
              kTinyKvHeads, name + ".v");
    q = Node(ir::OpKind::kRope, {q, cos_, sin_}, {}, name + ".q_rope");
    k = Node(ir::OpKind::kRope, {k, cos_, sin_}, {}, name + ".k_rope");
    k = Transpose(k, {1, 2, 0}, name + ".k_out");
    v = Transpose(v, {1, 0, 2}, name + ".v_out");
    graph_->AddOutput({.kind = RoleKind::kKOut, .index = layer}, k);
    graph_->AddOutput({.kind = RoleKind::kVOut, .index = layer}, v);
    const ir::ValueId heads =
        Node(ir::OpKind::kAttention, {q, k_in_[at], v_in_[at], k, v, mask_},
             {{ir::AttrName::kScale, 0.5}, {ir::AttrName::kSoftcap, 0.0}},
             name + ".heads");
    const ir::ValueId flat =
        Node(ir::OpKind::kReshape, {heads},
             {{ir::AttrName::kShape,
               Shape{graph_->step_tokens, kTinyHeads * kTinyHeadDim}}},
             name + ".flat");
    return Linear(flat, kTinyWidth, name + ".o_proj");
  }

  ir::ValueId AddMlp(ir::ValueId x, const std::string& name) {
    const ir::ValueId gate =
        Node(ir::OpKind::kSilu, {Linear(x, kTinyFfn, name + ".gate_proj")}, {},
             name + ".act");
    const ir::ValueId up = Linear(x, kTinyFfn, name + ".up_proj");
    return Linear(Node(ir::OpKind::kMul, {gate, up}, {}, name + ".gated"),
                  kTinyWidth, name + ".down_proj");
  }

  ir::Module module_;
  ir::Graph* graph_ = nullptr;
  ir::ConstantId embed_;
  ir::ValueId token_, cos_, sin_, mask_;
  std::vector<ir::ValueId> k_in_, v_in_;
};

inline ir::Module MakeTinyDecoder(int64_t step_tokens, int64_t context_tokens) {
  TinyDecoder decoder;
  decoder.AddGraph(step_tokens == 1 ? "kv" : "prefill", step_tokens,
                   context_tokens);
  return std::move(decoder).Take();
}

}  // namespace hexllm::testing
