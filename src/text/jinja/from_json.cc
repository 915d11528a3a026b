#include "text/jinja/from_json.h"

#include <fmt/format.h>

#include "text/utf8.h"

namespace hexllm::jinja {
namespace {

Result<Value> Convert(Context& context, const Json& json, int depth);

Result<Value> ConvertString(Context& context, const std::string& text) {
  if (!IsValidUtf8(text))
    return Error{ErrorCode::kBadInput, "a text is not valid UTF-8"};
  return context.NewString(text);
}

Result<Value> ConvertArray(Context& context, const Json& json, int depth) {
  std::vector<Value> items;
  items.reserve(json.size());
  for (const Json& item : json) {
    HX_ASSIGN_OR_RETURN(Value value, Convert(context, item, depth + 1));
    items.push_back(std::move(value));
  }
  return context.NewList(std::move(items));
}

Result<Value> ConvertObject(Context& context, const Json& json, int depth) {
  std::vector<Dict::Entry> entries;
  entries.reserve(json.size());
  for (const auto& [name, member] : json.items()) {
    HX_ASSIGN_OR_RETURN(Value key, ConvertString(context, name));
    HX_ASSIGN_OR_RETURN(Value value, Convert(context, member, depth + 1));
    entries.push_back({std::move(key), std::move(value)});
  }
  return context.NewDict(std::move(entries));
}

Result<Value> Convert(Context& context, const Json& json, int depth) {
  if (depth > kMaxJsonDepth)
    return Error{ErrorCode::kBadInput,
                 fmt::format("nesting deeper than {} levels", kMaxJsonDepth)};
  switch (json.type()) {
    case Json::value_t::null:
      return Value();
    case Json::value_t::boolean:
      return Value::Bool(json.get<bool>());
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        return Error{
            ErrorCode::kUnsupported,
            fmt::format("the number {} needs more than 64 bits with sign",
                        json.get<uint64_t>())};
      }
      return Value::Int(static_cast<int64_t>(json.get<uint64_t>()));
    case Json::value_t::number_integer:
      return Value::Int(json.get<int64_t>());
    case Json::value_t::number_float:
      return Value(json.get<double>());
    case Json::value_t::string:
      return ConvertString(context, json.get_ref<const std::string&>());
    case Json::value_t::array:
      return ConvertArray(context, json, depth);
    case Json::value_t::object:
      return ConvertObject(context, json, depth);
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return Error{ErrorCode::kUnsupported, "binary data in JSON"};
}

}  // namespace

Result<Value> FromJson(Context& context, const Json& json) {
  return Convert(context, json, 0);
}

}  // namespace hexllm::jinja
