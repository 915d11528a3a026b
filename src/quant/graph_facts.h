// What the rules of encodings need to know of a graph's structure: where a
// value comes from, which scores a mask is added to, what the caches store.
// Part of quant/assign.h.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "ir/graph.h"

namespace hexllm::quant {

// Ops that put elements elsewhere and compute nothing.
bool IsDataMovement(ir::OpKind op);

// The value that `value` is made of by data movement of one input; `value`
// itself when it is computed or a graph input.
ir::ValueId SourceOf(const ir::Graph& graph, ir::ValueId value);

// scores + mask. `scores` is the source of the other operand.
struct MaskedAdd {
  ir::ValueId output;
  ir::ValueId scores;
  ir::ValueId mask;
};

// The value that a cache stores: the source of k_out[l] or v_out[l].
struct CacheUse {
  RoleKind input;  // kKIn or kVIn
  int32_t layer;
};

class GraphFacts {
 public:
  explicit GraphFacts(const ir::Graph& graph);

  // The masked add that makes `value`, or whose scores it is; else null.
  const MaskedAdd* FindByOutput(ir::ValueId value) const;
  const MaskedAdd* FindByScores(ir::ValueId value) const;
  const CacheUse* FindCache(ir::ValueId value) const;
  // The cache that stores a convert of `value`.
  const CacheUse* FindConverted(ir::ValueId value) const;
  // True for the embeddings and what is made of them by moves, factors and
  // sums: what goes from layer to layer beside attention and MLPs.
  bool IsResidual(ir::ValueId value) const { return residual_.contains(value); }
  // What `node` adds to the residual stream; invalid when it is no sum of the
  // stream and what is none of it.
  ir::ValueId TermOf(const ir::Node& node) const;
  const std::map<ir::ValueId, MaskedAdd>& masked_adds() const {
    return by_output_;
  }

 private:
  void FindResidual(const ir::Graph& graph);

  std::map<ir::ValueId, MaskedAdd> by_output_;
  std::map<ir::ValueId, ir::ValueId> output_by_scores_;
  std::map<ir::ValueId, CacheUse> caches_;
  std::map<ir::ValueId, CacheUse> converted_;
  std::set<ir::ValueId> residual_;
};

}  // namespace hexllm::quant
