// Writes the attention mask of a step: which columns each new token sees. Used
// by the decoder runner, one writer per mask input. It copies the two bit
// patterns of the IoSpec and knows nothing of number formats.
//
// mask[j] is [T,C]: rows are the step's tokens, columns the P = C - T past ones
// (column first_column + c = position c) and then the step's own. A prompt's
// last block is padded at the front: rows [0, first_row) are padding. A real
// row at position p sees the keys of positions p - w < k <= p (window w; 0 =
// all k <= p). A padding row sees its own column alone, so that its softmax
// stays finite on backends that compute it; nobody reads the result.
//
// T = 4, C = 8 (P = 4), past_tokens = 2, first_row = 1, no window; x = visible:
//
//              past columns   step's columns
//   position   0  1  .  .     pad 2  3  4
//   row 0 pad  .  .  .  .     x   .  .  .
//   row 1 p=2  x  x  .  .     .   x  .  .
//   row 2 p=3  x  x  .  .     .   x  x  .
//   row 3 p=4  x  x  .  .     .   x  x  x
//
// The same with window 3: row 3 sees positions 2..4, so its past is "....".
//
// The tokens of a step may also form trees, each following an earlier one or
// the last past token: a row then sees the past, those that it follows and
// itself. In a row's columns positions go up, so a path through a tree is seen
// exactly as the same tokens in a row of their own. Rows 1 and 2 follow row 0,
// row 3 follows row 1 (past_tokens = 2, first_row = 0):
//
//   row 0 p=2  x  x  .  .     x   .  .  .
//   row 1 p=3  x  x  .  .     x   x  .  .
//   row 2 p=3  x  x  .  .     x   .  x  .
//   row 3 p=4  x  x  .  .     x   x  .  x
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "artifact/manifest.h"

namespace hexllm {

// In `parents`: a row that follows the last past token.
inline constexpr uint32_t kNoParent = UINT32_MAX;

struct MaskStep {
  uint32_t past_tokens = 0;   // <= P
  uint32_t first_row = 0;     // < T
  uint32_t first_column = 0;  // of position 0; + past_tokens <= P
  // [T] The row that a row follows: an earlier one from first_row on, or
  // kNoParent. Those of padding are not read. Empty: each follows the one
  // before.
  std::span<const uint32_t> parents = {};
};

// Fills one mask buffer, which nobody else writes. Not thread-safe.
class MaskWriter {
 public:
  // `spec` [T,C] with elements of 1, 2, 4 or 8 bytes; `out` has
  // exactly its size and outlives the writer. `window` 0 = none.
  MaskWriter(const artifact::IoSpec& spec, uint32_t window,
             std::span<std::byte> out);

  // Writes the mask of `step`. With T = 1, from one position to the next, this
  // touches two columns at most; otherwise all T*C. Does not allocate.
  void Write(const MaskStep& step);

 private:
  template <typename Element>
  void WriteAll(const MaskStep& step);
  template <typename Element>
  void WriteRow(const MaskStep& step, size_t row);
  template <typename Element>
  void Advance(const MaskStep& step);
  bool Advances(const MaskStep& step) const;

  std::span<std::byte> out_;
  size_t step_tokens_;     // T
  size_t context_tokens_;  // C
  size_t window_;
  size_t element_bytes_;
  uint64_t visible_;
  uint64_t hidden_;
  std::optional<MaskStep> last_;  // with T = 1, without parents
};

}  // namespace hexllm
