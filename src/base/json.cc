#include "base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <new>
#include <unordered_set>
#include <utility>

#include "base/mapped_file.h"
#include "base/quote.h"

namespace hexllm {
namespace {

// Builds the document from the parser's events. Unlike the library's own
// builder it refuses deep nesting and repeated keys, and appends members
// without searching the object for the key (a vocabulary has 10^5 of them).
class Builder {
 public:
  // The names and signatures are those that Json::sax_parse calls.
  bool null() { return Add(nullptr); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(int64_t value) { return Add(value); }
  bool number_unsigned(uint64_t value) { return Add(value); }
  bool number_float(double value, const std::string&) { return Add(value); }
  bool string(std::string& value) { return Add(std::move(value)); }
  bool binary(Json::binary_t&) { return Fail("binary value"); }
  bool start_object(size_t) { return Open(Json::object()); }
  bool start_array(size_t) { return Open(Json::array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& key) {
    if (!open_.back().keys.insert(key).second) {
      return Fail(
          fmt::format("key {} is given twice in one object", Quoted(key)));
    }
    open_.back().key = std::move(key);
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const Json::exception& error) {
    // Syntax errors have ids 101 to 199; the others are numbers beyond double.
    if (error.id < 200)
      return Fail(fmt::format("syntax error near byte {}", position));
    return Fail(fmt::format("number out of range near byte {}", position));
  }

  Json Take() && { return std::move(root_); }
  const std::string& reason() const { return reason_; }

 private:
  // An object or array whose end has not been seen.
  struct Container {
    Json* json = nullptr;
    std::string key;  // of the member that comes next
    std::unordered_set<std::string> keys;
  };

  bool Fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  // Puts `value` where the text stands and returns its place. The place stays
  // valid while `value` is open: its container does not grow before it ends.
  Json* Place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Container& container = open_.back();
    if (container.json->is_array()) {
      auto& items = container.json->get_ref<Json::array_t&>();
      return &items.emplace_back(std::move(value));
    }
    auto& members = container.json->get_ref<Json::object_t&>();
    std::vector<Json::object_t::value_type>& list = members;
    return &list.emplace_back(std::move(container.key), std::move(value))
                .second;
  }

  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }

  bool Open(Json empty) {
    if (open_.size() >= kMaxJsonDepth) {
      return Fail(fmt::format("nesting deeper than {} levels", kMaxJsonDepth));
    }
    open_.push_back({.json = Place(std::move(empty)), .key = {}, .keys = {}});
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Container> open_;
  std::string reason_;
};

Error Mismatch(std::string_view key, std::string_view expected,
               const Json* found) {
  return Error{
      ErrorCode::kBadInput,
      fmt::format("'{}': expected {}, found {}", key, expected,
                  found == nullptr ? "nothing" : JsonTypeName(*found))};
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  Builder builder;
  bool parsed = false;
  try {
    parsed = Json::sax_parse(text.begin(), text.end(), &builder);
  } catch (const std::bad_alloc&) {
    return Error{
        ErrorCode::kEnvironment,
        fmt::format("not enough memory for {} bytes of JSON", text.size())};
  }
  if (!parsed) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("malformed JSON: {}", builder.reason())};
  }
  return std::move(builder).Take();
}

Result<Json> ReadJsonFile(const std::string& path, uint64_t most_bytes) {
  HX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > most_bytes) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{}: expected at most {} bytes, found {}", path,
                             most_bytes, file.bytes().size())};
  }
  auto json = ParseJson(AsText(file.bytes()));
  if (!json.ok()) return std::move(json).error().With(path);
  return json;
}

std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json* FindMember(const Json& json, std::string_view key) {
  if (!json.is_object()) return nullptr;
  const auto it = json.find(key);
  if (it == json.end() || it->is_null()) return nullptr;
  return &*it;
}

Result<int64_t> GetInt(const Json& json, std::string_view key) {
  const Json* value = FindMember(json, key);
  if (value == nullptr) return Mismatch(key, "a whole number", value);
  if (value->is_number_unsigned() &&
      value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return Mismatch(key, "a whole number below 2^63", value);
  }
  if (value->is_number_integer()) return value->get<int64_t>();
  if (value->is_number_float()) {
    const double number = value->get<double>();
    if (std::trunc(number) == number && std::fabs(number) < 9e15)
      return static_cast<int64_t>(number);
  }
  return Mismatch(key, "a whole number", value);
}

Result<double> GetNumber(const Json& json, std::string_view key) {
  const Json* value = FindMember(json, key);
  if (value == nullptr || !value->is_number())
    return Mismatch(key, "a number", value);
  const double number = value->get<double>();
  if (!std::isfinite(number)) return Mismatch(key, "a finite number", value);
  return number;
}

Result<bool> GetBool(const Json& json, std::string_view key) {
  const Json* value = FindMember(json, key);
  if (value == nullptr || !value->is_boolean())
    return Mismatch(key, "true or false", value);
  return value->get<bool>();
}

Result<std::string> GetString(const Json& json, std::string_view key) {
  const Json* value = FindMember(json, key);
  if (value == nullptr || !value->is_string())
    return Mismatch(key, "a string", value);
  return value->get<std::string>();
}

Result<int64_t> GetIntOr(const Json& json, std::string_view key,
                         int64_t fallback) {
  if (FindMember(json, key) == nullptr) return fallback;
  return GetInt(json, key);
}

Result<double> GetNumberOr(const Json& json, std::string_view key,
                           double fallback) {
  if (FindMember(json, key) == nullptr) return fallback;
  return GetNumber(json, key);
}

Result<bool> GetBoolOr(const Json& json, std::string_view key, bool fallback) {
  if (FindMember(json, key) == nullptr) return fallback;
  return GetBool(json, key);
}

Result<std::string> GetStringOr(const Json& json, std::string_view key,
                                std::string_view fallback) {
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
