// Fills a graph's embedding input with the rows of the artifact's table for the
// step's tokens. Used by the decoder runner, where the host and not the graph
// looks tokens up. The table stays as the checkpoint stored it: a row is
// widened, and encoded as the input wants it, when it is looked up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "artifact/manifest.h"
#include "base/bytes.h"

namespace hexllm {

// Not thread-safe.
class EmbeddingFiller {
 public:
  // `spec` is [T,M] in any form that EncodeFloats takes; `out` has exactly its
  // size. `rows` holds [V,M] of `dtype`. Both outlive the filler.
  EmbeddingFiller(const artifact::IoSpec& spec, DType dtype, ByteSpan rows,
                  std::span<std::byte> out);

  // The last ids.size() rows of the input get the rows of `ids` (of the
  // vocabulary: checked), those before, which are padding, row 0. Does not
  // allocate.
  void Fill(std::span<const int32_t> ids);

 private:
  void FillRow(size_t row, size_t id);

  artifact::IoSpec spec_;
  DType dtype_;
  ByteSpan table_;
  std::span<std::byte> out_;
  std::vector<float> row_;  // [M]
  size_t row_bytes_;        // of the table
};

}  // namespace hexllm
