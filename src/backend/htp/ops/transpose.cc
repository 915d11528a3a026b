// transpose: no node; who reads the value asks for the order of axes.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitTranspose(GraphLowering& lowering, const ir::Node& node) {
  return lowering.AliasTranspose(node,
                                 IntsAttr(node.attrs, ir::AttrName::kPerm));
}

}  // namespace hexllm::htp
