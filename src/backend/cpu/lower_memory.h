// Places the scratch buffers of a graph in one arena, so that buffers whose
// lives do not overlap share memory. Used by lower_graph. Pure arithmetic:
// knows no graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hexllm::cpu {

// A buffer of `bytes` that holds data from instruction `first` (which writes
// it) to instruction `last` (which reads it last), both included.
struct BufferLife {
  uint64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
};

struct ArenaLayout {
  std::vector<uint64_t> offsets;  // of each buffer; multiples of the alignment
  uint64_t bytes = 0;             // of the whole arena
};

// Greedy by size (Pisarchyk & Lee 2020, "Efficient memory management for deep
// neural net inference"): the largest buffers are placed first, each in the
// tightest gap that its living neighbours leave. Deterministic.
//
//   life      #0 ####                 arena   |#0  |#2|    t = 0
//             #1     ####                     |#1  |#2|    t = 1
//             #2 ########
ArenaLayout PlanArena(std::span<const BufferLife> lives, uint64_t alignment);

}  // namespace hexllm::cpu
