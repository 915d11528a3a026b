#include "passes/convert_kv.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "passes/rewrite.h"

namespace hexllm {
namespace {

using ir::OpKind;
using ir::ValueId;

// Keys or values.
struct Side {
  RoleKind out;
  RoleKind in;
  std::string_view concat;  // ending of the concat that reads the past
  std::string_view cache;   // ending of the convert
};

constexpr Side kSides[] = {
    {RoleKind::kKOut, RoleKind::kKIn, ".keys", ".k_cache"},
    {RoleKind::kVOut, RoleKind::kVIn, ".values", ".v_cache"}};

// The name of the attention of `graph` that reads `past`, without its ending;
// empty when there is none.
std::string AttentionPrefix(const ir::Graph& graph, ValueId past,
                            std::string_view concat) {
  for (const ir::Node& node : graph.nodes) {
    if (std::find(node.inputs.begin(), node.inputs.end(), past) ==
        node.inputs.end()) {
      continue;
    }
    const std::string& name = graph[node.output].name;
    if (node.op == OpKind::kAttention) return WithoutSuffix(name, ".attention");
    if (node.op == OpKind::kConcat) return WithoutSuffix(name, concat);
  }
  return "";
}

// The name of a layer's convert, the same in all graphs: one without logits
// lacks the last layer's attention, but not its cache.
std::string ConvertName(const ir::Module& module, const Side& side,
                        const ir::GraphIo& out, const std::string& out_name) {
  const Role past{.kind = side.in, .index = out.role.index};
  std::string prefix;
  for (const ir::Graph& graph : module.graphs) {
    const ValueId value = graph.FindIo(past);
    if (prefix.empty() && value.valid())
      prefix = AttentionPrefix(graph, value, side.concat);
  }
  return (prefix.empty() ? out_name : prefix) + std::string(side.cache);
}

bool Moves(const ir::Node& node) {
  return node.op == OpKind::kTranspose || node.op == OpKind::kReshape;
}

// Where the heads that end in `out` are made: back over moves of three axes.
// Always a node's output.
ValueId MadeHeads(const ir::Graph& graph, ValueId out) {
  while (true) {
    const ir::Node& node = *Producer(graph, out);
    if (!Moves(node) || graph.type(node.inputs[0]).shape.size() != 3 ||
        Producer(graph, node.inputs[0]) == nullptr) {
      return out;
    }
    out = node.inputs[0];
  }
}

// Lets all that read `source` read a convert of it.
void InsertConvert(ir::Graph& graph, ValueId source, const std::string& name) {
  ValueId converted;
  RebuildNodes(graph, [&](ir::Node node) {
    std::replace(node.inputs.begin(), node.inputs.end(), source, converted);
    const bool makes_source = node.output == source;
    AppendNode(graph, std::move(node));
    if (makes_source)
      converted = graph.AddNode(OpKind::kConvert, {source}, {}, name);
  });
  for (ir::GraphIo& io : graph.outputs) {
    if (io.value == source && io.role.kind != RoleKind::kTap)
      io.value = converted;
  }
}

void ConvertSide(const ir::Module& module, ir::Graph& graph, const Side& side,
                 const ir::GraphIo& out) {
  const ValueId heads = MadeHeads(graph, out.value);
  if (ProducerOfKind(graph, heads, OpKind::kConvert) != nullptr) return;
  InsertConvert(graph, heads,
                ConvertName(module, side, out, graph[out.value].name));
}

}  // namespace

Status ConvertKv(ir::Module& module) {
  for (ir::Graph& graph : module.graphs) {
    const std::vector<ir::GraphIo> outputs = graph.outputs;
    for (const ir::GraphIo& io : outputs) {
      for (const Side& side : kSides) {
        // By its present value: the other side may have moved it.
        if (io.role.kind == side.out)
          ConvertSide(module, graph, side,
                      {.value = graph.FindIo(io.role), .role = io.role});
      }
    }
  }
  return OkStatus();
}

}  // namespace hexllm
