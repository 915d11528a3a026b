#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/quote.h"
#include "quant/recipe.h"
#include "quant/recipe_check.h"
#include "quant/recipe_fields.h"
#include "quant/recipe_glob.h"

namespace hexllm::quant {
namespace {

Error Bad(std::string message) {
  return {ErrorCode::kBadInput, std::move(message)};
}

// Applies the rules of one recipe to layer after layer, and keeps account of
// what matched and what was changed twice.
class Resolver {
 public:
  explicit Resolver(const Recipe& recipe) : recipe_(recipe) {
    for (const Rule& rule : recipe.rules) {
      matched_.push_back({.names = std::vector<bool>(rule.names.size()),
                          .ops = std::vector<bool>(rule.ops.size())});
    }
  }

  LayerSettings Settings(const LayerId& layer) {
    LayerSettings settings = recipe_.defaults;
    std::map<std::string_view, size_t> set_by;  // key of a setting -> its rule
    for (size_t i = 0; i < recipe_.rules.size(); ++i) {
      if (!Matches(i, layer)) continue;
      const Status walked = ForEachField([&](const auto& field) {
        const auto& value = recipe_.rules[i].*field.rule;
        if (!value) return OkStatus();
        auto& setting = settings.*field.setting;
        const auto earlier = set_by.find(field.key);
        if (earlier != set_by.end() && setting != *value) {
          NoteChange({earlier->second, i, field.key},
                     {layer.name, DumpJson(field.write(setting)),
                      DumpJson(field.write(*value)), 1});
        }
        setting = *value;
        set_by[field.key] = i;
        return OkStatus();
      });
      HX_CHECK(walked.ok());
    }
    return settings;
  }

  // kBadInput for a rule, or a pattern of one, that no layer matched.
  Status CheckAllMatched() const {
    for (size_t i = 0; i < matched_.size(); ++i) {
      const Rule& rule = recipe_.rules[i];
      HX_RETURN_IF_ERROR(CheckMatched(i, rule.names, matched_[i].names));
      HX_RETURN_IF_ERROR(CheckMatched(i, rule.ops, matched_[i].ops));
    }
    return OkStatus();
  }

  // The recipe's rules without the patterns that no layer matched; `notes` gets
  // a line for each of those.
  std::vector<Rule> MatchedRules(std::vector<std::string>& notes) const {
    std::vector<Rule> kept;
    for (size_t i = 0; i < matched_.size(); ++i) {
      Rule rule = recipe_.rules[i];
      const bool whole = DropUnmatched(i, matched_[i].names, rule.names, notes);
      if (DropUnmatched(i, matched_[i].ops, rule.ops, notes) && whole)
        kept.push_back(std::move(rule));
    }
    return kept;
  }

  std::vector<std::string> Warnings() const {
    std::vector<std::string> lines;
    for (const auto& [where, change] : changes_) {
      const auto& [earlier, later, key] = where;
      lines.push_back(fmt::format(
          "recipe {}: layer {}{}: {} changes {} from {}, set by {}, to {}",
          recipe_.name, Quoted(change.layer),
          change.count > 1 ? fmt::format(" and {} more", change.count - 1) : "",
          RuleLabel(recipe_, later), key, change.from,
          RuleLabel(recipe_, earlier), change.to));
    }
    return lines;
  }

 private:
  // Which of a rule's patterns have matched a layer.
  struct Matched {
    std::vector<bool> names;
    std::vector<bool> ops;
  };
  // A setting that two rules gave different values; the first such layer.
  struct Change {
    std::string layer, from, to;
    size_t count = 0;
  };
  using ChangeKey = std::tuple<size_t, size_t, std::string_view>;

  bool Matches(size_t index, const LayerId& layer) {
    const Rule& rule = recipe_.rules[index];
    const auto op = std::ranges::find(rule.ops, layer.op);
    if (!rule.ops.empty() && op == rule.ops.end()) return false;
    bool name_matches = rule.names.empty();
    for (size_t i = 0; i < rule.names.size(); ++i) {
      if (!GlobMatches(rule.names[i], layer.name)) continue;
      name_matches = true;
      matched_[index].names[i] = true;
    }
    if (name_matches && op != rule.ops.end())
      matched_[index].ops[static_cast<size_t>(op - rule.ops.begin())] = true;
    return name_matches;
  }

  void NoteChange(const ChangeKey& key, const Change& change) {
    const auto [at, fresh] = changes_.try_emplace(key, change);
    if (!fresh) ++at->second.count;
  }

  Status CheckMatched(size_t index, const std::vector<std::string>& patterns,
                      const std::vector<bool>& matched) const {
    const auto at = std::ranges::find(matched, false);
    if (at == matched.end()) return OkStatus();
    const auto& pattern = patterns[static_cast<size_t>(at - matched.begin())];
    return Bad(fmt::format(
        "recipe {}: {}: {} matches no layer of this model; correct or remove "
        "it",
        recipe_.name, RuleLabel(recipe_, index), Quoted(pattern)));
  }

  // False when patterns were there and none is left.
  bool DropUnmatched(size_t index, const std::vector<bool>& matched,
                     std::vector<std::string>& patterns,
                     std::vector<std::string>& notes) const {
    if (patterns.empty()) return true;
    std::vector<std::string> kept;
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (matched[i]) {
        kept.push_back(std::move(patterns[i]));
        continue;
      }
      notes.push_back(fmt::format(
          "recipe {}: {}: {} matches no layer of this model and is left out",
          recipe_.name, RuleLabel(recipe_, index), Quoted(patterns[i])));
    }
    patterns = std::move(kept);
    return !patterns.empty();
  }

  const Recipe& recipe_;
  std::vector<Matched> matched_;
  std::map<ChangeKey, Change> changes_;
};

// The largest block that divides `inputs`; nothing = none does.
std::optional<int> LargestBlock(int64_t inputs) {
  const auto* const block = std::ranges::find_if(
      kBlocks, [&](int size) { return inputs % size == 0; });
  if (block == std::end(kBlocks)) return std::nullopt;
  return *block;
}

bool BlocksFit(const LayerSettings& settings, const LayerId& layer) {
  return !settings.scheme->block || layer.inputs % settings.block == 0;
}

Status CheckLayer(const LayerSettings& settings, const LayerId& layer) {
  HX_RETURN_IF_ERROR(CheckSettings(settings));
  if (BlocksFit(settings, layer)) return OkStatus();
  const std::optional<int> block = LargestBlock(layer.inputs);
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("expected blocks that divide its {} input channels, found "
                  "blocks of {}; give the layer {}",
                  layer.inputs, settings.block,
                  block ? fmt::format("\"block\": {}", *block)
                        : fmt::format("a scheme without blocks, e.g. {}",
                                      kWithoutBlocks))};
}

// A rule for `layers` alone; `block` unset = kWithoutBlocks.
Rule BlockRule(const std::vector<const LayerId*>& layers,
               std::optional<int> block) {
  Rule rule;
  for (const LayerId* layer : layers) rule.names.push_back(layer->name);
  // Both kinds of patterns, as rules of people seldom have: no conflict with
  // one that names the same layers.
  rule.ops = {layers.front()->op};
  rule.block = block;
  if (!block) rule.scheme = FindScheme(kWithoutBlocks);
  return rule;
}

std::string BlockNote(const Recipe& recipe,
                      const std::vector<const LayerId*>& layers,
                      std::optional<int> block) {
  return fmt::format(
      "recipe {}: layer {}{}: its blocks do not divide the {} input channels; "
      "{}",
      recipe.name, Quoted(layers.front()->name),
      layers.size() > 1 ? fmt::format(" and {} more", layers.size() - 1) : "",
      layers.front()->inputs,
      block ? fmt::format("blocks of {}", *block)
            : fmt::format("scheme {}", kWithoutBlocks));
}

}  // namespace

const LayerSettings& ResolvedRecipe::For(const std::string& name) const {
  const auto found = layers.find(name);
  return found == layers.end() ? recipe.defaults : found->second;
}

Result<ResolvedRecipe> ResolveRecipe(const Recipe& recipe,
                                     std::span<const LayerId> layers) {
  ResolvedRecipe resolved{.recipe = recipe, .layers = {}, .warnings = {}};
  Resolver resolver(recipe);
  for (const LayerId& layer : layers) {
    LayerSettings settings = resolver.Settings(layer);
    if (Status status = CheckLayer(settings, layer); !status.ok()) {
      return std::move(status).error().With(
          fmt::format("recipe {}: layer {}", recipe.name, Quoted(layer.name)));
    }
    const bool fresh = resolved.layers.emplace(layer.name, settings).second;
    HX_CHECK(fresh);
  }
  HX_RETURN_IF_ERROR(resolver.CheckAllMatched());
  resolved.warnings = resolver.Warnings();
  return resolved;
}

FittedRecipe FitRecipe(const Recipe& recipe, std::span<const LayerId> layers) {
  FittedRecipe fitted{.recipe = recipe, .notes = {}};
  Resolver resolver(recipe);
  // By width, so that a note can name it.
  std::map<int64_t, std::vector<const LayerId*>> unfit;
  for (const LayerId& layer : layers) {
    if (!BlocksFit(resolver.Settings(layer), layer))
      unfit[layer.inputs].push_back(&layer);
  }
  fitted.recipe.rules = resolver.MatchedRules(fitted.notes);
  for (const auto& [inputs, same] : unfit) {
    const std::optional<int> block = LargestBlock(inputs);
    fitted.recipe.rules.push_back(BlockRule(same, block));
    fitted.notes.push_back(BlockNote(recipe, same, block));
  }
  return fitted;
}

}  // namespace hexllm::quant
