#include "quant/recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/near_name.h"
#include "base/quote.h"
#include "quant/recipe_fields.h"

namespace hexllm::quant {
namespace {

constexpr size_t kMaxFileBytes = 256 << 10;

Json WriteDefaults(const LayerSettings& settings) {
  Json json = Json::object();
  const Status walked = ForEachField([&](const auto& field) {
    json[std::string(field.key)] = field.write(settings.*field.setting);
    return OkStatus();
  });
  HX_CHECK(walked.ok());
  return json;
}

Json WriteRule(const Rule& rule) {
  Json json = Json::object();
  if (!rule.names.empty()) json["names"] = rule.names;
  if (!rule.ops.empty()) json["ops"] = rule.ops;
  const Status walked = ForEachField([&](const auto& field) {
    const auto& value = rule.*field.rule;
    if (value) json[std::string(field.key)] = field.write(*value);
    return OkStatus();
  });
  HX_CHECK(walked.ok());
  return json;
}

// True when a scheme of the defaults or of a rule is such a one.
template <typename Predicate>
bool AnyScheme(const Recipe& recipe, Predicate is_such) {
  return is_such(*recipe.defaults.scheme) ||
         std::ranges::any_of(recipe.rules, [&](const Rule& rule) {
           return rule.scheme && is_such(**rule.scheme);
         });
}

Result<Recipe> LoadRecipe(const std::string& path) {
  HX_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path, kMaxFileBytes));
  return ParseRecipe(json, path);
}

}  // namespace

bool Quantizes(const Recipe& recipe) { return AnyScheme(recipe, IsQuantized); }

bool HasStaticRanges(const Recipe& recipe) {
  return AnyScheme(recipe, [](const Scheme& scheme) {
    return scheme.activations == ActivationKind::kStatic;
  });
}

bool Smooths(const Recipe& recipe) {
  return recipe.smooth.kind != Smoothing::Kind::kNone;
}

Recipe FloatRecipe(const Recipe& recipe) {
  constexpr std::string_view kFloat = "fp32";
  return {.name = std::string(kFloat),
          .description = {},
          .defaults = {.scheme = FindScheme(kFloat)},
          .rotations = recipe.rotations,
          .smooth = {},
          .rules = {}};
}

bool IsRecipeFile(std::string_view name) {
  return name.ends_with(".json") || name.find('/') != std::string_view::npos;
}

std::string RecipeToJson(const Recipe& recipe) {
  Json json = {{"name", recipe.name},
               {"description", recipe.description},
               {"defaults", WriteDefaults(recipe.defaults)},
               {"kv_bits", recipe.kv_bits},
               {"kv_outlier_db", recipe.kv_outlier_db},
               {"residual", WriteResidual(recipe.residual)},
               {"r1", WriteRotation(recipe.rotations.r1)},
               {"r2", WriteRotation(recipe.rotations.r2)},
               {"r3", WriteRotation(recipe.rotations.r3)},
               {"rotation_seed", recipe.rotations.seed},
               {"smooth", WriteSmoothing(recipe.smooth)},
               {"rules", Json::array()}};
  for (const Rule& rule : recipe.rules)
    json["rules"].push_back(WriteRule(rule));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Recipe> FindRecipe(const std::string& name_or_file) {
  if (IsRecipeFile(name_or_file)) return LoadRecipe(name_or_file);
  std::vector<std::string_view> names;
  for (const BuiltinRecipe& recipe : BuiltinRecipes()) {
    if (recipe.name != name_or_file) {
      names.push_back(recipe.name);
      continue;
    }
    HX_ASSIGN_OR_RETURN(const Json json, ParseJson(recipe.json));
    return ParseRecipe(json, fmt::format("recipe {}", recipe.name));
  }
  return Error{
      ErrorCode::kUsage,
      fmt::format("unknown recipe {}; {} (a file's name ends in .json "
                  "or holds a '/')",
                  Quoted(name_or_file), SuggestNames(name_or_file, names))};
}

}  // namespace hexllm::quant
