// What each op of the IR becomes in a QNN graph: one file per op. Internal to
// htp/lower* and htp/ops.
//
// A node is computed in one type: f16 when one of its computed inputs or its
// output is f16, else u16 when one has 16 bits, else u8. Narrower inputs are
// converted before (exactly: u8 codes times 256), a narrower output after.
#pragma once

#include "backend/htp/lower_graph.h"
#include "backend/htp/soc_table.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::htp {

// Adds what `node` becomes. kUnsupported names the node and what about it the
// HTP does not have.
Status EmitNode(GraphLowering& lowering, const ir::Node& node);

// Ok, or what RequireFeature says, with the graph and the node that needs it.
Status RequireFor(const GraphLowering& lowering, const ir::Node& node,
                  Feature feature);

// The parameter of a StridedSlice that takes [begin,end) of one axis of a
// tensor of `dims`, and all of the others.
ArrayParam<int32_t> SliceRanges(const Shape& dims, size_t axis, int64_t begin,
                                int64_t end);

// The parameters of the norms: over the last axis of `layout`.
std::vector<NodeParam> NormParams(const ir::Node& node, const Layout& layout);

Status EmitAdd(GraphLowering& lowering, const ir::Node& node);
Status EmitConcat(GraphLowering& lowering, const ir::Node& node);
Status EmitConvert(GraphLowering& lowering, const ir::Node& node);
Status EmitEmbedding(GraphLowering& lowering, const ir::Node& node);
Status EmitGelu(GraphLowering& lowering, const ir::Node& node);
Status EmitLayerNorm(GraphLowering& lowering, const ir::Node& node);
Status EmitLinear(GraphLowering& lowering, const ir::Node& node);
Status EmitMatMul(GraphLowering& lowering, const ir::Node& node);
Status EmitMul(GraphLowering& lowering, const ir::Node& node);
Status EmitReshape(GraphLowering& lowering, const ir::Node& node);
Status EmitRmsNorm(GraphLowering& lowering, const ir::Node& node);
Status EmitRope(GraphLowering& lowering, const ir::Node& node);
Status EmitScale(GraphLowering& lowering, const ir::Node& node);
Status EmitSilu(GraphLowering& lowering, const ir::Node& node);
Status EmitSliceRows(GraphLowering& lowering, const ir::Node& node);
Status EmitSoftcap(GraphLowering& lowering, const ir::Node& node);
Status EmitSoftmax(GraphLowering& lowering, const ir::Node& node);
Status EmitTranspose(GraphLowering& lowering, const ir::Node& node);

}  // namespace hexllm::htp
