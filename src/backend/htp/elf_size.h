// How long a shared library must be. Used before it is loaded: the loader maps
// what the headers say and dies of a bus error where the file ends before.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace hexllm::htp {

// The fewest bytes that hold what the headers of a little-endian ELF64 file
// name: both tables and the segments that are loaded; UINT64_MAX when that does
// not fit 64 bits. Of tables that lie outside of `file` only where they end.
// 0 when `file` begins like no such file: the loader refuses that itself.
// Source: System V ABI, chapter 4.
uint64_t LeastElfBytes(ByteSpan file);

}  // namespace hexllm::htp
