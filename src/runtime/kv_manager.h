// The KV cache of one session, for every backend: keys and values of the tokens
// run so far, in the buffers that the graphs read as k_in and v_in. Used by the
// decoder runner and everything above it. It knows element sizes, not types.
//
// K and V of a layer are the same thing seen from far enough: `outer` rows of P
// columns of `column_bytes` bytes, where P = C - T is the graph's number of
// past columns and column c holds the token at position c.
//
//   K [G,D,P]: outer = G*D, column = 1 element
//   V [G,P,D]: outer = G,   column = D elements
//
// Smart mask. A step reads columns [0, tokens) and the mask hides the rest, so
// nothing is ever moved while T stays the same: Commit writes the accepted new
// columns into the next free ones. Example, outer = 2, P = 6, 3 tokens, a step
// of T = 4 whose columns 1 and 3 are accepted:
//
//   cache   a0 a1 a2 .  .  .      step  w0 w1 w2 w3     a0 a1 a2 w1 w3 .
//           b0 b1 b2 .  .  .            x0 x1 x2 x3  -> b0 b1 b2 x1 x3 .
//
// Shift pointer. A step reads the last `tokens` columns of a window that starts
// `tokens` columns into the buffer: each token moves the window by one column,
// and its own column is written at the window's end, where the next row's first
// column was, which no window reads any more. No column moves here either; the
// graphs are bound anew. The same step (| = where rows of the window begin):
//
//   .  .  . | .  .  .  a0 a1 a2| .  .  .  b0 b1 b2
//   .  .  .  .  . | .  a0 a1 a2 w1 w3| .  b0 b1 b2 x1 x3
//
// So position p of row r lies r * P + p columns into the buffer with the smart
// mask, (r + 1) * P + p with the shift pointer; the rest is the same code.
//
// Rearrangement. Graphs of different T share the buffers but differ in P, the
// distance between rows. Arrange moves each row's used columns, in place. Rows
// that move towards the end go last row first, else first row first, so that no
// row is overwritten before it has moved. P = 4 (T = 4) to P = 7 (T = 1), C =
// 8, 3 tokens, "." unused:
//
//   a0 a1 a2 .  b0 b1 b2 .  c0 c1 c2 .
//                                     c0 c1 c2 to 14, then b0 b1 b2 to 7
//   a0 a1 a2 .  .  .  .  b0 b1 b2 .  .  .  .  c0 c1 c2 .  .  .  .
//
// What is left in unused columns is stale but was once a key or value (or
// zero), so hidden columns are finite.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/engine.h"
#include "base/status.h"

namespace hexllm {

// How new columns get into the cache; see the head of this file.
enum class KvUpdate : uint8_t { kSmartMask, kShiftPointer };

// K or V of one layer.
struct KvTensorShape {
  uint64_t outer = 0;
  uint64_t column_bytes = 0;
  bool operator==(const KvTensorShape&) const = default;
};

struct KvGeometry {
  std::vector<KvTensorShape> k;  // [L]
  std::vector<KvTensorShape> v;  // [L]
  uint32_t capacity = 0;         // largest P of all graphs
};

// The new columns that a step made: k_out and v_out of each layer, `outer` rows
// of T columns. Views of the runner's buffers.
struct StepColumns {
  std::vector<std::span<const std::byte>> k;  // [L]
  std::vector<std::span<const std::byte>> v;  // [L]
  uint32_t step_tokens = 0;                   // T
};

// Move-only; not thread-safe. Nothing allocates after Create.
class KvManager {
 public:
  // Allocates 2 L buffers of `capacity` columns (shift pointer: and one row
  // more), zeroed, empty, arranged for P = capacity. kBadInput when a size
  // overflows, kEnvironment from the allocator.
  static Result<KvManager> Create(BufferAllocator& allocator,
                                  KvGeometry geometry,
                                  KvUpdate update = KvUpdate::kSmartMask);

  // Tokens committed. Those beyond capacity() have no column: every graph's P
  // is smaller, so no step could read them.
  uint32_t tokens() const { return tokens_; }
  uint32_t capacity() const { return geometry_.capacity; }
  // P of the current arrangement.
  uint32_t past_columns() const { return past_columns_; }
  size_t layers() const { return geometry_.k.size(); }
  KvUpdate update() const { return update_; }
  // The column of position 0 in the window of the current arrangement.
  uint32_t first_column() const {
    return update_ == KvUpdate::kSmartMask ? 0 : past_columns_ - window_start();
  }

  // The memory that a graph with P = `past_columns` binds as k_in / v_in of
  // `layer`. With the smart mask it stays at the same address; with the shift
  // pointer it moves with each token, to any multiple of the element's size.
  std::span<std::byte> K(size_t layer, uint32_t past_columns);
  std::span<std::byte> V(size_t layer, uint32_t past_columns);

  // K (kKIn) or V (kVIn) of `layer` by position, as arranged now: `outer` rows
  // of past_columns() columns, position p in column p, whatever the update
  // rule. For what moves columns or keeps them elsewhere.
  std::span<std::byte> Positions(RoleKind kind, size_t layer);

  // Rearranges for a graph with P = `past_columns`; tokens() <= P <= capacity()
  // (checked). Free when P is the current one, else moves every used column.
  void Arrange(uint32_t past_columns);

  // Appends the step's columns `columns` (ascending, < T), in this order. Goes
  // to P = capacity() first when the current arrangement has no room.
  void Commit(const StepColumns& step, std::span<const uint32_t> columns);

  // Forgets the tokens from position `tokens` on. `tokens` <= tokens().
  void Rewind(uint32_t tokens);

  // Forgets the tokens at positions [first, first + count); later ones move
  // down by `count`. All of tokens() must have columns (checked).
  void Remove(uint32_t first, uint32_t count);

  // Forgets everything and zeroes the buffers.
  void Reset();

 private:
  struct Tensor {
    KvTensorShape shape;
    Buffer buffer;
  };
  KvManager(KvGeometry geometry, KvUpdate update)
      : geometry_(std::move(geometry)), update_(update) {}
  Result<Tensor> Allocate(BufferAllocator& allocator,
                          const KvTensorShape& shape) const;
  // Columns between the start of a buffer and the window, and between it and
  // position 0 of row 0.
  uint32_t window_start() const {
    return update_ == KvUpdate::kSmartMask ? 0
                                           : std::min(tokens_, past_columns_);
  }
  uint32_t origin(uint32_t past_columns) const {
    return update_ == KvUpdate::kSmartMask ? 0 : past_columns;
  }
  std::span<std::byte> Window(Tensor& tensor, uint32_t past_columns) const;
  void ArrangeTensor(Tensor& tensor, uint32_t past_columns);
  void CommitTensor(Tensor& tensor, std::span<const std::byte> step,
                    uint32_t step_tokens, std::span<const uint32_t> columns);

  KvGeometry geometry_;
  KvUpdate update_;
  std::vector<Tensor> k_;  // [L]
  std::vector<Tensor> v_;  // [L]
  uint32_t tokens_ = 0;
  uint32_t past_columns_ = 0;
};

}  // namespace hexllm
