// A QNN graph under construction: tensors, nodes, finalize. Used by the
// lowering. Knows nothing of the IR; checks what the library does not.
//
// Order of calls: Create, then tensors and nodes (a node's tensors first, in
// topological order), then Finalize. After an error the graph and its context
// are of no use any more.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backend/htp/qnn_abi.h"
#include "backend/htp/qnn_session.h"
#include "backend/htp/qnn_tensor.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/status.h"

namespace hexllm::htp {

// Settings of one graph.
struct GraphOptions {
  // The compiler's effort, 1 to 3. 2 or 3 for steps of many tokens; 1 compiles
  // up to 6 times faster and decodes as fast.
  uint32_t optimization = 3;
  uint32_t vtcm_mb = 0;  // 0 = all that the SoC has
  // Computes f32 tensors in half precision. Tensors that are f16 need it not.
  bool f32_as_f16 = false;
  // Internal keys of the vendor's compiler, as text ("hextimate", "1").
  // Unknown ones are ignored by it. See estimate.h.
  std::vector<std::pair<std::string, std::string>> finalize_keys = {};
};

// One tensor of a QnnGraph; valid for that graph only.
struct TensorId {
  uint32_t index = UINT32_MAX;
  bool operator==(const TensorId&) const = default;
};

// An array parameter of a node, row-major: "stride" [2], "ranges" [rank,3].
template <typename T>
struct ArrayParam {
  std::vector<uint32_t> shape;
  std::vector<T> values;
};

struct NodeParam {
  std::string name;
  std::variant<bool, uint32_t, int32_t, float, ArrayParam<uint32_t>,
               ArrayParam<int32_t>>
      value;
};

// One node. Names of ops and parameters are the library's.
struct NodeSpec {
  std::string name;  // for messages and traces: the IR's value name
  std::string op;    // "Conv2d"
  std::vector<TensorId> inputs = {};
  std::vector<TensorId> outputs = {};
  std::vector<NodeParam> params = {};
};

class QnnGraph {
 public:
  // `name` must be new in the context (kUsage).
  static Result<std::unique_ptr<QnnGraph>> Create(
      std::shared_ptr<QnnContext> context, std::string name,
      const GraphOptions& options);

  const std::string& name() const { return name_; }
  const QnnSession& session() const { return context_->session(); }
  const TensorSpec& tensor(TensorId id) const;

  // Adds a graph input, output or inner tensor. kUsage when the name is taken
  // or the spec does not make sense.
  Result<TensorId> AddTensor(TensorSpec spec);
  // Adds a constant of spec.use kStatic. `data` has exactly the tensor's bytes
  // (kUsage otherwise; a 4-bit code takes a byte) and is copied: it may go when
  // this returns.
  Result<TensorId> AddStatic(TensorSpec spec, ByteSpan data);

  // Validates a node and adds it. What the library refuses is kUnsupported and
  // names node, op, tensors with types, and generation: it would compile, but
  // compute garbage.
  Status AddNode(const NodeSpec& node);

  // Compiles the graph. kUnsupported when the compiler gives up, with its first
  // error lines, and the first node that does not compile alone either: what
  // validation lets through is found here.
  Status Finalize();

  // Name, ids, types and encodings of inputs and outputs, in the order in
  // which they were added: what QnnExecutable needs to run a graph in the
  // context that it was compiled in.
  GraphInfo Info() const;

 private:
  class NodeBuilder;

  QnnGraph(std::shared_ptr<QnnContext> context, std::string name)
      : context_(std::move(context)), name_(std::move(name)) {}
  Status Open(const GraphOptions& options);
  Result<TensorId> Register(TensorSpec spec, ByteSpan data);
  Status CheckNode(const NodeSpec& node) const;
  Status Compile();
  // "node ...: SM8750 (v79) refuses ...", or that each node compiles alone.
  // Compiles every kind of node in a context of its own.
  std::string FindRefused() const;
  bool CompilesAlone(const NodeSpec& node) const;
  std::string DescribeNode(const NodeSpec& node) const;

  std::shared_ptr<QnnContext> context_;
  std::string name_;
  abi::Handle handle_ = nullptr;  // freed with the context
  std::vector<std::unique_ptr<TensorRecord>> tensors_;
  std::set<std::string, std::less<>> names_;
  std::vector<NodeSpec> nodes_;
  bool finalized_ = false;
};

}  // namespace hexllm::htp
