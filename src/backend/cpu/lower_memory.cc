#include "backend/cpu/lower_memory.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/bytes.h"
#include "base/check.h"

namespace hexllm::cpu {
namespace {

struct Placed {
  uint64_t begin = 0;
  uint64_t end = 0;  // aligned
  BufferLife life;
};

bool LiveTogether(const BufferLife& a, const BufferLife& b) {
  return a.first <= b.last && b.first <= a.last;
}

uint64_t AlignUp(uint64_t bytes, uint64_t alignment) {
  const auto aligned = CheckedAlignUp(bytes, alignment);
  HX_CHECK(aligned.has_value());
  return *aligned;
}

// The start of the smallest gap of at least `bytes` between the buffers that
// live together with `life`; the end of all of them when no gap is large
// enough. `placed` is sorted by begin.
uint64_t FindGap(const std::vector<Placed>& placed, const BufferLife& life,
                 uint64_t bytes) {
  uint64_t best = 0;
  uint64_t best_size = std::numeric_limits<uint64_t>::max();
  uint64_t free_from = 0;
  for (const Placed& other : placed) {
    if (!LiveTogether(other.life, life)) continue;
    if (other.begin > free_from) {
      const uint64_t gap = other.begin - free_from;
      if (gap >= bytes && gap < best_size) {
        best = free_from;
        best_size = gap;
      }
    }
    free_from = std::max(free_from, other.end);
  }
  return best_size == std::numeric_limits<uint64_t>::max() ? free_from : best;
}

// Indices of `lives`, largest first; equal sizes in order of life.
std::vector<size_t> LargestFirst(std::span<const BufferLife> lives) {
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (lives[a].bytes != lives[b].bytes) {
      return lives[a].bytes > lives[b].bytes;
    }
    return lives[a].first < lives[b].first;
  });
  return order;
}

}  // namespace

ArenaLayout PlanArena(std::span<const BufferLife> lives, uint64_t alignment) {
  ArenaLayout layout;
  layout.offsets.resize(lives.size());
  std::vector<Placed> placed;
  placed.reserve(lives.size());
  for (const size_t i : LargestFirst(lives)) {
    HX_CHECK(lives[i].first <= lives[i].last);
    const uint64_t bytes = AlignUp(lives[i].bytes, alignment);
    const uint64_t begin = FindGap(placed, lives[i], bytes);
    const Placed buffer{.begin = begin, .end = begin + bytes, .life = lives[i]};
    const auto at = std::upper_bound(
        placed.begin(), placed.end(), buffer,
        [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
    placed.insert(at, buffer);
    layout.offsets[i] = begin;
    layout.bytes = std::max(layout.bytes, buffer.end);
  }
  return layout;
}

}  // namespace hexllm::cpu
