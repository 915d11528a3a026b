// Fills a graph's rope_cos[i] or rope_sin[i] input with the rows of the
// artifact's table for the step's positions. Used by the decoder runner, one
// filler per input. It does not know how the table was made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "artifact/manifest.h"
#include "base/bytes.h"

namespace hexllm {

// Not thread-safe.
class RopeFiller {
 public:
  // `spec` is [T,R/2] in any form that EncodeFloats takes; `out` has exactly
  // its size. `table` is f32 [positions,R/2]. Both outlive the filler.
  RopeFiller(const artifact::IoSpec& spec, ByteSpan table,
             std::span<std::byte> out);

  // Row t gets the values of positions[t]: T positions of the table (checked).
  // Does not allocate.
  void Fill(std::span<const uint32_t> positions);

 private:
  artifact::IoSpec spec_;
  ByteSpan table_;
  std::span<std::byte> out_;
  std::vector<float> row_;  // [R/2]
};

}  // namespace hexllm
