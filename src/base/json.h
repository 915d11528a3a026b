// JSON parsing with our error type and typed access. The only place that
// touches nlohmann-json's throwing parser. Used for configs, tokenizers,
// safetensors headers, recipes and requests. Input is hostile: depth is
// bounded.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hexllm {

// Objects keep the order of the text.
using Json = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 64;

// Parses UTF-8 JSON. kBadInput with the byte offset for malformed text, nesting
// beyond kMaxJsonDepth, invalid UTF-8 or a key given twice in one object. A
// UTF-8 byte order mark is skipped.
Result<Json> ParseJson(std::string_view text);

// ParseJson of a file's text; errors name the file. kEnvironment when it cannot
// be read, kBadInput when it is larger than `most_bytes`.
Result<Json> ReadJsonFile(const std::string& path,
                          uint64_t most_bytes = UINT64_MAX);

// Compact UTF-8 text of `json`; invalid UTF-8 in strings becomes U+FFFD.
std::string DumpJson(const Json& json);

// The member `key`, or null when `json` is no object or the member is missing
// or JSON null.
const Json* FindMember(const Json& json, std::string_view key);

// A member of an object. kBadInput names the key, the expected type and what
// was found (missing, or the wrong type).
Result<int64_t> GetInt(
    const Json& json,
    std::string_view key);  // whole numbers, also when written as 1.0
Result<double> GetNumber(const Json& json, std::string_view key);  // finite
Result<bool> GetBool(const Json& json, std::string_view key);
Result<std::string> GetString(const Json& json, std::string_view key);

// The same with a default for a member that is missing or null; the wrong type
// is still kBadInput.
Result<int64_t> GetIntOr(const Json& json, std::string_view key,
                         int64_t fallback);
Result<double> GetNumberOr(const Json& json, std::string_view key,
                           double fallback);
Result<bool> GetBoolOr(const Json& json, std::string_view key, bool fallback);
Result<std::string> GetStringOr(const Json& json, std::string_view key,
                                std::string_view fallback);

// A word for the type of `json`: "an object", "a string", ...
std::string_view JsonTypeName(const Json& json);

}  // namespace hexllm
