#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <span>
#include <utility>

#include "base/near_name.h"
#include "base/quote.h"
#include "quant/recipe.h"
#include "quant/recipe_check.h"
#include "quant/recipe_fields.h"
#include "quant/recipe_glob.h"

namespace hexllm::quant {
namespace {

// Bounds on what a file can make us do; far above any recipe in use.
constexpr size_t kMaxRules = 1000;
constexpr size_t kMaxPatterns = 1000;  // of one rule
constexpr size_t kMaxNameBytes = 100;
constexpr size_t kMaxDescriptionBytes = 1000;

using Names = std::vector<std::string_view>;

Error Bad(std::string message) {
  return {ErrorCode::kBadInput, std::move(message)};
}

// kBadInput unless `json` is an object whose keys are all in `known`.
Status CheckKeys(const Json& json, const Names& known) {
  if (!json.is_object())
    return Bad(fmt::format("expected an object, found {}", JsonTypeName(json)));
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(known, key) == known.end()) {
      return Bad(fmt::format("unknown key {}; {}", Quoted(key),
                             SuggestNames(key, known)));
    }
    if (value.is_null())
      return Bad(fmt::format("{}: expected a value, found null", key));
  }
  return OkStatus();
}

// `keys` and those of the settings.
Names WithSettings(Names keys) {
  const Status walked = ForEachField([&](const auto& field) {
    keys.push_back(field.key);
    return OkStatus();
  });
  HX_CHECK(walked.ok());
  return keys;
}

Result<LayerSettings> ParseDefaults(const Json& json) {
  HX_RETURN_IF_ERROR(CheckKeys(json, WithSettings({})));
  LayerSettings settings;
  HX_RETURN_IF_ERROR(ForEachField([&](const auto& field) -> Status {
    const Json* value = FindMember(json, field.key);
    if (value == nullptr) return OkStatus();
    auto read = field.read(*value);
    if (!read.ok()) return std::move(read).error().With(std::string(field.key));
    settings.*field.setting = read.value();
    return OkStatus();
  }));
  if (settings.scheme == nullptr)
    return Bad("scheme: expected the name of a scheme, found nothing");
  return settings;
}

// The member `key`: strings that `check` accepts; none when it is missing.
Result<std::vector<std::string>> ParsePatterns(
    const Json& rule, std::string_view key, Status (*check)(std::string_view)) {
  std::vector<std::string> patterns;
  const Json* list = FindMember(rule, key);
  if (list == nullptr) return patterns;
  const auto fail = [&](const std::string& problem) {
    return Bad(fmt::format("{}: {}", key, problem));
  };
  if (!list->is_array() || list->empty() || list->size() > kMaxPatterns) {
    return fail(fmt::format("expected an array of 1 to {} strings, found {}{}",
                            kMaxPatterns, JsonTypeName(*list),
                            list->is_array()
                                ? fmt::format(" of {}", list->size())
                                : std::string()));
  }
  for (const Json& item : *list) {
    if (!item.is_string())
      return fail(
          fmt::format("expected strings, found {}", JsonTypeName(item)));
    const auto& pattern = item.get_ref<const std::string&>();
    if (const Status status = check(pattern); !status.ok())
      return fail(status.error().message);
    if (std::ranges::find(patterns, pattern) != patterns.end())
      return fail(fmt::format("{} is given twice", Quoted(pattern)));
    patterns.push_back(pattern);
  }
  return patterns;
}

Status CheckOp(std::string_view op) {
  if (std::ranges::find(kLayerOps, op) != std::end(kLayerOps))
    return OkStatus();
  return Bad(fmt::format("expected an op that layers have, found {}; {}",
                         Quoted(op), SuggestNames(op, kLayerOps)));
}

Result<Rule> ParseRule(const Json& json) {
  HX_RETURN_IF_ERROR(CheckKeys(json, WithSettings({"names", "ops"})));
  Rule rule;
  HX_ASSIGN_OR_RETURN(rule.names, ParsePatterns(json, "names", CheckGlob));
  HX_ASSIGN_OR_RETURN(rule.ops, ParsePatterns(json, "ops", CheckOp));
  if (rule.names.empty() && rule.ops.empty())
    return Bad(
        "expected names or ops that say which layers it is for, found "
        "neither");
  bool sets = false;
  HX_RETURN_IF_ERROR(ForEachField([&](const auto& field) -> Status {
    const Json* value = FindMember(json, field.key);
    if (value == nullptr) return OkStatus();
    auto read = field.read(*value);
    if (!read.ok()) return std::move(read).error().With(std::string(field.key));
    rule.*field.rule = read.value();
    sets = true;
    return OkStatus();
  }));
  if (!sets) return Bad("expected a setting such as scheme, found none");
  return rule;
}

Result<std::vector<Rule>> ParseRules(const Json& json) {
  if (!json.is_array() || json.size() > kMaxRules) {
    return Bad(fmt::format("rules: expected an array of at most {}, found {}",
                           kMaxRules,
                           json.is_array() ? std::to_string(json.size())
                                           : std::string(JsonTypeName(json))));
  }
  std::vector<Rule> rules;
  for (size_t i = 0; i < json.size(); ++i) {
    auto rule = ParseRule(json[i]);
    if (!rule.ok())
      return std::move(rule).error().With(fmt::format("rules[{}]", i));
    rules.push_back(std::move(rule).value());
  }
  return rules;
}

Status CheckName(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  if (!name.empty() && name.size() <= kMaxNameBytes &&
      std::ranges::all_of(name, allowed))
    return OkStatus();
  return Bad(
      fmt::format("name: expected 1 to {} letters, digits and . _ -, found {}",
                  kMaxNameBytes, Quoted(name)));
}

Status ParseHead(const Json& json, Recipe& recipe) {
  HX_ASSIGN_OR_RETURN(recipe.name, GetString(json, "name"));
  HX_RETURN_IF_ERROR(CheckName(recipe.name));
  HX_ASSIGN_OR_RETURN(recipe.description, GetStringOr(json, "description", ""));
  if (recipe.description.size() > kMaxDescriptionBytes) {
    return Bad(fmt::format("description: expected at most {} bytes, found {}",
                           kMaxDescriptionBytes, recipe.description.size()));
  }
  HX_RETURN_IF_ERROR(GetStringOr(json, "$schema", "").status());
  return OkStatus();
}

Status ParseKv(const Json& json, Recipe& recipe) {
  if (const Json* bits = FindMember(json, "kv_bits")) {
    const auto read = ReadInt(*bits, 8, 16);
    if (!read.ok() || (read.value() != 8 && read.value() != 16))
      return Bad(fmt::format("kv_bits: expected 8 or 16, found {}",
                             Printable(DumpJson(*bits))));
    recipe.kv_bits = read.value();
  }
  if (const Json* limit = FindMember(json, "kv_outlier_db")) {
    auto read = ReadNumber(*limit, 0, 200);
    if (!read.ok()) return std::move(read).error().With("kv_outlier_db");
    recipe.kv_outlier_db = read.value();
  }
  return OkStatus();
}

Status ParseRotations(const Json& json, Rotations& rotations) {
  for (const auto& [key, place] :
       {std::pair("r1", &rotations.r1), std::pair("r2", &rotations.r2),
        std::pair("r3", &rotations.r3)}) {
    const Json* value = FindMember(json, key);
    if (value == nullptr) continue;
    auto read = ReadRotation(*value);
    if (!read.ok()) return std::move(read).error().With(key);
    *place = read.value();
  }
  if (const Json* seed = FindMember(json, "rotation_seed")) {
    auto read = ReadInt(*seed, 0, INT_MAX);
    if (!read.ok()) return std::move(read).error().With("rotation_seed");
    rotations.seed = read.value();
  }
  return OkStatus();
}

Result<Recipe> ParseFields(const Json& json) {
  HX_RETURN_IF_ERROR(CheckKeys(
      json,
      {"$schema", "name", "description", "defaults", "kv_bits", "kv_outlier_db",
       "residual", "r1", "r2", "r3", "rotation_seed", "smooth", "rules"}));
  Recipe recipe;
  HX_RETURN_IF_ERROR(ParseHead(json, recipe));
  const Json* defaults = FindMember(json, "defaults");
  if (defaults == nullptr)
    return Bad("defaults: expected an object with a scheme, found nothing");
  auto settings = ParseDefaults(*defaults);
  if (!settings.ok()) return std::move(settings).error().With("defaults");
  recipe.defaults = settings.value();
  HX_RETURN_IF_ERROR(ParseKv(json, recipe));
  if (const Json* residual = FindMember(json, "residual")) {
    auto read = ReadResidual(*residual);
    if (!read.ok()) return std::move(read).error().With("residual");
    recipe.residual = read.value();
  }
  HX_RETURN_IF_ERROR(ParseRotations(json, recipe.rotations));
  if (const Json* smooth = FindMember(json, "smooth")) {
    auto read = ReadSmoothing(*smooth);
    if (!read.ok()) return std::move(read).error().With("smooth");
    recipe.smooth = read.value();
  }
  if (const Json* list = FindMember(json, "rules")) {
    HX_ASSIGN_OR_RETURN(recipe.rules, ParseRules(*list));
  }
  HX_RETURN_IF_ERROR(CheckRecipe(recipe));
  return recipe;
}

}  // namespace

Result<Recipe> ParseRecipe(const Json& json, std::string_view where) {
  auto recipe = ParseFields(json);
  if (!recipe.ok()) return std::move(recipe).error().With(std::string(where));
  return recipe;
}

}  // namespace hexllm::quant
