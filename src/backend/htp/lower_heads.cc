#include "backend/htp/lower_heads.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace hexllm::htp {
namespace {

using ir::AttrName;
using ir::Node;
using ir::OpKind;
using ir::ValueId;

// Makes the graph anew, node by node. A value of it may be whole, or in pieces
// along an axis, or both; it is cut and joined when a node wants it otherwise.
class HeadSplitter {
 public:
  HeadSplitter(const ir::Module& module, const ir::Graph& from)
      : module_(module), from_(from), to_(from), made_(from.values.size()) {
    to_.inputs.clear();
    to_.outputs.clear();
    to_.values.clear();
    to_.nodes.clear();
  }

  ir::Graph Run() {
    for (const ir::GraphIo& io : from_.inputs) {
      const ValueId id = to_.AddInput(io.role, from_.type(io.value));
      to_[id].encoding = from_[io.value].encoding;
      Of(io.value).whole = id;
    }
    for (const Node& node : from_.nodes) Add(node);
    for (const ir::GraphIo& io : from_.outputs)
      to_.AddOutput(io.role, Whole(io.value));
    return std::move(to_);
  }

 private:
  // What a value of `from_` is in `to_`. Pieces are equal and in order.
  struct Made {
    ValueId whole = {};
    size_t axis = 0;
    std::vector<ValueId> pieces = {};
  };

  Made& Of(ValueId id) { return made_[static_cast<size_t>(id.index)]; }
  bool IsSplit(ValueId id) { return !Of(id).pieces.empty(); }
  // True when the pieces of a value would follow one another in memory.
  bool IsCutInMemory(ValueId id) {
    const Shape& shape = from_.type(id).shape;
    const auto end = shape.begin() + static_cast<std::ptrdiff_t>(Of(id).axis);
    return std::all_of(shape.begin(), end, [](int64_t n) { return n == 1; });
  }

  void Add(const Node& node);
  void AddReshape(const Node& node);
  void AddTranspose(const Node& node);
  void AddConcat(const Node& node);
  void AddMatMul(const Node& node);
  void AddEach(const Node& node);
  void AddWhole(const Node& node);

  ValueId Whole(ValueId id);
  ValueId Joined(ValueId id);
  const std::vector<ValueId>& Pieces(ValueId id, size_t count);
  void CutHeads(ValueId id);
  // Nodes that move elements of the value `id` of `from_`.
  ValueId Move(ValueId id, OpKind op, std::vector<ValueId> inputs,
               ir::Attrs attrs);
  ValueId SwapAxes(ValueId id, ValueId x);
  ValueId Named(const Node& node, std::vector<ValueId> inputs, ir::Attrs attrs);

  const ir::Module& module_;
  const ir::Graph& from_;
  ir::Graph to_;
  std::vector<Made> made_;  // by value of from_
};

// A piece of `shape` when its memory is cut into `count` equal pieces that are
// whole along the inner axes: [G,R*T,C] in G*R pieces is [1,T,C].
Shape PieceShape(Shape shape, int64_t count) {
  for (int64_t& size : shape) {
    const int64_t here = std::gcd(size, count);
    size /= here;
    count /= here;
    if (count == 1) break;
    HX_CHECK(size == 1);
  }
  return shape;
}

void HeadSplitter::Add(const Node& node) {
  switch (node.op) {
    case OpKind::kReshape:
      return AddReshape(node);
    case OpKind::kTranspose:
      return AddTranspose(node);
    case OpKind::kConcat:
      return AddConcat(node);
    case OpKind::kMatMul:
      return AddMatMul(node);
    case OpKind::kRope:
    case OpKind::kRmsNorm:
    case OpKind::kLayerNorm:
    case OpKind::kConvert:
    case OpKind::kScale:
    case OpKind::kSoftcap:
    case OpKind::kAdd:
    case OpKind::kSoftmax:
      return IsSplit(node.inputs[0]) ? AddEach(node) : AddWhole(node);
    default:
      return AddWhole(node);
  }
}

// Heads begin where a projection [T,H*D] is read as [T,H,D], or one of a single
// token as [H,1,D] or of a single head as [1,T,D]; and where rotated heads
// [T*H,D] are read as [T,H,D], those of a single token as [H,1,D] or [H,D,1].
void HeadSplitter::AddReshape(const Node& node) {
  const ValueId x = node.inputs[0];
  const Shape& shape = from_.type(node.output).shape;
  if (!IsSplit(x) || !IsCutInMemory(x)) {
    AddWhole(node);
    const Shape& flat = from_.type(x).shape;
    if (flat.size() != 2 || shape.size() != 3) return;
    // Of one token, rows of more than one are its rotated heads.
    const bool by_heads = from_.step_tokens == 1 && flat[0] > 1;
    const bool tokens_first =
        by_heads ? shape[0] != flat[0] : shape[0] == from_.step_tokens;
    if (tokens_first) {
      CutHeads(node.output);
    } else {
      Pieces(node.output, static_cast<size_t>(shape[0]));
    }
    return;
  }
  const std::vector<ValueId>& pieces = Of(x).pieces;
  const Shape piece = PieceShape(shape, std::ssize(pieces));
  for (const ValueId id : pieces) {
    Of(node.output)
        .pieces.push_back(Named(node, {id}, {{AttrName::kShape, piece}}));
  }
}

void HeadSplitter::AddTranspose(const Node& node) {
  if (!IsSplit(node.inputs[0])) return AddWhole(node);
  const Shape& perm = ir::IntsAttr(node.attrs, AttrName::kPerm);
  const Made& x = Of(node.inputs[0]);
  const auto axis = static_cast<int64_t>(x.axis);
  Of(node.output).axis = static_cast<size_t>(
      std::find(perm.begin(), perm.end(), axis) - perm.begin());
  for (const ValueId id : x.pieces)
    Of(node.output).pieces.push_back(Named(node, {id}, node.attrs));
}

// Keys and values: the past, a graph input, and the new columns.
void HeadSplitter::AddConcat(const Node& node) {
  const ValueId past = node.inputs[0];
  const ValueId fresh = node.inputs[1];
  if (!IsSplit(fresh)) return AddWhole(node);
  if (NumElements(from_.type(past).shape).value_or(0) == 0) {
    Of(node.output) = Of(fresh);
    return;
  }
  const std::vector<ValueId> news = Of(fresh).pieces;
  const std::vector<ValueId> pasts = Pieces(past, news.size());
  for (size_t i = 0; i < news.size(); ++i) {
    Of(node.output)
        .pieces.push_back(Named(node, {pasts[i], news[i]}, node.attrs));
  }
}

// Each query head with its KV head.
void HeadSplitter::AddMatMul(const Node& node) {
  if (!IsSplit(node.inputs[0]) || !IsSplit(node.inputs[1]))
    return AddWhole(node);
  const std::vector<ValueId>& a = Of(node.inputs[0]).pieces;
  const std::vector<ValueId>& b = Of(node.inputs[1]).pieces;
  HX_CHECK(a.size() % b.size() == 0);
  const size_t group = a.size() / b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    Of(node.output)
        .pieces.push_back(Named(node, {a[i], b[i / group]}, node.attrs));
  }
}

// What is computed head by head: element by element, or along the last axis.
void HeadSplitter::AddEach(const Node& node) {
  const Made& x = Of(node.inputs[0]);
  Of(node.output).axis = x.axis;
  for (const ValueId id : x.pieces) {
    std::vector<ValueId> inputs{id};
    for (size_t i = 1; i < node.inputs.size(); ++i)
      inputs.push_back(Whole(node.inputs[i]));
    Of(node.output)
        .pieces.push_back(Named(node, std::move(inputs), node.attrs));
  }
}

void HeadSplitter::AddWhole(const Node& node) {
  std::vector<ValueId> inputs;
  for (const ValueId id : node.inputs) inputs.push_back(Whole(id));
  Of(node.output).whole = Named(node, std::move(inputs), node.attrs);
}

ValueId HeadSplitter::Whole(ValueId id) {
  Made& made = Of(id);
  if (made.whole.valid()) return made.whole;
  if (const ir::ConstantId constant = from_[id].constant; constant.valid()) {
    made.whole = to_.AddConstant(constant, module_.constants[constant]);
    to_[made.whole].encoding = from_[id].encoding;
  } else {
    made.whole = Joined(id);
  }
  return made.whole;
}

// The pieces one after another. Along another axis than the first, the concat
// is of what lies in memory as [T,D]: the lowering joins its last axis.
ValueId HeadSplitter::Joined(ValueId id) {
  const Made& made = Of(id);
  HX_CHECK(!made.pieces.empty());
  const auto axis = static_cast<int64_t>(made.axis);
  ValueId joined = made.pieces[0];
  for (size_t i = 1; i < made.pieces.size(); ++i) {
    joined = Move(id, OpKind::kConcat, {joined, made.pieces[i]},
                  {{AttrName::kAxis, axis}});
  }
  const Shape& shape = from_.type(id).shape;
  if (to_.type(joined).shape == shape) return joined;
  return Move(id, OpKind::kReshape, {joined}, {{AttrName::kShape, shape}});
}

// `id` cut along its first axis.
const std::vector<ValueId>& HeadSplitter::Pieces(ValueId id, size_t count) {
  Made& made = Of(id);
  if (!made.pieces.empty()) return made.pieces;
  const int64_t rows = from_.type(id).shape[0];
  HX_CHECK(rows == static_cast<int64_t>(count));
  for (int64_t i = 0; i < rows; ++i) {
    made.pieces.push_back(
        Move(id, OpKind::kSliceRows, {made.whole},
             {{AttrName::kBegin, i}, {AttrName::kCount, int64_t{1}}}));
  }
  return made.pieces;
}

// The whole [T,H,D] in H pieces [T,1,D].
void HeadSplitter::CutHeads(ValueId id) {
  Made& made = Of(id);
  made.axis = 1;
  const ValueId heads = SwapAxes(id, made.whole);
  for (int64_t i = 0; i < from_.type(id).shape[1]; ++i) {
    const ValueId head =
        Move(id, OpKind::kSliceRows, {heads},
             {{AttrName::kBegin, i}, {AttrName::kCount, int64_t{1}}});
    made.pieces.push_back(SwapAxes(id, head));
  }
}

ValueId HeadSplitter::SwapAxes(ValueId id, ValueId x) {
  return Move(id, OpKind::kTranspose, {x}, {{AttrName::kPerm, Shape{1, 0, 2}}});
}

ValueId HeadSplitter::Move(ValueId id, OpKind op, std::vector<ValueId> inputs,
                           ir::Attrs attrs) {
  const ir::Value& value = from_[id];
  const ValueId moved =
      to_.AddNode(op, std::move(inputs), std::move(attrs), value.name);
  to_[moved].encoding = value.encoding;
  return moved;
}

ValueId HeadSplitter::Named(const Node& node, std::vector<ValueId> inputs,
                            ir::Attrs attrs) {
  return Move(node.output, node.op, std::move(inputs), std::move(attrs));
}

}  // namespace

AttentionForm FasterForm(const ir::Graph& graph, uint32_t htp) {
  constexpr uint32_t kFasterByHeads = 75;
  if (graph.step_tokens > 1 || htp == kFasterByHeads)
    return AttentionForm::kByHeads;
  // Scores of one token are [G,R,C].
  const bool shared = std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return node.op == OpKind::kMatMul && graph.type(node.output).shape[1] > 1;
  });
  return shared ? AttentionForm::kGrouped : AttentionForm::kByHeads;
}

ir::Graph SplitHeads(const ir::Module& module, const ir::Graph& graph) {
  return HeadSplitter(module, graph).Run();
}

}  // namespace hexllm::htp
