#include "quant/json_schema_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>
#include <string_view>

namespace hexllm::quant {
namespace {

// Keywords that ask for nothing.
constexpr std::string_view kNotes[] = {"$schema", "title", "description",
                                       "$defs"};

bool HasType(const Json& json, const std::string& type) {
  if (type == "object") return json.is_object();
  if (type == "array") return json.is_array();
  if (type == "string") return json.is_string();
  if (type == "boolean") return json.is_boolean();
  if (type == "number") return json.is_number();
  return type == "integer" && json.is_number() &&
         std::trunc(json.get<double>()) == json.get<double>();
}

class Validator {
 public:
  explicit Validator(const Json& root) : root_(root) {}

  // Each keyword of `schema` in turn; the first that is broken.
  std::string Check(const Json& schema, const Json& json,
                    const std::string& place) {
    for (const auto& [keyword, argument] : schema.items()) {
      std::string problem =
          CheckKeyword({schema, keyword, argument}, json, place);
      if (!problem.empty()) return problem;
    }
    return {};
  }

 private:
  struct Keyword {
    const Json& schema;
    const std::string& name;
    const Json& argument;
  };

  std::string CheckKeyword(const Keyword& keyword, const Json& json,
                           const std::string& place) {
    const std::string& name = keyword.name;
    const Json& argument = keyword.argument;
    if (std::ranges::find(kNotes, name) != std::end(kNotes)) return {};
    if (name == "$ref") {
      return Check(
          root_.at(Json::json_pointer(argument.get<std::string>().substr(1))),
          json, place);
    }
    if (name == "anyOf") {
      const bool any = std::any_of(argument.begin(), argument.end(),
                                   [&](const Json& choice) {
                                     return Check(choice, json, place).empty();
                                   });
      return any ? "" : place + ": anyOf";
    }
    if (name == "properties" || name == "items")
      return CheckParts(keyword, json, place);
    return Holds(keyword, json) ? "" : place + ": " + name;
  }

  std::string CheckParts(const Keyword& keyword, const Json& json,
                         const std::string& place) {
    const bool of_object = keyword.name == "properties";
    if (of_object ? !json.is_object() : !json.is_array()) return {};
    for (const auto& [key, value] : json.items()) {
      if (of_object && !keyword.argument.contains(key)) continue;
      const Json& schema =
          of_object ? keyword.argument.at(key) : keyword.argument;
      std::string problem =
          Check(schema, value, fmt::format("{}/{}", place, key));
      if (!problem.empty()) return problem;
    }
    return {};
  }

  // Keywords that look at `json` itself. Those for another type hold.
  static bool Holds(const Keyword& keyword, const Json& json) {
    const std::string& name = keyword.name;
    const Json& argument = keyword.argument;
    if (name == "type") return HasType(json, argument.get<std::string>());
    if (name == "enum")
      return std::find(argument.begin(), argument.end(), json) !=
             argument.end();
    if (name == "required")
      return !json.is_object() ||
             std::all_of(argument.begin(), argument.end(),
                         [&](const Json& key) {
                           return json.contains(key.get<std::string>());
                         });
    if (name == "additionalProperties") {
      if (!json.is_object()) return true;
      const Json& known = keyword.schema.at("properties");
      for (const auto& [key, value] : json.items())
        if (!known.contains(key)) return argument.get<bool>();
      return true;
    }
    if (name == "uniqueItems") {
      const std::set<Json> items(json.begin(), json.end());
      return !json.is_array() || items.size() == json.size();
    }
    return HoldsBound(name, argument, json);
  }

  static bool HoldsBound(const std::string& name, const Json& argument,
                         const Json& json) {
    if (name == "pattern")
      return !json.is_string() ||
             std::regex_search(json.get<std::string>(),
                               std::regex(argument.get<std::string>()));
    const double bound = argument.get<double>();
    const double number = json.is_number() ? json.get<double>() : NAN;
    if (name == "minimum") return !(number < bound);
    if (name == "maximum") return !(number > bound);
    if (name == "exclusiveMinimum") return !(number <= bound);
    const double length =
        json.is_string() ? static_cast<double>(json.get<std::string>().size())
                         : NAN;
    if (name == "minLength") return !(length < bound);
    if (name == "maxLength") return !(length > bound);
    const double items =
        json.is_array() ? static_cast<double>(json.size()) : NAN;
    if (name == "minItems") return !(items < bound);
    if (name == "maxItems") return !(items > bound);
    return false;  // a keyword that is not tested
  }

  const Json& root_;
};

}  // namespace

std::string SchemaViolation(const Json& schema, const Json& json) {
  return Validator(schema).Check(schema, json, "");
}

}  // namespace hexllm::quant
