#include "ir/weight_size.h"

#include <numeric>
#include <vector>

#include "base/check.h"
#include "ir/encode.h"

namespace hexllm::ir {
namespace {

uint64_t BitsOf(const Encoding& encoding) {
  if (encoding.bits > 0) return static_cast<uint64_t>(encoding.bits);
  return GetDTypeInfo(encoding.dtype).block_bytes * uint64_t{8};
}

// The encoding that the constant has, or that of the lookups in it.
const Encoding* EncodingOf(const Graph& graph, const Node& node,
                           const Constant& constant) {
  if (constant.encoding) return &*constant.encoding;
  const auto& output = graph[node.output].encoding;
  const bool looks_up = node.op == OpKind::kEmbedding && output.has_value();
  return looks_up ? &*output : nullptr;
}

uint64_t BytesOf(const Constant& constant, const Encoding* encoding) {
  if (encoding != nullptr) return EncodedBytes(*encoding, constant.type.shape);
  const auto bytes = StorageBytes(constant.type.dtype, constant.type.shape);
  HX_CHECK(bytes.has_value());
  return *bytes;
}

}  // namespace

uint64_t EncodedBytes(const Encoding& encoding, const Shape& shape) {
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

uint64_t WeightBytes(const Module& module, std::span<const size_t> graphs) {
  std::vector<bool> counted(module.constants.size(), false);
  uint64_t bytes = 0;
  for (const size_t index : graphs) {
    const Graph& graph = module.graphs[index];
    for (const Node& node : graph.nodes) {
      for (const ValueId input : node.inputs) {
        const ConstantId id = graph[input].constant;
        if (!id.valid() || counted[static_cast<size_t>(id.index)]) continue;
        counted[static_cast<size_t>(id.index)] = true;
        const Constant& constant = module.constants[id];
        bytes += BytesOf(constant, EncodingOf(graph, node, constant));
      }
    }
  }
  return bytes;
}

uint64_t WeightBytes(const Module& module) {
  std::vector<size_t> all(module.graphs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return WeightBytes(module, all);
}

}  // namespace hexllm::ir
