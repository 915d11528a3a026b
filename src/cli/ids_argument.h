// Token ids on the command line: "1,2,3", or "FILE.safetensors:TENSOR" for an
// i32 tensor of one axis; and their output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace hexllm::cli {

// kUsage for a malformed list, kBadInput for a tensor of another type or shape.
// Ids are not negative; at least one.
Result<std::vector<int32_t>> ParseIds(const std::string& text);

// The file that `text` names, "" when it is a list.
std::string IdsFile(const std::string& text);

// "[1,2,3]".
std::string IdsToJson(std::span<const int32_t> ids);

}  // namespace hexllm::cli
