// Which graphs of a module are compiled into which context binary. Used by
// htp/lower.
//
// Graphs of one shard (a prefill and a kv graph of the same layers) share their
// weights in one context, where the chip can. Others have a context each:
//
//   kDevice, v73     context/0: prefill, kv
//   kSimulator       context/prefill_128: prefill     context/kv: kv
//   kBoth, v73       all three
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/htp/qnn_session.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::htp {

// What context binaries are for. On x86, those with shared weights do not load.
enum class ContextUse : uint8_t { kDevice, kSimulator, kBoth };

struct ContextPlan {
  std::string name;  // of the segment
  std::vector<size_t> graphs;
  WeightSharing sharing = WeightSharing::kOff;
  // The second binary of its graphs.
  bool for_simulator = false;
};

// In order of shards. kUnsupported when a context would hold more than the chip
// can address.
Result<std::vector<ContextPlan>> PlanContexts(const ir::Module& module,
                                              const Soc& soc, ContextUse use);

}  // namespace hexllm::htp
