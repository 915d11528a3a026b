#include "backend/htp/lower_rounding.h"

#include <cmath>

#include "base/half.h"
#include "ir/encode.h"

namespace hexllm::htp {
namespace {

constexpr uint32_t kFirstToDrop = 73;  // the first generation that does

bool Has(const std::optional<ir::Encoding>& encoding, DType dtype) {
  return encoding && encoding->dtype == dtype;
}

bool HasMiddleZero(const ir::Encoding& encoding, int32_t middle) {
  return encoding.zero_points == std::vector<int32_t>{middle};
}

// The weight of a linear, when its codes have 8 bits or less.
const ir::Encoding* ByteWeight(const ir::Module& module, const ir::Graph& graph,
                               const ir::Node& node) {
  const ir::ConstantId weight = graph[node.inputs[1]].constant;
  if (!weight.valid()) return nullptr;
  const auto& w = module.constants[weight].encoding;
  return Has(w, DType::kI8) ? &*w : nullptr;
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
  if (!Has(graph[node.inputs[0]].encoding, DType::kU16)) return 0;
  if (node.op == ir::OpKind::kLinear)
    return ByteWeight(module, graph, node) == nullptr ? 0 : 8;
  return node.op == ir::OpKind::kMatMul ? BitsOfMatMul(graph, node) : 0;
}

bool IsFixedPointLinear(const ir::Module& module, const ir::Graph& graph,
                        const ir::Node& node) {
  if (node.op != ir::OpKind::kLinear) return false;
  const ir::Encoding* w = ByteWeight(module, graph, node);
  return w != nullptr && w->block == 0 &&
         Has(graph[node.inputs[0]].encoding, DType::kU8) &&
         Has(graph[node.output].encoding, DType::kU8);
}

void ModelConvert(const ir::Graph& graph, ir::Node& node) {
  const auto& x = graph[node.inputs[0]].encoding;
  const auto& y = graph[node.output].encoding;
  if (!x || !y) return;
  if (ir::FindConversion(*x, *y))
    node.attrs = {{ir::AttrName::kFixedPoint, int64_t{1}}};
  if (Has(x, DType::kF16) && Has(y, DType::kU8))
    node.attrs = {{ir::AttrName::kHalfSteps, int64_t{1}}};
}

void ModelSums(const ir::Module& module, const ir::Graph& graph,
               ir::Node& node) {
  const int64_t bits = DroppedBits(module, graph, node);
  if (bits > 0) node.attrs.push_back({ir::AttrName::kDroppedBits, bits});
  if (IsFixedPointLinear(module, graph, node))
    node.attrs.push_back({ir::AttrName::kFixedPoint, int64_t{1}});
}

void ModelNorm(const ir::Graph& graph, ir::Node& node) {
  const auto& x = graph[node.inputs[0]].encoding;
  const auto& y = graph[node.output].encoding;
  if (Has(x, DType::kF16) && Has(y, DType::kF16))
    node.attrs.push_back({ir::AttrName::kFastRoot, int64_t{1}});
  if (Has(x, DType::kU16) && Has(y, DType::kU16))
    node.attrs.push_back({ir::AttrName::kRoundsDown, int64_t{1}});
}

// Rows of two numbers have a way of their own.
void ModelSoftmax(const ir::Graph& graph, ir::Node& node) {
  const auto& x = graph[node.inputs[0]].encoding;
  const ir::Encoding probabilities{.scales = {1.0F / 65536}};
  auto y = graph[node.output].encoding;
  if (y && y->zero_points == std::vector<int32_t>{0}) y->zero_points.clear();
  if (Has(x, DType::kU16) && y == probabilities &&
      graph.type(node.output).shape.back() > 2) {
    node.attrs = {{ir::AttrName::kFixedPoint, int64_t{1}}};
  }
}

void ModelScale(const ir::Graph& graph, ir::Node& node) {
  if (!Has(graph[node.output].encoding, DType::kF16)) return;
  const auto factor =
      static_cast<float>(ir::FloatAttr(node.attrs, ir::AttrName::kFactor));
  const float half = F16ToF32(F32ToF16(factor));
  if (std::isfinite(half))
    node.attrs = {{ir::AttrName::kFactor, static_cast<double>(half)}};
}

}  // namespace

void ModelRounding(ir::Module& module, const Soc& soc) {
  for (ir::Graph& graph : module.graphs) {
    for (ir::Node& node : graph.nodes) {
      if (node.op == ir::OpKind::kConvert) ModelConvert(graph, node);
      if (node.op == ir::OpKind::kScale) ModelScale(graph, node);
      if (soc.htp < kFirstToDrop) continue;
      if (node.op == ir::OpKind::kRmsNorm) ModelNorm(graph, node);
      if (node.op == ir::OpKind::kSoftmax) ModelSoftmax(graph, node);
      ModelSums(module, graph, node);
    }
  }
}

}  // namespace hexllm::htp
