// Random verified graphs: decoder-shaped in parts (attention and MLP blocks,
// residuals, scales), arbitrary in their order. For tests that a rewrite or a
// backend keeps the meaning of any graph. The same seed gives the same graph
// everywhere.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/pseudo_random.h"
#include "tests/support/ir_tensors.h"

namespace hexllm::testing {

struct RandomGraphOptions {
  uint64_t seed = 0;
  // Blocks of 1 to 15 nodes each.
  int blocks = 6;
  // Attention taken apart and caches converted, as passes/pipeline.cc does it
  // for targets that have encodings.
  bool lowered = false;
  // With linear_add among the ops.
  bool fused = false;
};

class RandomGraphMaker {
 public:
  explicit RandomGraphMaker(const RandomGraphOptions& options)
      : options_(options), random_(options.seed) {}

  ir::Module Make() && {
    graph_ = &module_.graphs.emplace_back();
    graph_->name = "random_" + std::to_string(options_.seed);
    graph_->step_tokens = Between(1, 4);
    graph_->context_tokens = graph_->step_tokens + Between(0, 3);
    graph_->kind =
        graph_->step_tokens == 1 ? GraphKind::kKv : GraphKind::kPrefill;
    AddInputs();
    for (int i = 0; i < options_.blocks; ++i) AddBlock();
    AddLogits();
    AddTaps();
    return std::move(module_);
  }

 private:
  static constexpr int64_t kVocab = 7;
  static constexpr int64_t kHeadDim = 8;
  static constexpr double kScoreScale = 0.3;

  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(
                     random_.Below(static_cast<uint64_t>(high - low + 1)));
  }
  bool Chance(int percent) { return Between(1, 100) <= percent; }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(random_.Below(items.size()))];
  }

  int64_t tokens() const { return graph_->step_tokens; }
  int64_t Width(ir::ValueId x) const { return graph_->type(x).shape[1]; }

  ir::ValueId Node(ir::OpKind op, std::vector<ir::ValueId> inputs,
                   ir::Attrs attrs = {}) {
    const std::string name = std::string(ir::GetOpInfo(op).name) + "." +
                             std::to_string(graph_->nodes.size());
    return graph_->AddNode(op, std::move(inputs), std::move(attrs), name);
  }

  // A new constant of a random stored type that the row width allows.
  ir::ValueId Weight(Shape shape) {
    std::vector<DType> dtypes = {DType::kF32, DType::kF16, DType::kBF16};
    if (shape.back() % 32 == 0)
      dtypes.insert(dtypes.end(),
                    {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ8_0});
    const std::string name = "w." + std::to_string(options_.seed) + "." +
                             std::to_string(module_.constants.size());
    const ir::ConstantId id = module_.constants.Add(ir::MakeRandomConstant(
        name, {.dtype = Pick(dtypes), .shape = std::move(shape)}));
    return graph_->AddConstant(id, module_.constants[id]);
  }

  void AddInputs() {
    const ir::ValueId token =
        graph_->AddInput({.kind = RoleKind::kToken},
                         {.dtype = DType::kI32, .shape = {tokens()}});
    cos_ = graph_->AddInput({.kind = RoleKind::kRopeCos},
                            F32Type({tokens(), kHeadDim / 2}));
    sin_ = graph_->AddInput({.kind = RoleKind::kRopeSin},
                            F32Type({tokens(), kHeadDim / 2}));
    mask_ = graph_->AddInput({.kind = RoleKind::kMask},
                             F32Type({tokens(), graph_->context_tokens}));
    pool_.push_back(graph_->AddInput({.kind = RoleKind::kHiddenIn},
                                     F32Type({tokens(), 32})));
    pool_.push_back(
        Node(ir::OpKind::kEmbedding, {token, Weight({kVocab, 32})}));
  }

  // Appends a few nodes that end in a [T,M] value, which joins the pool.
  void AddBlock() {
    const ir::ValueId x = Pick(pool_);
    switch (Between(0, options_.lowered ? 9 : 7)) {
      case 0:
        return pool_.push_back(Linear(x, Pick(kWidths)));
      case 1:
        return pool_.push_back(Scaled(x));
      case 2:
        return pool_.push_back(Reshaped(x));
      case 3:
        return pool_.push_back(Residual(x));
      case 4:
        return pool_.push_back(Mlp(x));
      case 5:
        return pool_.push_back(Attention(x));
      case 6:
        return pool_.push_back(Softcap(x));
      case 8:
        return pool_.push_back(Node(ir::OpKind::kConvert, {x}));
      case 9:
        return pool_.push_back(AddRow(x));
      default:
        return pool_.push_back(Norm(x));
    }
  }

  ir::ValueId Linear(ir::ValueId x, int64_t width) {
    std::vector<ir::ValueId> inputs = {x, Weight({width, Width(x)})};
    if (Chance(30)) inputs.push_back(Weight({width}));
    return Node(ir::OpKind::kLinear, inputs);
  }

  ir::ValueId Norm(ir::ValueId x) {
    if (Chance(25)) {
      return Node(ir::OpKind::kLayerNorm,
                  {x, Weight({Width(x)}), Weight({Width(x)})},
                  {{ir::AttrName::kEps, 1e-5}});
    }
    return Node(ir::OpKind::kRmsNorm, {x, Weight({Width(x)})},
                {{ir::AttrName::kEps, 1e-5},
                 {ir::AttrName::kWeightOffset, Chance(50) ? 1.0 : 0.0}});
  }

  ir::ValueId Softcap(ir::ValueId x) {
    return Node(ir::OpKind::kSoftcap, {x}, {{ir::AttrName::kCap, 5.0}});
  }

  // One to three scales. Powers of two: products are exact, so merging them
  // changes no bit.
  ir::ValueId Scaled(ir::ValueId x) {
    for (int64_t i = Between(1, 3); i > 0; --i) {
      x = Node(ir::OpKind::kScale, {x},
               {{ir::AttrName::kFactor,
                 Pick(std::vector<double>{1, 1, 0.5, 2, -0.25})}});
    }
    return x;
  }

  ir::ValueId Reshape(ir::ValueId x, Shape shape) {
    return Node(ir::OpKind::kReshape, {x},
                {{ir::AttrName::kShape, std::move(shape)}});
  }

  ir::ValueId Transpose(ir::ValueId x, Shape perm) {
    return Node(ir::OpKind::kTranspose, {x},
                {{ir::AttrName::kPerm, std::move(perm)}});
  }

  // Some reshapes and transposes of x's elements, and back to [T,M].
  ir::ValueId Reshaped(ir::ValueId x) {
    const int64_t width = Width(x);
    ir::ValueId y = Reshape(x, {tokens(), width / kHeadDim, kHeadDim});
    for (int64_t i = Between(0, 3); i > 0; --i) {
      y = Transpose(y, Pick(std::vector<Shape>{
                           {0, 1, 2}, {1, 0, 2}, {2, 0, 1}, {0, 2, 1}}));
      if (Chance(40)) y = Reshape(y, graph_->type(y).shape);
    }
    return Reshape(y, {tokens(), width});
  }

  ir::ValueId SliceRows(ir::ValueId x, int64_t begin) {
    return Node(
        ir::OpKind::kSliceRows, {x},
        {{ir::AttrName::kBegin, begin}, {ir::AttrName::kCount, int64_t{1}}});
  }

  // x + its first row, row by row.
  ir::ValueId AddRow(ir::ValueId x) {
    return Node(ir::OpKind::kAdd, {x, Reshape(SliceRows(x, 0), {Width(x)})});
  }

  ir::ValueId Residual(ir::ValueId x) {
    if (options_.fused && Chance(70)) {
      const ir::ValueId in = Norm(x);
      std::vector<ir::ValueId> inputs = {in, Weight({Width(x), Width(x)}), x};
      if (Chance(30)) inputs.push_back(Weight({Width(x)}));
      return Node(ir::OpKind::kLinearAdd, inputs);
    }
    const ir::ValueId y = Linear(Chance(50) ? Norm(x) : Pick(pool_), Width(x));
    return Chance(50) ? Node(ir::OpKind::kAdd, {x, y})
                      : Node(ir::OpKind::kAdd, {y, x});
  }

  ir::ValueId Mlp(ir::ValueId x) {
    x = Norm(x);
    ir::ValueId gate = Linear(x, 64);
    if (Chance(50)) {
      gate = Node(ir::OpKind::kSilu, {gate});
    } else {
      gate = Node(ir::OpKind::kGelu, {gate},
                  {{ir::AttrName::kApproximate, Between(0, 1)}});
    }
    const ir::ValueId up = Linear(x, 64);
    const ir::ValueId gated =
        Node(ir::OpKind::kMul,
             Chance(50) ? std::vector{gate, up} : std::vector{up, gate});
    if (Chance(20)) pool_.push_back(gate);
    return Norm(Linear(gated, 32));
  }

  ir::ValueId Attention(ir::ValueId x) {
    const int64_t kv_heads = Between(1, 2);
    const int64_t heads = kv_heads * Between(1, 2);
    const int64_t past = graph_->context_tokens - tokens();
    const int32_t layer = layers_++;
    const ir::ValueId k_in =
        graph_->AddInput({.kind = RoleKind::kKIn, .index = layer},
                         F32Type({kv_heads, kHeadDim, past}));
    const ir::ValueId v_in =
        graph_->AddInput({.kind = RoleKind::kVIn, .index = layer},
                         F32Type({kv_heads, past, kHeadDim}));
    const ir::ValueId q = Heads(x, heads, /*rotate=*/true);
    const ir::ValueId k =
        Transpose(Cached(Heads(x, kv_heads, /*rotate=*/true)), {1, 2, 0});
    const ir::ValueId v =
        Transpose(Cached(Heads(x, kv_heads, /*rotate=*/false)), {1, 0, 2});
    graph_->AddOutput({.kind = RoleKind::kKOut, .index = layer}, k);
    graph_->AddOutput({.kind = RoleKind::kVOut, .index = layer}, v);
    const double softcap = Chance(30) ? 2.0 : 0.0;
    const ir::ValueId out =
        options_.lowered
            ? LoweredAttention(q, Concat(k_in, k, 2), Concat(v_in, v, 1),
                               softcap)
            : Node(ir::OpKind::kAttention, {q, k_in, v_in, k, v, mask_},
                   {{ir::AttrName::kScale, kScoreScale},
                    {ir::AttrName::kSoftcap, softcap}});
    return Linear(Reshape(out, {tokens(), heads * kHeadDim}), 32);
  }

  ir::ValueId Cached(ir::ValueId heads) {
    return options_.lowered ? Node(ir::OpKind::kConvert, {heads}) : heads;
  }

  ir::ValueId Concat(ir::ValueId a, ir::ValueId b, int64_t axis) {
    return Node(ir::OpKind::kConcat, {a, b}, {{ir::AttrName::kAxis, axis}});
  }

  ir::ValueId MatMul(ir::ValueId a, ir::ValueId b, double scale) {
    return Node(ir::OpKind::kMatMul, {a, b}, {{ir::AttrName::kScale, scale}});
  }

  // q [T,H,D], keys [G,D,C], values [G,C,D] -> [T,H,D].
  ir::ValueId LoweredAttention(ir::ValueId q, ir::ValueId keys,
                               ir::ValueId values, double softcap) {
    const int64_t heads = graph_->type(q).shape[1];
    const int64_t kv_heads = graph_->type(keys).shape[0];
    const int64_t context = graph_->context_tokens;
    const int64_t rows = heads / kv_heads * tokens();
    q = Reshape(Transpose(q, {1, 0, 2}), {kv_heads, rows, kHeadDim});
    ir::ValueId scores = MatMul(q, keys, kScoreScale);
    if (softcap > 0)
      scores =
          Node(ir::OpKind::kSoftcap, {scores}, {{ir::AttrName::kCap, softcap}});
    scores = Reshape(scores, {kv_heads, heads / kv_heads, tokens(), context});
    scores = Node(ir::OpKind::kAdd, {scores, mask_});
    const ir::ValueId probs = Reshape(Node(ir::OpKind::kSoftmax, {scores}),
                                      {kv_heads, rows, context});
    const ir::ValueId out =
        Reshape(MatMul(probs, values, 1.0), {heads, tokens(), kHeadDim});
    return Transpose(out, {1, 0, 2});
  }

  ir::ValueId Heads(ir::ValueId x, int64_t heads, bool rotate) {
    const ir::ValueId split =
        Reshape(Linear(x, heads * kHeadDim), {tokens(), heads, kHeadDim});
    return rotate ? Node(ir::OpKind::kRope, {split, cos_, sin_}) : split;
  }

  // Logits of the last or of all rows.
  void AddLogits() {
    ir::ValueId x = pool_.back();
    if (Chance(50)) x = SliceRows(x, tokens() - 1);
    graph_->AddOutput({.kind = RoleKind::kLogits}, Linear(x, kVocab));
  }

  void AddTaps() {
    for (const ir::Node& node : graph_->nodes) {
      if (Chance(10))
        graph_->AddOutput(
            {.kind = RoleKind::kTap, .name = (*graph_)[node.output].name},
            node.output);
    }
  }

  const std::vector<int64_t> kWidths = {16, 32, 64};
  const RandomGraphOptions options_;
  ir::PseudoRandom random_;
  ir::Module module_;
  ir::Graph* graph_ = nullptr;
  std::vector<ir::ValueId> pool_;  // of [T,M] values
  ir::ValueId cos_, sin_, mask_;
  int32_t layers_ = 0;
};

// A module of one graph.
inline ir::Module MakeRandomGraph(const RandomGraphOptions& options) {
  return RandomGraphMaker(options).Make();
}

// Inputs for a graph of MakeRandomGraph: tokens of its vocabulary, masks of 0
// and -infinity (some rows hidden altogether), numbers in -1 .. 1 elsewhere.
inline std::vector<ir::HostTensor> RandomInputs(const ir::Graph& graph,
                                                uint64_t seed) {
  ir::PseudoRandom random(seed);
  std::vector<ir::HostTensor> inputs;
  for (const ir::GraphIo& io : graph.inputs) {
    const ir::TensorType& type = graph.type(io.value);
    if (type.dtype == DType::kI32) {
      ir::HostTensor tokens{.type = type};
      for (int64_t i = 0; i < type.shape[0]; ++i)
        tokens.ints.push_back(static_cast<int64_t>(random.Below(7)));
      inputs.push_back(std::move(tokens));
      continue;
    }
    inputs.push_back(RandomF32(type.shape, random));
    if (io.role.kind != RoleKind::kMask) continue;
    for (float& value : inputs.back().floats) {
      value =
          random.Below(3) == 0 ? -std::numeric_limits<float>::infinity() : 0;
    }
  }
  return inputs;
}

}  // namespace hexllm::testing
