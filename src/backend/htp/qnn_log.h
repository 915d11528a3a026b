// What the vendor's library logs, kept instead of printed: the last error lines
// become part of our messages. Used by qnn_library and context_info.
//
// One for the process, as the library's callback is not told whose it is: with
// two sessions in two threads a message may end up with a line of the other.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <string>

namespace hexllm::htp {

// To be handed to the library's log functions (abi::LogCallback). Thread-safe.
void CollectLogLine(const char* format, uint32_t level, uint64_t time,
                    va_list arguments);

// The first lines collected since the last call, each once, with "; " between,
// or nothing. They are gone afterwards.
std::string TakeLogLines();

}  // namespace hexllm::htp
