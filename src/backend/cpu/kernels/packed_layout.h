// Where things lie in packed weights; packed.h draws it. Shared by the packing
// functions and the kernels, so it includes nothing of C++'s library.
#pragma once

#include <stdint.h>

#include "backend/cpu/kernels/inline.h"

namespace hexllm::cpu {

// Weight rows of a panel, and elements along K that lie together.
inline constexpr int64_t kPackedRows = 16;
inline constexpr int64_t kPackedGroup = 4;

namespace {

// Bytes of the factors and of the codes of one block of 32 along K of a panel.
struct PackedFormat {
  int64_t factor_bytes;
  int64_t code_bytes;
};
constexpr PackedFormat kPackedQ4_1 = {64, 256};
constexpr PackedFormat kPackedQ8_0 = {32, 512};
constexpr PackedFormat kPackedI8 = {0, 512};

// Bytes from the start of a panel to its codes, for `blocks` blocks.
HX_INLINE constexpr int64_t PackedCodesOffset(const PackedFormat& format,
                                              int64_t blocks) {
  return (blocks * format.factor_bytes + 63) / 64 * 64;
}
HX_INLINE constexpr int64_t PackedPanelSize(const PackedFormat& format,
                                            int64_t blocks) {
  return PackedCodesOffset(format, blocks) + blocks * format.code_bytes;
}

}  // namespace
}  // namespace hexllm::cpu
