// Fills a graph's rope_cos[i] or rope_sin[i] input with the rows of the
// artifact's table for the step's positions. Used by the decoder runner, one
// filler per input. It does not know how the table was made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/manifest.h"
#include "base/bytes.h"

namespace hexllm {

// Cosines or sines by position: f32 [positions,R/2].
struct RopeRows {
  ByteSpan table;
  // In place of `table` when the prompt has more than `above_tokens` tokens;
  // empty = never.
  ByteSpan long_table = {};
  uint32_t above_tokens = 0;

  bool IsLong(uint32_t prompt_tokens) const {
    return !long_table.empty() && prompt_tokens > above_tokens;
  }
  ByteSpan For(uint32_t prompt_tokens) const {
    return IsLong(prompt_tokens) ? long_table : table;
  }
};

// The rows that an input rope_cos[i] or rope_sin[i] takes.
RopeRows RopeRowsOf(const artifact::Artifact& artifact, const Role& role);

// Not thread-safe.
class RopeFiller {
 public:
  // `spec` is [T,R/2] in any form that EncodeFloats takes; `out` has exactly
  // its size. Both, and the rows, outlive the filler.
  RopeFiller(const artifact::IoSpec& spec, const RopeRows& rows,
             std::span<std::byte> out);

  // Fills from the rows for such a prompt from now on; before: a short one.
  void Choose(uint32_t prompt_tokens) { table_ = rows_.For(prompt_tokens); }
  // True when two prompts use the same rows.
  bool IsSame(uint32_t prompt_tokens, uint32_t other_tokens) const {
    return rows_.IsLong(prompt_tokens) == rows_.IsLong(other_tokens);
  }

  // Row t gets the values of positions[t]: T positions of the table (checked).
  // Does not allocate.
  void Fill(std::span<const uint32_t> positions);

 private:
  artifact::IoSpec spec_;
  RopeRows rows_;
  ByteSpan table_;  // one of rows_
  std::span<std::byte> out_;
  std::vector<float> row_;  // [R/2]
};

// Fills an evictor's rope_cos[i] or rope_sin[i]: row r turns a key back by
// `shifts[r]` positions, so it holds cos(a) or -sin(a) of the angles a that
// position shifts[r] has. Not thread-safe.
class ShiftFiller {
 public:
  // As RopeFiller's; `spec` says the table.
  ShiftFiller(const artifact::Artifact& artifact, const artifact::IoSpec& spec,
              std::span<std::byte> out);

  // T shifts, positions of the table (checked). Does not allocate.
  void Fill(std::span<const uint32_t> shifts, uint32_t prompt_tokens);

 private:
  artifact::IoSpec spec_;
  RopeRows rows_;
  RopeRows cosines_;
  std::span<std::byte> out_;
  std::vector<float> row_;  // [R/2]
  // [R/2] cos(0): what longrope multiplies rows by, which keys have already.
  std::vector<float> factors_;
};

}  // namespace hexllm
