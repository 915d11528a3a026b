// The small files that stand beside safetensors weights: config.json,
// generation_config.json, tokenizer.json, tokenizer_config.json,
// chat_template.jinja, special_tokens_map.json. Used by models/ and compile/,
// also for folders that hold a tokenizer and no weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/status.h"

namespace hexllm {

// The largest side file that is read, in bytes.
inline constexpr uint64_t kMaxSideFileBytes = 256 << 20;

// Reads `directory`/`name`; `name` is a plain file name (checked). nullopt when
// there is none. kEnvironment when it cannot be read, kBadInput when it is
// larger than kMaxSideFileBytes.
Result<std::optional<std::string>> ReadSideFile(const std::string& directory,
                                                const std::string& name);

// The same, parsed. Errors name the file.
Result<std::optional<Json>> ReadSideJson(const std::string& directory,
                                         const std::string& name);

}  // namespace hexllm
