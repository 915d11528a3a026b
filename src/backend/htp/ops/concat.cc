// concat: Concat; nothing when one side is empty. A concat that only another
// along the same axis reads adds nothing: its inputs are inputs of that one.
#include <algorithm>
#include <vector>

#include "backend/htp/ops/ops.h"

namespace hexllm::htp {
namespace {

// Input `index` of `node`: what another concat is made of.
struct Piece {
  const ir::Node* node;
  size_t index;

  ir::ValueId value() const { return node->inputs[index]; }
};

int64_t AxisOf(const ir::Node& concat) {
  return IntAttr(concat.attrs, ir::AttrName::kAxis);
}

// The number of the empty input of `node`; 2 = none is.
size_t EmptySide(const GraphLowering& lowering, const ir::Node& node) {
  const auto axis = static_cast<size_t>(AxisOf(node));
  size_t side = 0;
  while (side < 2 && lowering.shape(node.inputs[side])[axis] != 0) ++side;
  return side;
}

// The concat along the same axis that alone reads `node`, or null.
const ir::Node* ContinuedBy(const GraphLowering& lowering,
                            const ir::Node& node) {
  const ir::Node* reader = lowering.OnlyReader(node.output);
  const bool continues =
      reader != nullptr && reader->op == ir::OpKind::kConcat &&
      AxisOf(*reader) == AxisOf(node) && EmptySide(lowering, *reader) == 2;
  return continues ? reader : nullptr;
}

std::vector<Piece> PiecesOf(const GraphLowering& lowering,
                            const ir::Node& node) {
  std::vector<Piece> pieces;
  std::vector<Piece> open = {{&node, 1}, {&node, 0}};
  while (!open.empty()) {
    const Piece piece = open.back();
    open.pop_back();
    const ir::NodeId id = lowering.graph()[piece.value()].producer;
    const ir::Node* made = id.valid() ? &lowering.graph()[id] : nullptr;
    if (made != nullptr && made->op == ir::OpKind::kConcat &&
        EmptySide(lowering, *made) == 2 &&
        ContinuedBy(lowering, *made) == piece.node) {
      open.push_back({made, 1});
      open.push_back({made, 0});
    } else {
      pieces.push_back(piece);
    }
  }
  return pieces;
}

// A shape as a tensor in which the axis is the last one, with what is behind
// it: [T,H,D] along H is [1,1,T,H*D].
Shape JoinedDims(const Shape& shape, size_t axis) {
  int64_t before = 1;
  int64_t behind = 1;
  for (size_t i = 0; i < shape.size(); ++i)
    (i < axis ? before : behind) *= shape[i];
  return {1, 1, before, behind};
}

// True when all pieces lie in memory so.
bool LieJoined(const GraphLowering& lowering, const std::vector<Piece>& pieces,
               size_t axis) {
  return std::all_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return lowering.HasLayout(
        piece.value(),
        {.dims = JoinedDims(lowering.shape(piece.value()), axis)});
  });
}

}  // namespace

Status EmitConcat(GraphLowering& lowering, const ir::Node& node) {
  if (const size_t empty = EmptySide(lowering, node); empty < 2)
    return lowering.AliasReshape(node, 1 - empty);
  HX_RETURN_IF_ERROR(lowering.CheckSameEncoding(node, 0));
  HX_RETURN_IF_ERROR(lowering.CheckSameEncoding(node, 1));
  if (ContinuedBy(lowering, node) != nullptr) return OkStatus();
  const std::vector<Piece> pieces = PiecesOf(lowering, node);
  const auto axis = static_cast<size_t>(AxisOf(node));
  const bool joined = LieJoined(lowering, pieces, axis);
  const auto dims_of = [&](ir::ValueId id) {
    const Shape& shape = lowering.shape(id);
    return joined ? JoinedDims(shape, axis) : Rank4(shape);
  };
  NodeDraft concat{.op = "Concat", .inputs = {}, .params = {}};
  for (const Piece& piece : pieces) {
    HX_ASSIGN_OR_RETURN(const TensorId id,
                        lowering.Input(*piece.node, piece.index,
                                       Layout{.dims = dims_of(piece.value())}));
    concat.inputs.push_back(id);
  }
  const Shape dims = dims_of(node.output);
  const size_t at =
      joined ? dims.size() - 1
             : dims.size() - lowering.shape(node.output).size() + axis;
  concat.params.push_back({"axis", static_cast<uint32_t>(at)});
  return lowering.EmitOutput(node, lowering.EncodingOf(node.output).dtype,
                             {.dims = dims}, std::move(concat));
}

}  // namespace hexllm::htp
