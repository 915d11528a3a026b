// How much memory there is and how much of it is ours. Used where work is
// spread over processes. Linux.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hexllm {

// What can be had without swapping, of the machine's and of our control
// group's memory (version 2); nothing where the system does not say.
std::optional<uint64_t> AvailableMemory();

// What this process has of its own, in memory: not mapped files.
uint64_t OwnMemory();

// Gives back to the system what was freed but kept.
void ReturnFreedMemory();

// "8G", "500M", "8.5GiB": powers of 1024. kUsage otherwise.
Result<uint64_t> ParseMemorySize(std::string_view text);
// "1.2 GB": the same units.
std::string MemorySizeText(uint64_t bytes);

}  // namespace hexllm
