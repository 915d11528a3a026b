#include "passes/decompose_attention.h"

#include <string>
#include <utility>

#include "passes/rewrite.h"

namespace hexllm {
namespace {

using ir::AttrName;
using ir::OpKind;
using ir::ValueId;

// Appends what stands for one attention node.
class Decomposition {
 public:
  Decomposition(ir::Graph& graph, ir::Node attention)
      : graph_(graph),
        attention_(std::move(attention)),
        prefix_(WithoutSuffix(graph[attention_.output].name, ".attention")) {
    const Shape& q = graph.type(attention_.inputs[0]).shape;  // [T,H,D]
    tokens_ = q[0];
    heads_ = q[1];
    head_dim_ = q[2];
    kv_heads_ = graph.type(attention_.inputs[1]).shape[0];  // [G,D,P]
    context_ = graph.type(attention_.inputs[5]).shape[1];   // [T,C]
  }

  void Run() {
    const ValueId probs = Probs();
    const ValueId values = Concat(attention_.inputs[2], attention_.inputs[4],
                                  {.axis = 1, .name = ".values"});
    const ValueId out = Node(OpKind::kMatMul, {probs, values},
                             {{AttrName::kScale, 1.0}}, ".attention");
    const ValueId heads = Reshape(out, {heads_, tokens_, head_dim_});
    AppendNode(graph_, {.op = OpKind::kTranspose,
                        .inputs = {heads},
                        .output = attention_.output,
                        .attrs = {{AttrName::kPerm, Shape{1, 0, 2}}}});
  }

 private:
  struct ConcatSpec {
    int64_t axis;
    std::string_view name;
  };

  // [G,R*T,C].
  ValueId Probs() {
    const int64_t group = heads_ / kv_heads_;
    const ValueId scores =
        Reshape(Scores(), {kv_heads_, group, tokens_, context_});
    const ValueId masked = Node(OpKind::kAdd, {scores, attention_.inputs[5]},
                                {}, ".masked_scores");
    const ValueId probs = Node(OpKind::kSoftmax, {masked}, {}, ".probs");
    return Reshape(probs, {kv_heads_, group * tokens_, context_});
  }

  // [G,R*T,C].
  ValueId Scores() {
    ValueId query = Node(OpKind::kTranspose, {attention_.inputs[0]},
                         {{AttrName::kPerm, Shape{1, 0, 2}}}, ".query");
    query =
        Reshape(query, {kv_heads_, heads_ / kv_heads_ * tokens_, head_dim_});
    const ValueId keys = Concat(attention_.inputs[1], attention_.inputs[3],
                                {.axis = 2, .name = ".keys"});
    const ir::Attrs& attrs = attention_.attrs;
    const ValueId scores =
        Node(OpKind::kMatMul, {query, keys},
             {{AttrName::kScale, ir::FloatAttr(attrs, AttrName::kScale)}},
             ".scores");
    const double softcap = ir::FloatAttr(attrs, AttrName::kSoftcap);
    if (softcap == 0) return scores;
    return Node(OpKind::kSoftcap, {scores}, {{AttrName::kCap, softcap}},
                ".capped_scores");
  }

  ValueId Concat(ValueId past, ValueId fresh, const ConcatSpec& spec) {
    return Node(OpKind::kConcat, {past, fresh}, {{AttrName::kAxis, spec.axis}},
                spec.name);
  }

  ValueId Reshape(ValueId x, Shape shape) {
    return graph_.AddNode(OpKind::kReshape, {x},
                          {{AttrName::kShape, std::move(shape)}},
                          graph_[x].name);
  }

  ValueId Node(OpKind op, std::vector<ValueId> inputs, ir::Attrs attrs,
               std::string_view name) {
    return graph_.AddNode(op, std::move(inputs), std::move(attrs),
                          prefix_ + std::string(name));
  }

  ir::Graph& graph_;
  const ir::Node attention_;
  const std::string prefix_;
  int64_t tokens_, heads_, head_dim_, kv_heads_, context_;
};

}  // namespace

Status DecomposeAttention(ir::Module& module) {
  for (ir::Graph& graph : module.graphs) {
    RebuildNodes(graph, [&graph](ir::Node node) {
      if (node.op != OpKind::kAttention)
        return AppendNode(graph, std::move(node));
      Decomposition(graph, std::move(node)).Run();
    });
  }
  return OkStatus();
}

}  // namespace hexllm
