#include "backend/htp/lower_rounding.h"

#include "ir/encode.h"

namespace hexllm::htp {
namespace {

constexpr uint32_t kFirstToDrop = 73;  // the first generation that does

bool IsU16(const std::optional<ir::Encoding>& encoding) {
  return encoding && encoding->dtype == DType::kU16;
}

bool HasMiddleZero(const ir::Encoding& encoding, int32_t middle) {
  return encoding.zero_points == std::vector<int32_t>{middle};
}

int64_t BitsOfLinear(const ir::Module& module, const ir::Graph& graph,
                     const ir::Node& node) {
  const ir::ConstantId weight = graph[node.inputs[1]].constant;
  if (!weight.valid()) return 0;
  const auto& w = module.constants[weight].encoding;
  return w && w->dtype == DType::kI8 ? 8 : 0;
}

// Other zero points are converted first.
int64_t BitsOfMatMul(const ir::Graph& graph, const ir::Node& node) {
  const auto& b = graph[node.inputs[1]].encoding;
  if (!b) return 0;
  if (b->dtype == DType::kU8) return HasMiddleZero(*b, 128) ? 8 : 0;
  return b->dtype == DType::kU16 && HasMiddleZero(*b, 32768) ? 16 : 0;
}

int64_t DroppedBits(const ir::Module& module, const ir::Graph& graph,
                    const ir::Node& node) {
  const auto& y = graph[node.output].encoding;
  if (!y || !ir::HasCodes(*y)) return 0;
  if (!IsU16(graph[node.inputs[0]].encoding)) return 0;
  if (node.op == ir::OpKind::kLinear) return BitsOfLinear(module, graph, node);
  return node.op == ir::OpKind::kMatMul ? BitsOfMatMul(graph, node) : 0;
}

bool IsFixedPoint(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != ir::OpKind::kConvert) return false;
  const auto& x = graph[node.inputs[0]].encoding;
  const auto& y = graph[node.output].encoding;
  return x && y && ir::FindConversion(*x, *y).has_value();
}

}  // namespace

void ModelRounding(ir::Module& module, const Soc& soc) {
  for (ir::Graph& graph : module.graphs) {
    for (ir::Node& node : graph.nodes) {
      if (IsFixedPoint(graph, node))
        node.attrs = {{ir::AttrName::kFixedPoint, int64_t{1}}};
      const int64_t bits =
          soc.htp < kFirstToDrop ? 0 : DroppedBits(module, graph, node);
      if (bits > 0) node.attrs.push_back({ir::AttrName::kDroppedBits, bits});
    }
  }
}

}  // namespace hexllm::htp
