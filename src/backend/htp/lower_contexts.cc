#include "backend/htp/lower_contexts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backend/htp/soc_table.h"
#include "ir/weight_size.h"

namespace hexllm::htp {
namespace {

std::vector<ContextPlan> ContextsOfShard(const ir::Module& module,
                                         std::vector<size_t> graphs,
                                         bool can_share, ContextUse use) {
  std::vector<ContextPlan> plans;
  const uint32_t shard = module.graphs[graphs[0]].shard;
  const bool share =
      can_share && graphs.size() > 1 && use != ContextUse::kSimulator;
  if (share) {
    plans.push_back({.name = fmt::format("context/{}", shard),
                     .graphs = graphs,
                     .sharing = WeightSharing::kOn});
    if (use == ContextUse::kDevice) return plans;
  }
  for (const size_t index : graphs) {
    plans.push_back(
        {.name = fmt::format("context/{}", module.graphs[index].name),
         .graphs = {index},
         .for_simulator = share});
  }
  return plans;
}

}  // namespace

Result<std::vector<ContextPlan>> PlanContexts(const ir::Module& module,
                                              const Soc& soc, ContextUse use) {
  std::map<uint32_t, std::vector<size_t>> by_shard;
  for (size_t i = 0; i < module.graphs.size(); ++i)
    by_shard[module.graphs[i].shard].push_back(i);
  const bool can_share = RequireFeature(soc, Feature::kWeightSharing).ok();
  std::vector<ContextPlan> plans;
  for (auto& [shard, graphs] : by_shard) {
    // Shared or not: a context holds what its largest graph needs.
    HX_RETURN_IF_ERROR(CheckContextSize(ir::WeightBytes(module, graphs)));
    std::ranges::move(
        ContextsOfShard(module, std::move(graphs), can_share, use),
        std::back_inserter(plans));
  }
  return plans;
}

}  // namespace hexllm::htp
