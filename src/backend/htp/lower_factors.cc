#include "backend/htp/lower_factors.h"

#include "base/check.h"

namespace hexllm::htp {
namespace {

using ir::AttrName;
using ir::Node;
using ir::OpKind;
using ir::ValueId;

bool WantsFactor(const Node& node) {
  return node.op == OpKind::kMatMul || node.op == OpKind::kScale ||
         node.op == OpKind::kSoftcap;
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

bool IsHalf(const ir::Value& value) {
  return value.encoding && value.encoding->dtype == DType::kF16;
}

}  // namespace

Factors::Factors(const ir::Graph& graph)
    : graph_(graph),
      uses_(graph.values.size()),
      factors_(graph.values.size(), 1.0) {
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) ++uses_[static_cast<size_t>(id.index)];
  }
  // Codes are the same with and without a factor, halves are not.
  for (const ir::GraphIo& io : graph.outputs) {
    if (IsHalf(graph[io.value])) ++uses_[static_cast<size_t>(io.value.index)];
  }
  // Readers before what they read.
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (!WantsFactor(*node)) continue;
    const double wanted = Remaining(*node);
    if (wanted != 1 && wanted > 0 && CanTake(node->inputs[0])) {
      Give(node->inputs[0], wanted);
    }
  }
}

double Factors::Remaining(const Node& node) const {
  HX_CHECK(WantsFactor(node));
  const double of_output = node.op == OpKind::kMatMul ? Of(node.output) : 1;
  return WantedFactor(node) * of_output / Of(node.inputs[0]);
}

bool Factors::CanTake(ValueId id) const {
  const ir::Value& value = graph_[id];
  if (uses_[static_cast<size_t>(id.index)] != 1 || !value.producer.valid()) {
    return false;
  }
  const Node& node = graph_[value.producer];
  switch (node.op) {
    case OpKind::kLinear:
    case OpKind::kRmsNorm:
    case OpKind::kMatMul:
      return true;
    case OpKind::kReshape:
    case OpKind::kTranspose:
    case OpKind::kRope:
    case OpKind::kConvert:
      return CanTake(node.inputs[0]);
    default:
      return false;
  }
}

void Factors::Give(ValueId id, double factor) {
  factors_[static_cast<size_t>(id.index)] = factor;
  const Node& node = graph_[graph_[id].producer];
  switch (node.op) {
    case OpKind::kLinear:
    case OpKind::kRmsNorm:
    case OpKind::kMatMul:
      return;
    default:
      Give(node.inputs[0], factor);
  }
}

}  // namespace hexllm::htp
