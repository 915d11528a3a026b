#include "quant/attrs_json.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/json.h"
#include "ir/encode.h"
#include "quant/graph_facts.h"

namespace hexllm::quant {
namespace {

int32_t BitsOf(const ir::Encoding& encoding) {
  if (encoding.bits > 0) return encoding.bits;
  if (encoding.dtype == DType::kQ4_1) return 4;
  if (encoding.dtype == DType::kQ8_0) return 8;
  return 8 * static_cast<int32_t>(GetDTypeInfo(encoding.dtype).block_bytes);
}

// Of index `i` of the encoding's axis.
struct Span {
  float min;
  float max;
};
Span SpanAt(const ir::Encoding& encoding, size_t i) {
  const ir::CodeRange codes = ir::CodesOf(encoding);
  const int64_t zero_point =
      encoding.zero_points.empty() ? 0 : encoding.zero_points[i];
  float scale = encoding.scales[i];
  if (encoding.block > 0) {
    const size_t blocks = encoding.block_scales.size() / encoding.scales.size();
    const auto first =
        encoding.block_scales.begin() + static_cast<std::ptrdiff_t>(i * blocks);
    scale *= static_cast<float>(
        *std::max_element(first, first + static_cast<std::ptrdiff_t>(blocks)));
  }
  return {static_cast<float>(codes.least - zero_point) * scale,
          static_cast<float>(codes.most - zero_point) * scale};
}

void AddGrid(const ir::Encoding& encoding, Json& out) {
  if (encoding.axis < 0) {
    out["scale"] = encoding.scales[0];
    out["zero_point"] =
        encoding.zero_points.empty() ? 0 : encoding.zero_points[0];
  } else {
    out["axis"] = encoding.axis;
    if (encoding.block > 0) out["block"] = encoding.block;
    out["scales"] = encoding.scales;
    if (!encoding.zero_points.empty())
      out["zero_points"] = encoding.zero_points;
  }
  if (encoding.scales.empty()) return;
  Span all = SpanAt(encoding, 0);
  for (size_t i = 1; i < encoding.scales.size(); ++i) {
    const Span span = SpanAt(encoding, i);
    all = {std::min(all.min, span.min), std::max(all.max, span.max)};
  }
  out["min"] = all.min;
  out["max"] = all.max;
}

Json ToJson(const ir::Encoding& encoding) {
  Json out = {{"dtype", DTypeName(encoding.dtype)}, {"bits", BitsOf(encoding)}};
  if (ir::HasCodes(encoding)) AddGrid(encoding, out);
  if (IsBlockType(encoding.dtype))
    out["block"] = GetDTypeInfo(encoding.dtype).block_elems;
  return out;
}

void AddValues(const ir::Graph& graph, std::map<std::string, Json>& values) {
  for (const ir::GraphIo& io : graph.inputs) {
    if (const auto& encoding = graph[io.value].encoding)
      values.emplace(graph[io.value].name, ToJson(*encoding));
  }
  for (const ir::Node& node : graph.nodes) {
    const ir::Value& value = graph[node.output];
    if (value.encoding && !IsDataMovement(node.op))
      values.emplace(value.name, ToJson(*value.encoding));
  }
}

void AddWeights(const ir::Module& module,
                std::map<std::string, Json>& weights) {
  std::set<ir::ConstantId> seen;
  for (const ir::Graph& graph : module.graphs) {
    for (const ir::Value& value : graph.values) {
      if (!value.constant.valid() || !seen.insert(value.constant).second)
        continue;
      const ir::Constant& constant = module.constants[value.constant];
      if (constant.encoding)
        weights.emplace(constant.name, ToJson(*constant.encoding));
    }
  }
}

Json ToObject(std::map<std::string, Json> members) {
  Json out = Json::object();
  for (auto& [name, json] : members) out[name] = std::move(json);
  return out;
}

}  // namespace

std::string EncodingsToJson(const ir::Module& module) {
  std::map<std::string, Json> values, weights;
  for (const ir::Graph& graph : module.graphs) AddValues(graph, values);
  AddWeights(module, weights);
  const Json out = {{"version", 1},
                    {"values", ToObject(std::move(values))},
                    {"weights", ToObject(std::move(weights))}};
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hexllm::quant
