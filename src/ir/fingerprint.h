// What graphs are, as a digest: equal graphs of equal numbers have equal ones,
// in any module. Used for the keys of caches.
#pragma once

#include <map>
#include <span>

#include "base/digest.h"
#include "ir/graph.h"

namespace hexllm::ir {

// Digests graphs of one module; borrows it. What several graphs read is read
// once. Not thread-safe.
class Fingerprints {
 public:
  explicit Fingerprints(const Module& module) : module_(module) {}

  // Adds all that these graphs say and read: their text form (ir/text.h), and
  // the constants with their bytes. Constants that they do not read do not
  // count. Reads every weight; the memory is the graphs' text.
  void AddGraphs(std::span<const size_t> graphs, Hasher& hasher);

 private:
  const Digest& OfConstant(ConstantId id);

  const Module& module_;
  std::map<ConstantId, Digest> constants_;
};

}  // namespace hexllm::ir
