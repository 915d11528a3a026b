#include "ir/interpret.h"

#include "base/check.h"
#include "ir/encode.h"

namespace hexllm::ir {
namespace {

bool IsIntegral(DType dtype) { return dtype == DType::kI32; }

// Values of one run. Constants are widened when a node needs them and dropped
// afterwards; values live until their last use.
class Run {
 public:
  Run(const Module& module, const Graph& graph)
      : module_(module),
        graph_(graph),
        values_(graph.values.size()),
        uses_(graph.values.size(), 0) {
    for (const Node& node : graph.nodes) {
      for (const ValueId id : node.inputs) ++Uses(id);
    }
    for (const GraphIo& io : graph.outputs) ++Uses(io.value);
  }

  void SetInput(ValueId id, const HostTensor& tensor) {
    const TensorType& type = graph_.type(id);
    HX_CHECK(tensor.type == type);
    const auto count = static_cast<size_t>(*NumElements(type.shape));
    HX_CHECK((IsIntegral(type.dtype) ? tensor.ints.size()
                                     : tensor.floats.size()) == count);
    At(id) = tensor;
  }

  void RunNode(const Node& node) {
    std::vector<const TensorType*> types;
    std::vector<const HostTensor*> tensors;
    std::vector<Operand> operands;
    for (const ValueId id : node.inputs) {
      const Value& value = graph_[id];
      if (value.constant.valid()) ReadRounded(id);
      types.push_back(&value.type);
      tensors.push_back(&At(id));
      operands.push_back(OperandOf(value));
    }
    const Value& made = graph_[node.output];
    const OpContext context{
        .inputs = types,
        .attrs = node.attrs,
        .operands = operands,
        .output = made.encoding ? &*made.encoding : nullptr};
    HostTensor output =
        GetOpInfo(node.op).interpret(context, tensors, made.type);
    if (made.encoding)
      RoundToEncoding(*made.encoding, made.type.shape, output.floats);
    for (const ValueId id : node.inputs) Release(id);
    At(node.output) = std::move(output);
  }

  const HostTensor& Output(ValueId id) { return At(id); }

 private:
  HostTensor& At(ValueId id) { return values_[static_cast<size_t>(id.index)]; }
  int& Uses(ValueId id) { return uses_[static_cast<size_t>(id.index)]; }

  Operand OperandOf(const Value& value) const {
    const Constant* constant =
        value.constant.valid() ? &module_.constants[value.constant] : nullptr;
    const auto& encoding =
        constant != nullptr ? constant->encoding : value.encoding;
    return {.encoding = encoding ? &*encoding : nullptr, .constant = constant};
  }

  // Reads a constant, rounded to its encoding. Not so the block types and
  // biases of linear: it takes them as they are and makes codes of its own.
  void ReadRounded(ValueId id) {
    const Constant& constant = module_.constants[graph_[id].constant];
    At(id) = ReadConstant(constant);
    const auto& encoding = constant.encoding;
    if (!encoding || IsBlockType(encoding->dtype) ||
        encoding->dtype == DType::kI32) {
      return;
    }
    RoundToEncoding(*encoding, constant.type.shape, At(id).floats);
  }

  void Release(ValueId id) {
    if (--Uses(id) == 0 || graph_[id].constant.valid()) At(id) = {};
  }

  const Module& module_;
  const Graph& graph_;
  std::vector<HostTensor> values_;
  std::vector<int> uses_;  // reads still to come
};

}  // namespace

HostTensor ReadConstant(const Constant& constant) {
  const int64_t rows = NumRows(constant);
  const auto width = static_cast<size_t>(RowElems(constant));
  HostTensor out{.type = constant.type};
  out.floats.resize(static_cast<size_t>(rows) * width);
  for (int64_t row = 0; row < rows; ++row) {
    ReadRow(
        constant, row,
        std::span(out.floats).subspan(static_cast<size_t>(row) * width, width));
  }
  return out;
}

std::vector<HostTensor> Interpret(const Module& module, const Graph& graph,
                                  std::span<const HostTensor> inputs) {
  HX_CHECK(inputs.size() == graph.inputs.size());
  Run run(module, graph);
  for (size_t i = 0; i < inputs.size(); ++i)
    run.SetInput(graph.inputs[i].value, inputs[i]);
  for (const Node& node : graph.nodes) run.RunNode(node);
  std::vector<HostTensor> outputs;
  for (const GraphIo& io : graph.outputs)
    outputs.push_back(run.Output(io.value));
  return outputs;
}

}  // namespace hexllm::ir
