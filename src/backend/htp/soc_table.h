// The phones, laptops and boards that can be compiled for, as data: Hexagon
// generation, memory, and what a generation cannot do, with the reason. Used by
// the lowering, by compile/ and for messages. A source of facts, not of
// defaults.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace hexllm::htp {

// One system on chip.
struct Soc {
  std::string_view name;  // "SM8750"
  uint32_t qnn_id = 0;    // the library's number for it
  uint32_t htp = 0;       // generation: 79 for Hexagon v79
  uint32_t vtcm_mb = 0;   // tightly coupled memory for one graph, MiB
  // False when the library cannot estimate for it (estimate.h).
  bool has_cost_model = true;
  bool has_half = true;  // arithmetic in half precision
};

// All rows, by name.
std::span<const Soc> AllSocs();
// kUsage with the nearest names, or all, when there is none of that name. Upper
// and lower case are equal.
Result<Soc> FindSoc(std::string_view name);
// By the library's number; null when unknown.
const Soc* FindSocById(uint32_t qnn_id);

// What not every generation can do.
enum class Feature : uint8_t {
  kHalf,           // arithmetic in half precision
  kBlockWeights,   // 4-bit weights with a factor per block (LPBQ)
  kWeightSharing,  // graphs of one context store equal constants once
  k16BitKv,        // MatMul of two 16-bit inputs
  k16BitWeights,
  k16BitLayerNorm,  // LayerNorm of 16-bit activations
  k2BitWeights,
};

// Ok, or kUnsupported with the SoC, its generation, the first that can, and
// what to do instead.
Status RequireFeature(const Soc& soc, Feature feature);

// The most that one context may hold, in bytes: the address space of the DSP.
inline constexpr uint64_t kMaxContextBytes = uint64_t{4} << 30;
// kUnsupported when a context with `weight_bytes` of constants cannot be
// loaded.
Status CheckContextSize(uint64_t weight_bytes);

}  // namespace hexllm::htp
