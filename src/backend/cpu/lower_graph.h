// Lowers one IR graph to a plan: operands, row ranges, scratch memory. What
// each op becomes is in lower_ops.cc. Internal to cpu/lower*.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "backend/cpu/lower_encodings.h"
#include "backend/cpu/lower_weights.h"
#include "backend/cpu/plan.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::cpu {

struct LoweredGraph {
  // `weights` is empty: Plan::weights[i] is to be row weight_rows[i] of the
  // WeightTable once that is written.
  Plan plan;
  std::vector<size_t> weight_rows;
};

// Something made of an activation that several instructions may read: its
// codes.
struct Preparation {
  PlanOp op;
  int64_t bytes = 0;  // of the result
  std::vector<int64_t> ints = {};
  std::vector<float> floats = {};
  bool operator==(const Preparation&) const = default;
};

// State of one lowering. The emit functions of lower_ops.cc call it node by
// node; everything else calls Run.
class GraphLowering {
 public:
  // Both must outlive the object. `graph` is verified; its constants are those
  // of `weights`.
  GraphLowering(const ir::Graph& graph, WeightTable& weights);

  // kUnsupported names graph, node and reason.
  Result<LoweredGraph> Run();

  const ir::Graph& graph() const { return graph_; }
  const Shape& shape(ir::ValueId id) const { return graph_.type(id).shape; }

  // Input `i` of `node` as activations. kUnsupported when it is a constant or
  // not f32 (not i32 for `dtype` kI32).
  Result<Operand> Activation(const ir::Node& node, size_t i,
                             DType dtype = DType::kF32);
  // The constant that input `i` of `node` is. kUnsupported when it is none.
  Result<ir::ConstantId> ConstantOf(const ir::Node& node, size_t i) const;
  const ir::Constant& constant(ir::ConstantId id) const {
    return weights_.constants()[id];
  }
  // Input `i` of `node` as a weight. kUnsupported when it is no constant.
  Result<Operand> Weight(const ir::Node& node, size_t i, WeightForm form);
  Operand Weight(const WeightUse& use) { return WeightRow(weights_.Use(use)); }
  // The table of an embedding (WeightTable::UseTable).
  Operand Table(ir::ConstantId id) { return WeightRow(weights_.UseTable(id)); }

  // `what` made of input `i` of `node`, whose rows along axis 0 are `rows`.
  // Made once, however many nodes ask for it.
  Result<Operand> Prepare(const ir::Node& node, size_t i, RowRange rows,
                          const Preparation& what);

  // The rows of the step that the rows along axis 0 of this value are.
  RowRange AxisRows(ir::ValueId id) const;
  // How the memory of this value is cut by step rows, whatever its shape.
  RowRange MemoryRows(ir::ValueId id) const;
  // All rows of the step.
  RowRange StepRows() const {
    return {.first = all_rows_ ? graph_.step_tokens : 0,
            .count = graph_.step_tokens};
  }
  // Marks memory of `count` rows that are no rows of the step.
  RowRange Unordered(int64_t count) const {
    return {.first = graph_.step_tokens, .count = count};
  }

  // Memory for the node's output, whose memory is cut by `rows`. Takes over the
  // memory of the first of the inputs `in_place` that nothing reads afterwards;
  // the op must read element i of these before it writes element i.
  Operand Output(const ir::Node& node, RowRange rows,
                 std::initializer_list<size_t> in_place = {});
  void Emit(const ir::Node& node, Instruction instruction);

  // "graph 'kv': 'name' = transpose(f32[2,3]): reason".
  Error Unsupported(const ir::Node& node, std::string_view reason) const;

 private:
  // What became of a value. Values that alias each other share the state of
  // their root: the value that is a graph input, a constant or made by an
  // instruction.
  struct ValueState {
    ir::ValueId root;
    size_t last_use = 0;  // node; of roots, any alias counted
    Operand operand;      // roots only; kArena: index = buffer
    RowRange rows;        // roots only
  };
  // Scratch memory, or a graph output.
  struct Buffer {
    uint64_t bytes = 0;
    Operand place;  // kOutput, or kArena with its offset once placed
  };

  ValueState& Root(ir::ValueId id);
  const ValueState& Root(ir::ValueId id) const;
  size_t FindInPlace(const ir::Node& node, std::span<const size_t> candidates,
                     uint64_t bytes) const;
  struct Prepared {
    ir::ValueId root;
    RowRange rows;
    Preparation what;
    Operand made;
  };

  const std::optional<ir::Encoding>& EncodingOf(ir::ValueId id) const {
    return graph_[id].encoding;
  }
  int64_t MemoryWidth(ir::ValueId root) const;
  Operand NewBuffer(uint64_t bytes);
  Operand WeightRow(size_t row);
  void FindRoots();
  void FindLastUses();
  void PlaceInputs();
  void ReserveOutputs();
  Status RunNode(const ir::Node& node);
  void DecodeInput(ir::ValueId root);
  Status Round(const ir::Node& node, Operand from);
  void EncodeOutput(size_t i);
  Status CopyOutput(size_t i);
  Status CopyOutputs();
  void PlaceBuffers();

  const ir::Graph& graph_;
  WeightTable& weights_;
  // NeedsAllRows: no row of the step is skipped.
  const bool all_rows_;
  std::vector<ValueState> values_;
  std::vector<Buffer> buffers_;
  std::vector<Prepared> prepared_;
  // Graph output that a root is written to directly, or -1.
  std::vector<int32_t> output_of_;
  LoweredGraph lowered_;
};

}  // namespace hexllm::cpu
