// Constants with made-up data: what Parse gives constants, and what tests and
// benchmarks of graphs run on. Not for models: those take their weights from
// checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/constant.h"

namespace hexllm::ir {

// splitmix64 (Steele, Lea & Flood 2014). The same numbers on every machine.
class PseudoRandom {
 public:
  explicit PseudoRandom(uint64_t seed) : state_(seed) {}
  // Seeds with a hash of `text` (FNV-1a).
  explicit PseudoRandom(std::string_view text);
  uint64_t Next();
  // Uniform in [0, 1), a multiple of 2^-24.
  float Unit();
  // Uniform in 0 .. n-1; n > 0.
  uint64_t Below(uint64_t n) { return Next() % n; }

 private:
  uint64_t state_;
};

// Bytes of storage that MakeRandomConstant will use for `type`, or nothing when
// the type is no constant's (not float-like, empty, no whole blocks, too
// large).
std::optional<uint64_t> RandomConstantBytes(const TensorType& type);

// A constant named `name` whose values lie within about -0.5 .. 0.5, a function
// of name and type. Stores at most 256 KiB (or one row): rows of larger ones
// repeat. `type` must have RandomConstantBytes (checked).
Constant MakeRandomConstant(std::string name, TensorType type);

}  // namespace hexllm::ir
