// reshape: no node; the tensor is seen under another shape by who reads it.
#include "backend/htp/ops/ops.h"

namespace hexllm::htp {

Status EmitReshape(GraphLowering& lowering, const ir::Node& node) {
  return lowering.AliasReshape(node, 0);
}

}  // namespace hexllm::htp
