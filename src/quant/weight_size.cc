#include "quant/weight_size.h"

#include <vector>

#include "base/check.h"
#include "ir/encode.h"

namespace hexllm::quant {
namespace {

uint64_t BitsOf(const ir::Encoding& encoding) {
  if (encoding.bits > 0) return static_cast<uint64_t>(encoding.bits);
  return GetDTypeInfo(encoding.dtype).block_bytes * uint64_t{8};
}

uint64_t EncodedBytes(const ir::Encoding& encoding, const Shape& shape) {
  if (IsBlockType(encoding.dtype)) {
    const auto bytes = StorageBytes(encoding.dtype, shape);
    HX_CHECK(bytes.has_value());
    return *bytes;
  }
  const auto elements = NumElements(shape);
  HX_CHECK(elements.has_value());
  return (static_cast<uint64_t>(*elements) * BitsOf(encoding) + 7) / 8 +
         encoding.scales.size() * sizeof(float) + encoding.block_scales.size();
}

// The encoding that the constant has, or that of the lookups in it.
const ir::Encoding* EncodingOf(const ir::Graph& graph, const ir::Node& node,
                               const ir::Constant& constant) {
  if (constant.encoding) return &*constant.encoding;
  const auto& output = graph[node.output].encoding;
  const bool looks_up = node.op == ir::OpKind::kEmbedding && output.has_value();
  return looks_up ? &*output : nullptr;
}

uint64_t BytesOf(const ir::Constant& constant, const ir::Encoding* encoding) {
  if (encoding != nullptr) return EncodedBytes(*encoding, constant.type.shape);
  const auto bytes = StorageBytes(constant.type.dtype, constant.type.shape);
  HX_CHECK(bytes.has_value());
  return *bytes;
}

}  // namespace

uint64_t WeightBytes(const ir::Module& module) {
  std::vector<bool> counted(module.constants.size(), false);
  uint64_t bytes = 0;
  for (const ir::Graph& graph : module.graphs) {
    for (const ir::Node& node : graph.nodes) {
      for (const ir::ValueId input : node.inputs) {
        const ir::ConstantId id = graph[input].constant;
        if (!id.valid() || counted[static_cast<size_t>(id.index)]) continue;
        counted[static_cast<size_t>(id.index)] = true;
        const ir::Constant& constant = module.constants[id];
        bytes += BytesOf(constant, EncodingOf(graph, node, constant));
      }
    }
  }
  return bytes;
}

}  // namespace hexllm::quant
