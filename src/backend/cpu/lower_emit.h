// What each op of the IR becomes, one function per op, one file per family. The
// table of all is in lower_ops.cc. Internal to cpu/lower*.
#pragma once

#include "backend/cpu/lower_graph.h"
#include "base/check.h"

namespace hexllm::cpu {

inline int64_t ElementsOf(const Shape& shape) {
  const auto elements = NumElements(shape);
  HX_CHECK(elements.has_value());
  return *elements;
}

inline float FloatOf(const ir::Node& node, ir::AttrName name) {
  return static_cast<float>(FloatAttr(node.attrs, name));
}

// lower_linear.cc
Status EmitEmbedding(GraphLowering& lowering, const ir::Node& node);
Status EmitLinear(GraphLowering& lowering, const ir::Node& node);
// lower_attention.cc
Status EmitRope(GraphLowering& lowering, const ir::Node& node);
Status EmitAttention(GraphLowering& lowering, const ir::Node& node);
Status EmitMatMul(GraphLowering& lowering, const ir::Node& node);
Status EmitSoftmax(GraphLowering& lowering, const ir::Node& node);
// lower_moves.cc
Status EmitTranspose(GraphLowering& lowering, const ir::Node& node);
Status EmitSliceRows(GraphLowering& lowering, const ir::Node& node);
Status EmitConcat(GraphLowering& lowering, const ir::Node& node);

}  // namespace hexllm::cpu
