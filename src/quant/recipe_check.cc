#include "quant/recipe_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/quote.h"
#include "quant/recipe_fields.h"

namespace hexllm::quant {
namespace {

Error Bad(std::string message) {
  return {ErrorCode::kBadInput, std::move(message)};
}

// The key of a setting other than the scheme that `rule` sets; empty = none.
std::string_view SettingBesideScheme(const Rule& rule) {
  std::string_view key;
  const Status walked = ForEachField([&](const auto& field) {
    if (field.key != "scheme" && rule.*field.rule) key = field.key;
    return OkStatus();
  });
  HX_CHECK(walked.ok());
  return key;
}

std::string_view SettingBesideScheme(const LayerSettings& settings) {
  const LayerSettings plain;
  std::string_view key;
  const Status walked = ForEachField([&](const auto& field) {
    if (field.key != "scheme" &&
        settings.*field.setting != plain.*field.setting)
      key = field.key;
    return OkStatus();
  });
  HX_CHECK(walked.ok());
  return key;
}

Status CheckFamilies(const Recipe& recipe) {
  const Scheme& scheme = *recipe.defaults.scheme;
  for (size_t i = 0; i < recipe.rules.size(); ++i) {
    const auto& other = recipe.rules[i].scheme;
    if (!other || FamilyOf(**other) == FamilyOf(scheme)) continue;
    return Bad(fmt::format(
        "{}: scheme {} cannot stand beside the defaults' {}: fp32 and the cpu- "
        "schemes need no calibration and all others do; use one kind",
        RuleLabel(recipe, i), (*other)->name, scheme.name));
  }
  return OkStatus();
}

// The plain schemes have one way to round, so nothing else can be set.
Status CheckPlain(const Recipe& recipe) {
  const std::string_view scheme = recipe.defaults.scheme->name;
  const auto unused = [&](const std::string& where, std::string_view key) {
    return Bad(fmt::format("{}: {}: scheme {} does not use this; remove it",
                           where, key, scheme));
  };
  if (const auto key = SettingBesideScheme(recipe.defaults); !key.empty())
    return unused("defaults", key);
  for (size_t i = 0; i < recipe.rules.size(); ++i) {
    if (const auto key = SettingBesideScheme(recipe.rules[i]); !key.empty())
      return unused(RuleLabel(recipe, i), key);
  }
  return OkStatus();
}

// What two rules for the same layers set differently.
Status CheckSameLayers(const Recipe& recipe, size_t first, size_t second) {
  return ForEachField([&](const auto& field) -> Status {
    const auto& a = recipe.rules[first].*field.rule;
    const auto& b = recipe.rules[second].*field.rule;
    if (!a || !b || *a == *b) return OkStatus();
    return Bad(fmt::format(
        "{} and {} name the same layers and set {} to {} and to {}: remove one",
        RuleLabel(recipe, first), RuleLabel(recipe, second), field.key,
        DumpJson(field.write(*a)), DumpJson(field.write(*b))));
  });
}

Status CheckConflicts(const Recipe& recipe) {
  using Patterns =
      std::pair<std::vector<std::string>, std::vector<std::string>>;
  std::map<Patterns, std::vector<size_t>> same;
  for (size_t i = 0; i < recipe.rules.size(); ++i) {
    Patterns key = {recipe.rules[i].names, recipe.rules[i].ops};
    std::ranges::sort(key.first);
    std::ranges::sort(key.second);
    auto& earlier = same[std::move(key)];
    for (const size_t other : earlier)
      HX_RETURN_IF_ERROR(CheckSameLayers(recipe, other, i));
    earlier.push_back(i);
  }
  return OkStatus();
}

// R3 is there for caches and products of few bits, and runs with every token.
Status CheckRotations(const Recipe& recipe) {
  const Rotations& wanted = recipe.rotations;
  const Scheme& scheme = *recipe.defaults.scheme;
  if (wanted.r3 == RotationKind::kRandom)
    return Bad("r3: expected none or hadamard, found random");
  if (wanted.r3 != RotationKind::kNone &&
      scheme.activations == ActivationKind::kDynamic) {
    return Bad(
        fmt::format("r3: scheme {} does not round queries and keys; "
                    "remove it",
                    scheme.name));
  }
  if (wanted.seed != 0 && wanted.r1 == RotationKind::kNone &&
      wanted.r2 == RotationKind::kNone)
    return Bad("rotation_seed: expected with r1 or r2, found alone; remove it");
  return OkStatus();
}

// What chooses by a layer's inputs needs codes of 4 or 8 bits.
Status CheckSearch(const LayerSettings& settings) {
  const Scheme& scheme = *settings.scheme;
  if (scheme.activations == ActivationKind::kStatic && scheme.weight_bits <= 8)
    return OkStatus();
  const auto unfit = [&](std::string_view key, std::string_view plain,
                         std::string_view found) {
    return Bad(fmt::format(
        "{}: expected {} for scheme {}, whose weights are not 4 or 8 bits "
        "wide, found {}",
        key, plain, scheme.name, found));
  };
  if (settings.weight_observer == WeightObserverKind::kSeqMse)
    return unfit("weight_observer", "min_max or mse", "seq_mse");
  if (settings.rounding == RoundingKind::kGptq)
    return unfit("rounding", "nearest", "gptq");
  return OkStatus();
}

}  // namespace

Status CheckRecipe(const Recipe& recipe) {
  const Scheme& scheme = *recipe.defaults.scheme;
  HX_RETURN_IF_ERROR(CheckFamilies(recipe));
  if (FamilyOf(scheme) == SchemeFamily::kPlain)
    HX_RETURN_IF_ERROR(CheckPlain(recipe));
  if (recipe.kv_bits == 8 && scheme.activations != ActivationKind::kStatic) {
    return Bad(fmt::format(
        "kv_bits: 8 needs a default scheme with integer activations, found {}; "
        "remove it or choose e.g. 16a8w",
        scheme.name));
  }
  if (recipe.residual == ResidualKind::kFloat16 &&
      scheme.activations != ActivationKind::kStatic) {
    return Bad(fmt::format(
        "residual: float16 needs a default scheme with integer activations, "
        "found {}; remove it or choose e.g. 16a8w",
        scheme.name));
  }
  HX_RETURN_IF_ERROR(CheckRotations(recipe));
  if (Smooths(recipe) && scheme.weight_bits == 0) {
    return Bad(fmt::format(
        "smooth: scheme {} has no codes, whose errors it is for; remove it",
        scheme.name));
  }
  if (Status status = CheckSettings(recipe.defaults); !status.ok())
    return std::move(status).error().With("defaults");
  return CheckConflicts(recipe);
}

Status CheckSettings(const LayerSettings& settings) {
  const Scheme& scheme = *settings.scheme;
  const bool per_tensor = settings.granularity == WeightGranularity::kPerTensor;
  if (scheme.block && per_tensor) {
    return Bad(fmt::format(
        "granularity: expected per_channel for the blocks of {}, found "
        "per_tensor",
        scheme.name));
  }
  if (scheme.weight_bits == 16 && !per_tensor) {
    return Bad(fmt::format(
        "granularity: expected per_tensor for the 16-bit weights of {}, found "
        "per_channel",
        scheme.name));
  }
  return CheckSearch(settings);
}

std::string RuleLabel(const Recipe& recipe, size_t index) {
  const Rule& rule = recipe.rules[index];
  const auto& patterns = rule.names.empty() ? rule.ops : rule.names;
  HX_CHECK(!patterns.empty());
  return fmt::format("rules[{}] ({}{})", index, Quoted(patterns.front()),
                     patterns.size() > 1 ? ", ..." : "");
}

}  // namespace hexllm::quant
