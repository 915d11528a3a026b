#include "backend/htp/lower_factors.h"

#include <optional>

#include "backend/htp/lower_encodings.h"
#include "base/check.h"

namespace hexllm::htp {
namespace {

using ir::AttrName;
using ir::Node;
using ir::OpKind;
using ir::ValueId;

// Ops that multiply their first input by a constant.
bool WantsFactor(OpKind op) {
  return op == OpKind::kMatMul || op == OpKind::kScale ||
         op == OpKind::kSoftcap;
}

// What `node`, one of these, would have its first input multiplied by.
double WantedFactor(const Node& node) {
  switch (node.op) {
    case OpKind::kMatMul:
      return FloatAttr(node.attrs, AttrName::kScale);
    case OpKind::kScale:
      return FloatAttr(node.attrs, AttrName::kFactor);
    default:
      return 1 / FloatAttr(node.attrs, AttrName::kCap);
  }
}

// Ops whose output may have any factor.
bool TakesFactor(OpKind op) {
  return op == OpKind::kLinear || op == OpKind::kRmsNorm ||
         op == OpKind::kMatMul;
}

// Ops whose output has the factor of their input.
bool HandsOn(OpKind op) {
  return op == OpKind::kReshape || op == OpKind::kTranspose ||
         op == OpKind::kRope || op == OpKind::kConvert ||
         op == OpKind::kSliceRows;
}

size_t IndexOf(ValueId id) { return static_cast<size_t>(id.index); }

// What the readers of each value want it multiplied by. Those who do not care
// want 1, and two that want different factors get 1.
using Wishes = std::vector<std::optional<double>>;

// Readers before what they read.
Wishes CollectWishes(const ir::Graph& graph) {
  Wishes wishes(graph.values.size());
  const auto ask = [&](ValueId id, double factor) {
    std::optional<double>& wish = wishes[IndexOf(id)];
    wish = wish && *wish != factor ? 1 : factor;
  };
  // Codes are the same with and without a factor, halves are not.
  for (const ir::GraphIo& io : graph.outputs) {
    if (IsHalf(graph[io.value])) ask(io.value, 1);
  }
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const double of_output = wishes[IndexOf(node->output)].value_or(1);
    double first = HandsOn(node->op) ? of_output : 1;
    if (WantsFactor(node->op)) {
      first = WantedFactor(*node);
      if (node->op == OpKind::kMatMul) first *= of_output;
    }
    ask(node->inputs[0], first > 0 ? first : 1);
    for (size_t i = 1; i < node->inputs.size(); ++i) ask(node->inputs[i], 1);
  }
  return wishes;
}

}  // namespace

Factors::Factors(const ir::Graph& graph) : factors_(graph.values.size(), 1.0) {
  const Wishes wishes = CollectWishes(graph);
  for (const Node& node : graph.nodes) {
    double& factor = factors_[IndexOf(node.output)];
    if (TakesFactor(node.op)) factor = wishes[IndexOf(node.output)].value_or(1);
    if (HandsOn(node.op)) factor = Of(node.inputs[0]);
  }
}

double Factors::Remaining(const Node& node) const {
  HX_CHECK(WantsFactor(node.op));
  const double of_output = node.op == OpKind::kMatMul ? Of(node.output) : 1;
  return WantedFactor(node) * of_output / Of(node.inputs[0]);
}

}  // namespace hexllm::htp
