// Lowers one IR graph to a QNN graph: tensors of values, their layouts,
// arithmetic types. What each op becomes is in htp/ops. Internal to htp/lower*
// and htp/ops.
//
// Layouts are made when they are read. A value may be in memory in several: of
// other dimensions, or with its axes in another order. reshape and transpose
// emit nothing; a node asks for the layout that its op needs, and a Reshape or
// Transpose is added when no tensor has it yet. With T = 1 nearly all orders
// are the same memory.
//
// Tensors have rank 4: an IR shape with 1s before it, [T,K] as [1,1,T,K].
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/htp/lower.h"
#include "backend/htp/lower_encodings.h"
#include "backend/htp/lower_factors.h"
#include "backend/htp/lower_weights.h"
#include "backend/htp/qnn_graph.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::htp {

// How a value lies in memory: its axes in the order `perm` (empty = as they
// are), seen as a tensor of `dims`.
struct Layout {
  Shape perm = {};
  Shape dims = {};
};

// [T,K] to [1,1,T,K]. `shape` has at most 4 axes.
Shape Rank4(const Shape& shape);

// A node of the library before its output exists.
struct NodeDraft {
  std::string op;
  std::vector<TensorId> inputs;
  std::vector<NodeParam> params = {};
};

// A tensor between the nodes that one IR node becomes.
struct InnerSpec {
  std::string_view suffix;  // of its name
  Shape dims;
  ir::Encoding encoding;
};

class GraphLowering {
 public:
  // All must outlive the object. `graph` is verified, one of `module`.
  GraphLowering(const ir::Module& module, const ir::Graph& graph,
                const LowerOptions& options, QnnGraph& qnn);

  // Adds all tensors and nodes. kUnsupported names graph, node and reason.
  Status Run();

  // --- What a node is ---

  const ir::Graph& graph() const { return graph_; }
  const Shape& shape(ir::ValueId id) const { return graph_.type(id).shape; }
  const QnnSession& session() const { return qnn_.session(); }
  // True when the library has the op.
  bool HasOp(std::string_view op) const;
  // The node that alone reads `id`, once; null when there is none, or when the
  // value is an output too.
  const ir::Node* OnlyReader(ir::ValueId id) const;
  // The constant that input `i` of `node` is. kUnsupported when it is none.
  Result<const ir::Constant*> ConstantOf(const ir::Node& node, size_t i) const;
  // What its numbers are multiplied by in this graph (lower_factors.h).
  double FactorOf(ir::ValueId id) const { return factors_.Of(id); }
  const Factors& factors() const { return factors_; }
  // The encoding of the value's tensor, its factor included.
  ir::Encoding EncodingOf(ir::ValueId id) const;
  // The widest type of the node's computed inputs and its output.
  DType ArithmeticOf(const ir::Node& node) const;

  // --- Tensors ---

  // Input `i` of `node` in a layout.
  Result<TensorId> Input(const ir::Node& node, size_t i, const Layout& layout);
  // The same in its own shape, and converted to `dtype`, which is not narrower.
  Result<TensorId> Input(const ir::Node& node, size_t i, DType dtype);
  Result<TensorId> Input(const ir::Node& node, size_t i, DType dtype,
                         const Layout& layout);
  // kUnsupported when input `i` and the output have different encodings.
  Status CheckSameEncoding(const ir::Node& node, size_t i) const;
  const TensorSpec& SpecOf(TensorId id) const { return qnn_.tensor(id); }
  // True when the value lies in memory in the order of its axes, as a tensor of
  // layout.dims.
  bool HasLayout(ir::ValueId id, const Layout& ordered) const;
  // A layout that input `i` has already, its own order of axes first. Any will
  // do for what is computed element by element.
  Layout AnyLayout(const ir::Node& node, size_t i) const;
  // One where the last axis is the tensor's; made when there is none yet.
  Layout RowLayout(const ir::Node& node, size_t i) const;
  // One in the order of the axes (perm is empty); made when there is none yet.
  Layout OrderedLayout(const ir::Node& node, size_t i) const;
  // A constant for `node`.
  Result<TensorId> Static(const ir::Node& node, std::string_view suffix,
                          StaticTensor made);
  // A constant of one number.
  Result<TensorId> Scalar(const ir::Node& node, DType dtype, double value);
  Result<TensorId> Inner(const ir::Node& node, InnerSpec spec);
  // A mask [1,1,T,C] `times` times along its rows. Made once for all layers.
  Result<TensorId> Repeated(TensorId mask, int64_t times);

  // --- Nodes ---

  // Adds a node that writes `output`.
  Status Emit(const ir::Node& node, NodeDraft draft, TensorId output);
  // The same into a new inner tensor.
  Result<TensorId> EmitInner(const ir::Node& node, InnerSpec spec,
                             NodeDraft draft);
  // Adds the node that makes the output of `node` in a layout. When `dtype` is
  // wider than the output's, a Convert follows.
  Status EmitOutput(const ir::Node& node, DType dtype, const Layout& layout,
                    NodeDraft draft);
  // The output of `node` is its input `i` under another shape, or its input 0
  // with its axes in another order: output axis j is input axis perm[j].
  // kUnsupported when their encodings differ.
  Status AliasReshape(const ir::Node& node, size_t i);
  Status AliasTranspose(const ir::Node& node, const Shape& perm);

  // "graph 'kv': 'name' = transpose[2,3]: reason".
  Error Unsupported(const ir::Node& node, std::string_view reason) const;

 private:
  // A tensor that holds a value, its axes in the order `perm` (complete).
  struct View {
    Shape perm;
    TensorId tensor;
  };
  // The tensor of a value in a layout: where the views are, what is wanted.
  struct Wanted {
    ir::ValueId value;
    Shape perm;
    Shape dims;
  };

  const Shape& DimsOf(TensorId id) const { return qnn_.tensor(id).shape; }
  const std::vector<View>& ViewsOf(ir::ValueId id) const {
    return views_[static_cast<size_t>(id.index)];
  }
  std::string FreshName(std::string_view base);
  Status AddInputs();
  Status RunNode(const ir::Node& node);
  Status FinishOutputs();
  Status FinishOutput(const ir::GraphIo& io);
  // The graph output that a tensor of the value may be, or null.
  const ir::GraphIo* PendingOutput(const Wanted& wanted) const;
  Result<TensorId> NewTensor(const Wanted& wanted);
  Result<TensorId> Find(const Wanted& wanted);
  Result<TensorId> Reshaped(const Wanted& wanted, TensorId from);
  Result<TensorId> Transposed(const Wanted& wanted, const View& from);
  Result<TensorId> Converted(TensorId from, DType dtype);
  Status AddMove(std::string_view name, NodeDraft draft, TensorId output);

  const ir::Module& module_;
  const ir::Graph& graph_;
  const LowerOptions& options_;
  QnnGraph& qnn_;
  const Factors factors_;
  std::vector<std::vector<View>> views_;               // by value
  std::vector<std::vector<const ir::Node*>> readers_;  // by value
  std::vector<bool> written_;                          // by graph output
  std::map<std::pair<uint32_t, DType>, TensorId> converted_;
  std::map<std::pair<uint32_t, int64_t>, TensorId> repeated_;
  uint32_t names_ = 0;
};

}  // namespace hexllm::htp
