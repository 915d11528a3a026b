// What the CPU engine asks of the machine: aligned memory, weights in the page
// cache, the number of cores. Internal to cpu/engine*.
#pragma once

#include <cstddef>

#include "backend/engine.h"
#include "base/bytes.h"
#include "base/status.h"

namespace hexllm::cpu {

// Zeroed memory of exactly `bytes` bytes with kBufferAlignment. Large buffers
// cost physical memory only where they are touched. kEnvironment when there is
// none.
Result<Buffer> AllocateBuffer(size_t bytes);

// Starts reading a mapped weight from disk, so that the first step does not
// wait for it page by page. Returns at once; harmless for memory that is no
// mapping.
void Prefetch(ByteSpan weight);

// Cores this process may run on, hardware threads of one core counted once. At
// least 1.
int PhysicalCores();

}  // namespace hexllm::cpu
