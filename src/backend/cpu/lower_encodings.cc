#include "backend/cpu/lower_encodings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ir/encode.h"
#include "ir/ops/transpose.h"

namespace hexllm::cpu {
namespace {

using ir::Encoding;
using ir::Node;
using ir::OpKind;

int32_t ZeroPoint(const Encoding& encoding) {
  return encoding.zero_points.empty() ? 0 : encoding.zero_points[0];
}

bool IsSupported(const Encoding& encoding) {
  if (encoding.dtype == DType::kF16) return true;
  if (!HasCodes(encoding) || encoding.dtype == DType::kI32 ||
      encoding.axis >= 0 || encoding.block != 0) {
    return false;
  }
  const float scale = encoding.scales[0];
  return std::isnormal(scale) && std::isnormal(1 / scale);
}

Result<Instruction> ConvertHalvesInstruction(const Encoding& to,
                                             int64_t width) {
  if (to.dtype != DType::kU8) {
    return Error{ErrorCode::kUnsupported,
                 "half_steps: expected a convert to u8"};
  }
  return Instruction{.op = PlanOp::kConvertHalves,
                     .ints = {width, ZeroPoint(to)},
                     .floats = {to.scales[0]}};
}

}  // namespace

Status CheckValueEncodings(const ir::Graph& graph) {
  for (const ir::Value& value : graph.values) {
    if (!value.encoding || value.constant.valid() ||
        IsSupported(*value.encoding)) {
      continue;
    }
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("graph '{}': the encoding of value '{}': expected f16, or "
                    "codes of 8 or 16 bits with one scale",
                    graph.name, value.name)};
  }
  return OkStatus();
}

bool OnlyMoves(const Node& node) {
  return node.op == OpKind::kReshape || node.op == OpKind::kTranspose ||
         node.op == OpKind::kSliceRows || node.op == OpKind::kConcat ||
         node.op == OpKind::kConvert;
}

bool NeedsRounding(const ir::Graph& graph, const Node& node) {
  const auto& encoding = graph[node.output].encoding;
  if (!encoding) return false;
  if (!OnlyMoves(node))
    return !IsInFixedPoint(node) && !IsNormRoundedDown(node);
  return std::any_of(
      node.inputs.begin(), node.inputs.end(),
      [&](ir::ValueId id) { return graph[id].encoding != encoding; });
}

bool NeedsAllRows(const ir::Graph& graph) {
  // [T,G,D] to [G,D,T] and [G,T,D]: what attention reads, which hides padding.
  const auto keeps_rows_apart = [](const Node& node) {
    const auto& perm = IntsAttr(node.attrs, ir::AttrName::kPerm);
    return perm == std::vector<int64_t>{1, 2, 0} ||
           perm == std::vector<int64_t>{1, 0, 2};
  };
  return std::any_of(
      graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
        if (node.op == OpKind::kTranspose) {
          return !KeepsMemory(graph, node) && !keeps_rows_apart(node);
        }
        return node.op == OpKind::kMatMul || node.op == OpKind::kConcat ||
               node.op == OpKind::kSoftmax;
      });
}

bool KeepsMemory(const ir::Graph& graph, const Node& node) {
  const Shape& shape = graph.type(node.inputs[0]).shape;
  switch (node.op) {
    case OpKind::kReshape:
    case OpKind::kConvert:
      return true;
    case OpKind::kTranspose:
      return ir::KeepsOrder(shape, IntsAttr(node.attrs, ir::AttrName::kPerm));
    case OpKind::kSliceRows:
      return IntAttr(node.attrs, ir::AttrName::kCount) == shape[0];
    default:
      return false;
  }
}

bool IsAlias(const ir::Graph& graph, const Node& node) {
  return KeepsMemory(graph, node) && !NeedsRounding(graph, node);
}

Instruction RoundInstruction(const Encoding& encoding, int64_t width) {
  if (encoding.dtype == DType::kF16) {
    return {.op = PlanOp::kRoundF16, .ints = {width}};
  }
  const ir::CodeRange range = CodesOf(encoding);
  return {.op = PlanOp::kRound,
          .ints = {width, range.least, range.most, ZeroPoint(encoding)},
          .floats = {encoding.scales[0]}};
}

Result<Instruction> ConvertInstruction(const Encoding* from, const Encoding& to,
                                       const ir::Attrs& attrs, int64_t width) {
  if (OptionalIntAttr(attrs, ir::AttrName::kHalfSteps) != 0)
    return ConvertHalvesInstruction(to, width);
  if (OptionalIntAttr(attrs, ir::AttrName::kFixedPoint) == 0)
    return RoundInstruction(to, width);
  const auto by =
      from == nullptr ? std::nullopt : ir::FindConversion(*from, to);
  if (!by) {
    return Error{ErrorCode::kUnsupported,
                 "fixed_point: expected a convert from u16 to u8 of a scale "
                 "more than 32 times as large"};
  }
  return Instruction{.op = PlanOp::kConvertCodes,
                     .ints = {width, by->multiplier, by->shift, by->offset,
                              ZeroPoint(*from), ZeroPoint(to)},
                     .floats = {from->scales[0], to.scales[0]}};
}

bool IsNormRoundedDown(const Node& node) {
  return node.op == OpKind::kRmsNorm &&
         OptionalIntAttr(node.attrs, ir::AttrName::kRoundsDown) != 0;
}

bool IsInFixedPoint(const Node& node) {
  return node.op != OpKind::kConvert &&
         OptionalIntAttr(node.attrs, ir::AttrName::kFixedPoint) != 0;
}

Instruction CodecInstruction(PlanOp op, const Encoding& encoding,
                             int64_t width) {
  const bool codes = HasCodes(encoding);
  return {.op = op,
          .ints = {width, static_cast<int64_t>(encoding.dtype),
                   codes ? ZeroPoint(encoding) : 0},
          .floats = {codes ? encoding.scales[0] : 1.0f}};
}

std::optional<UnsignedGrid> UnsignedGridOf(const Encoding& encoding) {
  if (!IsSupported(encoding) || !HasCodes(encoding)) return std::nullopt;
  int64_t shift = 0;
  if (encoding.dtype == DType::kI8) shift = 128;
  if (encoding.dtype == DType::kI16) shift = 32768;
  return UnsignedGrid{.code_bytes = GetDTypeInfo(encoding.dtype).block_bytes,
                      .zero_point = ZeroPoint(encoding) + shift,
                      .scale = encoding.scales[0]};
}

}  // namespace hexllm::cpu
