#include "ir/fingerprint.h"

#include "ir/text.h"

namespace hexllm::ir {
namespace {

void AddEncoding(const Encoding& encoding, Hasher& hasher) {
  // All of its fields, or this does not compile.
  const auto& [dtype, bits, axis, block, scales, zero_points, block_scales] =
      encoding;
  hasher.AddNumber(dtype);
  hasher.AddNumber(bits);
  hasher.AddNumber(axis);
  hasher.AddNumber(block);
  hasher.AddNumbers<float>(scales);
  hasher.AddNumbers<int32_t>(zero_points);
  hasher.AddNumbers<uint8_t>(block_scales);
}

}  // namespace

const Digest& Fingerprints::OfConstant(ConstantId id) {
  const auto [place, is_new] = constants_.try_emplace(id);
  if (!is_new) return place->second;
  const Constant& constant = module_.constants[id];
  Hasher hasher;
  hasher.Add(constant.name);
  hasher.AddNumber(constant.type.dtype);
  hasher.AddNumbers<int64_t>(constant.type.shape);
  hasher.Add(constant.bytes);
  hasher.AddNumbers<int64_t>(constant.rows);
  hasher.AddNumber(constant.encoding.has_value());
  if (constant.encoding) AddEncoding(*constant.encoding, hasher);
  hasher.Add(constant.codes);
  return place->second = hasher.Finish();
}

void Fingerprints::AddGraphs(std::span<const size_t> graphs, Hasher& hasher) {
  // Constants are numbered in the order of their first readers.
  std::map<ConstantId, ConstantId> numbers;
  for (const size_t index : graphs) {
    Module alone;
    Graph& graph = alone.graphs.emplace_back(module_.graphs[index]);
    for (const Node& node : graph.nodes) {
      for (const ValueId input : node.inputs) {
        const ConstantId id = module_.graphs[index][input].constant;
        if (!id.valid()) continue;
        const ConstantId next = {static_cast<int32_t>(numbers.size())};
        const auto [place, is_new] = numbers.try_emplace(id, next);
        if (is_new) hasher.Add(OfConstant(id));
        graph[input].constant = place->second;
      }
    }
    hasher.Add(Print(alone));
  }
}

}  // namespace hexllm::ir
