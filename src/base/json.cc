#include "base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_set>

namespace hexllm {
namespace {

// Enforces the depth bound and unique keys while the library parses, and keeps the reason.
class Guard {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxJsonDepth) return Fail(fmt::format("nesting deeper than {} levels", kMaxJsonDepth));
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys_.empty()) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) return Fail(fmt::format("key '{}' is given twice in one object", key));
    }
    return true;
  }
  const std::string& reason() const { return reason_; }

 private:
  struct Stop {};
  bool Fail(std::string reason) {
    reason_ = std::move(reason);
    throw Stop{};
  }

  std::vector<std::unordered_set<std::string>> keys_;
  std::string reason_;
};

Error Mismatch(std::string_view key, std::string_view expected, const Json* found) {
  return Error{ErrorCode::kBadInput,
               fmt::format("'{}': expected {}, found {}", key, expected, found == nullptr ? "nothing" : JsonTypeName(*found))};
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  Guard guard;
  try {
    return Json::parse(text.begin(), text.end(), std::ref(guard));
  } catch (const Json::parse_error& error) {
    return Error{ErrorCode::kBadInput, fmt::format("malformed JSON near byte {} of {}", error.byte, text.size())};
  } catch (...) {
    const std::string reason = guard.reason().empty() ? "value out of range" : guard.reason();
    return Error{ErrorCode::kBadInput, fmt::format("malformed JSON: {}", reason)};
  }
}

std::string DumpJson(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

const Json* FindMember(const Json& json, std::string_view key) {
  if (!json.is_object()) return nullptr;
  const auto it = json.find(key);
  if (it == json.end() || it->is_null()) return nullptr;
  return &*it;
}

Result<int64_t> GetInt(const Json& json, std::string_view key) {
  const Json* value = FindMember(json, key);
  if (value == nullptr) return Mismatch(key, "a whole number", value);
  if (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return Mismatch(key, "a whole number below 2^63", value);
  }
  if (value->is_number_integer()) return value->get<int64_t>();
  if (value->is_number_float()) {
    const double number = value->get<double>();
    if (std::trunc(number) == number && std::fabs(number) < 9e15) return static_cast<int64_t>(number);
  }
  return Mismatch(key, "a whole number", value);
}

Result<double> GetNumber(const Json& json, std::string_view key) {
  const Json* value = FindMember(json, key);
  if (value == nullptr || !value->is_number()) return Mismatch(key, "a number", value);
  const double number = value->get<double>();
  if (!std::isfinite(number)) return Mismatch(key, "a finite number", value);
  return number;
}

Result<bool> GetBool(const Json& json, std::string_view key) {
  const Json* value = FindMember(json, key);
  if (value == nullptr || !value->is_boolean()) return Mismatch(key, "true or false", value);
  return value->get<bool>();
}

Result<std::string> GetString(const Json& json, std::string_view key) {
  const Json* value = FindMember(json, key);
  if (value == nullptr || !value->is_string()) return Mismatch(key, "a string", value);
  return value->get<std::string>();
}

Result<int64_t> GetIntOr(const Json& json, std::string_view key, int64_t fallback) {
  if (FindMember(json, key) == nullptr) return fallback;
  return GetInt(json, key);
}

Result<double> GetNumberOr(const Json& json, std::string_view key, double fallback) {
  if (FindMember(json, key) == nullptr) return fallback;
  return GetNumber(json, key);
}

Result<bool> GetBoolOr(const Json& json, std::string_view key, bool fallback) {
  if (FindMember(json, key) == nullptr) return fallback;
  return GetBool(json, key);
}

Result<std::string> GetStringOr(const Json& json, std::string_view key, std::string_view fallback) {
  if (FindMember(json, key) == nullptr) return std::string(fallback);
  return GetString(json, key);
}

std::string_view JsonTypeName(const Json& json) {
  if (json.is_object()) return "an object";
  if (json.is_array()) return "an array";
  if (json.is_string()) return "a string";
  if (json.is_boolean()) return "a boolean";
  if (json.is_number_integer()) return "a whole number";
  if (json.is_number()) return "a number";
  return "null";
}

}  // namespace hexllm
