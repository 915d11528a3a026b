// Two signed 4-bit codes in a byte, as int4 weights are stored: two's
// complement, the even element in the low nibble.
//   codes -7 2 | 5 -1  ->  bytes 0x29 0xf5
// Used where static int4 weights are written. Not the nibble order of GGUF
// blocks (base/dequantize.h).
#pragma once

#include <cstdint>
#include <span>

namespace hexllm {

// codes.size() == 2 * packed.size() (checked); codes are -8 to 7 (only their
// low four bits are kept).
void PackNibbles(std::span<const int32_t> codes, std::span<std::byte> packed);
// The reverse, sign extended.
void UnpackNibbles(std::span<const std::byte> packed, std::span<int32_t> codes);

}  // namespace hexllm
