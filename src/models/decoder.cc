#include "models/decoder.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "models/weight_binder.h"

namespace hexllm::models {
namespace {

using ir::AttrName;
using ir::OpKind;
using ir::ValueId;

std::string GraphName(const GraphRequest& request) {
  const std::string_view kind = GraphKindName(request.kind);
  return request.kind == GraphKind::kKv
             ? std::string(kind)
             : fmt::format("{}_{}", kind, request.step_tokens);
}

// Builds one graph; every method appends nodes and returns the value it made.
class DecoderBuilder {
 public:
  DecoderBuilder(const ModelSource& source, WeightBinder& binder,
                 ir::ConstantStore& constants)
      : config_(source.config), binder_(binder), constants_(constants) {}

  Result<ir::Graph> Build(const GraphRequest& request) {
    request_ = request;
    graph_.name = GraphName(request);
    graph_.kind = request.kind;
    graph_.step_tokens = request.step_tokens;
    graph_.context_tokens = request.context_tokens;
    AddInputs();
    HX_ASSIGN_OR_RETURN(
        const ValueId table,
        Weight({"model.embed_tokens.weight", {config_.vocab, config_.hidden}}));
    ValueId hidden =
        Add(OpKind::kEmbedding, {token_, table}, {}, "model.embed_tokens");
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      HX_ASSIGN_OR_RETURN(hidden, Layer(layer, hidden));
    }
    if (request.logits != LogitsRows::kNone) HX_RETURN_IF_ERROR(Logits(hidden));
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      const auto index = static_cast<int32_t>(layer);
      graph_.AddOutput({RoleKind::kKOut, index},
                       k_out_[static_cast<size_t>(layer)]);
      graph_.AddOutput({RoleKind::kVOut, index},
                       v_out_[static_cast<size_t>(layer)]);
    }
    return std::move(graph_);
  }

 private:
  int64_t Step() const { return request_.step_tokens; }
  int64_t Past() const {
    return request_.context_tokens - request_.step_tokens;
  }

  void AddInputs() {
    const int64_t half = config_.rope.rotary_dim / 2;
    token_ = graph_.AddInput({RoleKind::kToken}, {DType::kI32, {Step()}});
    cos_ =
        graph_.AddInput({RoleKind::kRopeCos, 0}, {DType::kF32, {Step(), half}});
    sin_ =
        graph_.AddInput({RoleKind::kRopeSin, 0}, {DType::kF32, {Step(), half}});
    mask_ = graph_.AddInput({RoleKind::kMask, 0},
                            {DType::kF32, {Step(), request_.context_tokens}});
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      const auto index = static_cast<int32_t>(layer);
      k_in_.push_back(graph_.AddInput(
          {RoleKind::kKIn, index},
          {DType::kF32, {config_.kv_heads, config_.head_dim, Past()}}));
      v_in_.push_back(graph_.AddInput(
          {RoleKind::kVIn, index},
          {DType::kF32, {config_.kv_heads, Past(), config_.head_dim}}));
    }
  }

  ValueId Add(OpKind op, std::vector<ValueId> inputs, ir::Attrs attrs,
              std::string name) {
    return graph_.AddNode(op, std::move(inputs), std::move(attrs),
                          std::move(name));
  }

  Result<ValueId> Weight(const WeightRequest& request) {
    HX_ASSIGN_OR_RETURN(const ir::ConstantId id, binder_.Bind(request));
    return graph_.AddConstant(id, constants_[id]);
  }

  Result<ValueId> Norm(ValueId x, const std::string& name) {
    HX_ASSIGN_OR_RETURN(
        const ValueId weight,
        Weight({name + ".weight", {graph_.type(x).shape.back()}}));
    return Add(
        OpKind::kRmsNorm, {x, weight},
        {{AttrName::kEps, config_.norm_eps}, {AttrName::kWeightOffset, 0.0}},
        name);
  }

  struct LinearSpec {
    std::string name;
    int64_t out;
    Bias bias = Bias::kNone;
    int64_t rope_head_dim = 0;
  };

  Result<ValueId> Linear(ValueId x, const LinearSpec& spec) {
    const int64_t in = graph_.type(x).shape.back();
    std::vector<ValueId> inputs = {x};
    HX_ASSIGN_OR_RETURN(
        const ValueId weight,
        Weight({spec.name + ".weight", {spec.out, in}, spec.rope_head_dim}));
    inputs.push_back(weight);
    if (spec.bias == Bias::kPresent) {
      HX_ASSIGN_OR_RETURN(
          const ValueId bias,
          Weight({spec.name + ".bias", {spec.out}, spec.rope_head_dim}));
      inputs.push_back(bias);
    }
    return Add(OpKind::kLinear, std::move(inputs), {}, spec.name);
  }

  ValueId Heads(ValueId x, int64_t heads, const std::string& name) {
    return Add(OpKind::kReshape, {x},
               {{AttrName::kShape,
                 std::vector<int64_t>{Step(), heads, config_.head_dim}}},
               name);
  }

  ValueId Rotated(ValueId x, const std::string& name) {
    return Add(OpKind::kRope, {x, cos_, sin_}, {}, name);
  }

  ValueId Transposed(ValueId x, std::vector<int64_t> perm,
                     const std::string& name) {
    return Add(OpKind::kTranspose, {x}, {{AttrName::kPerm, std::move(perm)}},
               name);
  }

  Result<ValueId> Attention(int64_t layer, ValueId x) {
    const std::string prefix = fmt::format("model.layers.{}.self_attn", layer);
    const int64_t q_width = config_.heads * config_.head_dim;
    const int64_t kv_width = config_.kv_heads * config_.head_dim;
    const auto l = static_cast<size_t>(layer);
    HX_ASSIGN_OR_RETURN(ValueId q,
                        Linear(x, {prefix + ".q_proj", q_width,
                                   config_.attention_bias, config_.head_dim}));
    HX_ASSIGN_OR_RETURN(ValueId k,
                        Linear(x, {prefix + ".k_proj", kv_width,
                                   config_.attention_bias, config_.head_dim}));
    HX_ASSIGN_OR_RETURN(ValueId v, Linear(x, {prefix + ".v_proj", kv_width,
                                              config_.attention_bias}));
    q = Rotated(Heads(q, config_.heads, prefix + ".q_proj"),
                prefix + ".q_rope");
    k = Rotated(Heads(k, config_.kv_heads, prefix + ".k_proj"),
                prefix + ".k_rope");
    v = Heads(v, config_.kv_heads, prefix + ".v_proj");
    k_out_.push_back(
        Transposed(k, {1, 2, 0}, prefix + ".k_new"));  // [T,G,D] -> [G,D,T]
    v_out_.push_back(
        Transposed(v, {1, 0, 2}, prefix + ".v_new"));  // [T,G,D] -> [G,T,D]
    // A number of f32, as plans keep it: the interpreter then computes the
    // same.
    const double scale = static_cast<float>(
        1.0 / std::sqrt(static_cast<double>(config_.head_dim)));
    const ValueId heads =
        Add(OpKind::kAttention,
            {q, k_in_[l], v_in_[l], k_out_[l], v_out_[l], mask_},
            {{AttrName::kScale, scale}, {AttrName::kSoftcap, 0.0}},
            prefix + ".attention");
    const ValueId flat =
        Add(OpKind::kReshape, {heads},
            {{AttrName::kShape, std::vector<int64_t>{Step(), q_width}}},
            prefix + ".attention");
    return Linear(flat,
                  {prefix + ".o_proj", config_.hidden, config_.attention_bias});
  }

  ValueId Activate(ValueId x, const std::string& name) {
    if (config_.activation == HiddenActivation::kSilu)
      return Add(OpKind::kSilu, {x}, {}, name);
    const int64_t tanh_form =
        config_.activation == HiddenActivation::kGeluTanh ? 1 : 0;
    return Add(OpKind::kGelu, {x}, {{AttrName::kApproximate, tanh_form}}, name);
  }

  Result<ValueId> Mlp(int64_t layer, ValueId x) {
    const std::string prefix = fmt::format("model.layers.{}.mlp", layer);
    HX_ASSIGN_OR_RETURN(
        const ValueId gate,
        Linear(x, {prefix + ".gate_proj", config_.ffn, config_.mlp_bias}));
    HX_ASSIGN_OR_RETURN(
        const ValueId up,
        Linear(x, {prefix + ".up_proj", config_.ffn, config_.mlp_bias}));
    const ValueId gated =
        Add(OpKind::kMul, {Activate(gate, prefix + ".act_fn"), up}, {},
            prefix + ".gated");
    return Linear(gated,
                  {prefix + ".down_proj", config_.hidden, config_.mlp_bias});
  }

  Result<ValueId> Layer(int64_t layer, ValueId hidden) {
    const std::string prefix = fmt::format("model.layers.{}", layer);
    HX_ASSIGN_OR_RETURN(const ValueId attention_in,
                        Norm(hidden, prefix + ".input_layernorm"));
    HX_ASSIGN_OR_RETURN(const ValueId attended, Attention(layer, attention_in));
    hidden = Add(OpKind::kAdd, {attended, hidden}, {},
                 prefix + ".attention_residual");
    HX_ASSIGN_OR_RETURN(const ValueId mlp_in,
                        Norm(hidden, prefix + ".post_attention_layernorm"));
    HX_ASSIGN_OR_RETURN(const ValueId mlp, Mlp(layer, mlp_in));
    return Add(OpKind::kAdd, {mlp, hidden}, {}, prefix);
  }

  Status Logits(ValueId hidden) {
    if (request_.logits == LogitsRows::kLast && Step() > 1) {
      hidden =
          Add(OpKind::kSliceRows, {hidden},
              {{AttrName::kBegin, Step() - 1}, {AttrName::kCount, int64_t{1}}},
              "model.last_row");
    }
    HX_ASSIGN_OR_RETURN(const ValueId normed, Norm(hidden, "model.norm"));
    const bool tied = config_.head == Head::kTied;
    HX_ASSIGN_OR_RETURN(
        const ValueId weight,
        Weight({tied ? "model.embed_tokens.weight" : "lm_head.weight",
                {config_.vocab, config_.hidden}}));
    graph_.AddOutput({RoleKind::kLogits},
                     Add(OpKind::kLinear, {normed, weight}, {}, "lm_head"));
    return OkStatus();
  }

  const DecoderConfig& config_;
  WeightBinder& binder_;
  ir::ConstantStore& constants_;
  GraphRequest request_;
  ir::Graph graph_;
  ValueId token_, cos_, sin_, mask_;
  std::vector<ValueId> k_in_, v_in_, k_out_, v_out_;
};

// A tied model may still carry a head, as long as it says the same as the
// table.
Status CheckTiedHead(const ModelSource& source, WeightBinder& binder) {
  if (source.config.head != Head::kTied) return OkStatus();
  const TensorView* head = binder.Find("lm_head.weight");
  if (head == nullptr) return OkStatus();
  const TensorView* table = binder.Find("model.embed_tokens.weight");
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
  binder.Ignore("lm_head.weight");
  return OkStatus();
}

}  // namespace

Result<ir::Module> BuildDecoder(const ModelSource& source,
                                std::span<const GraphRequest> requests) {
  ir::Module module;
  WeightBinder binder(source, module.constants);
  HX_RETURN_IF_ERROR(CheckTiedHead(source, binder));
  for (const GraphRequest& request : requests) {
    HX_CHECK(request.step_tokens >= 1 &&
             request.context_tokens >= request.step_tokens);
    HX_ASSIGN_OR_RETURN(
        ir::Graph graph,
        DecoderBuilder(source, binder, module.constants).Build(request));
    module.graphs.push_back(std::move(graph));
  }
  // Graphs without logits never ask for the head; it still belongs to the
  // model.
  binder.Ignore("model.norm.weight");
  binder.Ignore("lm_head.weight");
  HX_RETURN_IF_ERROR(binder.CheckAllUsed());
  return module;
}

}  // namespace hexllm::models
