#include "compile/stand_in.h"

#include <string>

#include "base/graph_role.h"
#include "ir/pseudo_random.h"

namespace hexllm {
namespace {

quant::ValueRange RangeFor(const std::string& name) {
  ir::PseudoRandom random(name);
  return {.range = {-1 - random.Unit(), 3 + random.Unit()}, .clipped = 0};
}

// Rope tables have the names of their roles, other inputs that of the value.
bool IsRope(const ir::GraphIo& io) {
  return io.role.kind == RoleKind::kRopeCos ||
         io.role.kind == RoleKind::kRopeSin;
}

std::string InputName(const ir::Graph& graph, const ir::GraphIo& io) {
  return IsRope(io) ? RoleToString(io.role) : graph[io.value].name;
}

quant::ValueRange InputRange(const ir::Graph& graph, const ir::GraphIo& io) {
  if (IsRope(io)) return {.range = {-1, 1}, .clipped = 0};
  return RangeFor(graph[io.value].name);
}

}  // namespace

quant::Ranges StandInRanges(const ir::Module& module) {
  quant::Ranges ranges;
  for (const ir::Graph& graph : module.graphs) {
    for (const std::string& name : quant::ObservedValues(graph))
      ranges.emplace(name, RangeFor(name));
    for (const ir::GraphIo& io : graph.inputs)
      ranges.emplace(InputName(graph, io), InputRange(graph, io));
  }
  return ranges;
}

}  // namespace hexllm
