#include "backend/htp/lower_memory.h"

#include <fmt/format.h>

#include <set>

#include "base/machine_memory.h"
#include "ir/weight_size.h"

namespace hexllm::htp {
namespace {

// Bytes of a constant as it is handed over: whole numbers of bytes for codes.
uint64_t HandedOverBytes(const ir::Constant& constant) {
  const auto elements =
      static_cast<uint64_t>(NumElements(constant.type.shape).value_or(0));
  const DType dtype =
      constant.encoding ? constant.encoding->dtype : DType::kU16;
  return elements * GetDTypeInfo(dtype).block_bytes;
}

uint64_t HandedOverBytes(const ir::Module& module, const ir::Graph& graph) {
  uint64_t bytes = 0;
  std::set<ir::ConstantId> counted;
  for (const ir::Node& node : graph.nodes) {
    for (const ir::ValueId input : node.inputs) {
      const ir::ConstantId id = graph[input].constant;
      if (id.valid() && counted.insert(id).second)
        bytes += HandedOverBytes(module.constants[id]);
    }
  }
  return bytes;
}

}  // namespace

uint64_t PeakBytes(const ir::Module& module, const ContextPlan& plan) {
  constexpr double kLibrary = 0x1p28;
  constexpr double kPerHandedOver = 2.1;
  constexpr double kPerPacked = 2.3;
  constexpr double kMargin = 1.1;
  double handed_over = 0;
  for (const size_t index : plan.graphs) {
    handed_over +=
        static_cast<double>(HandedOverBytes(module, module.graphs[index]));
  }
  const auto packed = static_cast<double>(ir::WeightBytes(module, plan.graphs));
  return static_cast<uint64_t>(
      kMargin *
      (kLibrary + kPerHandedOver * handed_over + kPerPacked * packed));
}

Status CheckPeak(const ir::Module& module, std::span<const ContextPlan> plans,
                 uint64_t max_memory) {
  for (const ContextPlan& plan : plans) {
    const uint64_t peak = PeakBytes(module, plan);
    if (peak <= max_memory) continue;
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("--max-memory: compiling {} is expected to take {}, found "
                    "a limit of {}",
                    plan.name, MemorySizeText(peak),
                    MemorySizeText(max_memory))};
  }
  return OkStatus();
}

}  // namespace hexllm::htp
