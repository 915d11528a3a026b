#include "quant/recipe_compose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "quant/recipe_fields.h"

namespace hexllm::quant {
namespace {

constexpr std::string_view kWished[] = {"scheme", "block", "granularity",
                                        "weight_observer"};

bool IsWished(std::string_view key) {
  return std::ranges::find(kWished, key) != std::end(kWished);
}

// Calls visit(Field<T>) for the wished settings.
template <typename Visit>
void ForEachWished(Visit visit) {
  const Status walked = ForEachField([&](const auto& field) {
    if (IsWished(field.key)) visit(field);
    return OkStatus();
  });
  HX_CHECK(walked.ok());
}

bool SameWish(const LayerSettings& a, const LayerSettings& b) {
  bool same = true;
  ForEachWished([&](const auto& field) {
    // The block of a scheme without blocks has no effect.
    if (field.key == "block" && !a.scheme->block && !b.scheme->block) return;
    same &= a.*field.setting == b.*field.setting;
  });
  return same;
}

bool SetsAnything(const Rule& rule) {
  bool any = false;
  const Status walked = ForEachField([&](const auto& field) {
    any |= (rule.*field.rule).has_value();
    return OkStatus();
  });
  HX_CHECK(walked.ok());
  return any;
}

// The layers of one wish.
struct Group {
  LayerSettings settings;
  std::vector<std::string> names;
};

// In order of first appearance.
std::vector<Group> GroupWishes(std::span<const LayerWish> wishes) {
  std::vector<Group> groups;
  for (const LayerWish& wish : wishes) {
    auto at = std::ranges::find_if(groups, [&](const Group& group) {
      return SameWish(group.settings, wish.settings);
    });
    if (at == groups.end())
      at = groups.insert(at, {.settings = wish.settings, .names = {}});
    at->names.push_back(wish.layer.name);
  }
  return groups;
}

// The rule that makes the defaults of its layers what the group wants.
Rule RuleFor(const Group& group, const LayerSettings& defaults,
             std::span<const std::string> all) {
  Rule rule;
  rule.names = ShortGlobs(group.names, all);
  ForEachWished([&](const auto& field) {
    if (field.key == "block" && !group.settings.scheme->block) return;
    const auto& value = group.settings.*field.setting;
    if (value != defaults.*field.setting) rule.*field.rule = value;
  });
  return rule;
}

// A name as what stands before and after its layer's number.
struct NumberedName {
  std::string before, after;
  int number = 0;
};

// False for a name without ".<number>.".
bool SplitName(const std::string& name, NumberedName& split) {
  for (size_t dot = name.find('.'); dot != std::string::npos;
       dot = name.find('.', dot + 1)) {
    const char* const begin = name.data() + dot + 1;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, split.number);
    if (error != std::errc() || stop == end || *stop != '.') continue;
    split.before = name.substr(0, dot + 1);
    split.after = std::string(stop, end);
    return true;
  }
  return false;
}

// "[0-357]" of 0 to 3, 5 and 7; "4" of 4 alone.
std::string DigitSet(const std::set<int>& digits) {
  if (digits.size() == 1) return std::to_string(*digits.begin());
  std::string text = "[";
  for (auto at = digits.begin(); at != digits.end();) {
    auto last = at;
    while (std::next(last) != digits.end() && *std::next(last) == *last + 1)
      ++last;
    text += std::to_string(*at);
    if (*last > *at + 1) text += '-';
    if (last != at) text += std::to_string(*last);
    at = std::next(last);
  }
  return text + "]";
}

}  // namespace

std::vector<std::string> ShortGlobs(std::span<const std::string> chosen,
                                    std::span<const std::string> all) {
  using Place = std::pair<std::string, std::string>;  // before, after
  std::map<Place, std::set<int>> present;
  NumberedName split;
  for (const std::string& name : all) {
    if (SplitName(name, split))
      present[{split.before, split.after}].insert(split.number);
  }
  std::vector<std::string> globs;
  std::map<Place, std::set<int>> wanted;
  for (const std::string& name : chosen) {
    if (SplitName(name, split))
      wanted[{split.before, split.after}].insert(split.number);
    else
      globs.push_back(name);
  }
  for (const auto& [place, numbers] : wanted) {
    const auto& [before, after] = place;
    if (numbers == present[place]) {
      globs.push_back(before + "*" + after);
      continue;
    }
    std::map<int, std::set<int>> by_tens;
    for (const int number : numbers) by_tens[number / 10].insert(number % 10);
    for (const auto& [tens, digits] : by_tens) {
      globs.push_back(before + (tens > 0 ? std::to_string(tens) : "") +
                      DigitSet(digits) + after);
    }
  }
  return globs;
}

Result<Recipe> ComposeRecipe(const Recipe& base,
                             std::span<const LayerWish> wishes) {
  HX_CHECK(!wishes.empty());
  std::vector<std::string> names;
  std::vector<LayerId> layers;
  for (const LayerWish& wish : wishes) {
    names.push_back(wish.layer.name);
    layers.push_back(wish.layer);
  }
  const std::vector<Group> groups = GroupWishes(wishes);
  const auto most = std::ranges::max_element(
      groups, {}, [](const Group& group) { return group.names.size(); });
  Recipe recipe = base;
  ForEachWished([&](const auto& field) {
    recipe.defaults.*field.setting = most->settings.*field.setting;
    for (Rule& rule : recipe.rules) (rule.*field.rule).reset();
  });
  std::erase_if(recipe.rules,
                [](const Rule& rule) { return !SetsAnything(rule); });
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    if (group != most)
      recipe.rules.push_back(RuleFor(*group, recipe.defaults, names));
  }
  HX_ASSIGN_OR_RETURN(const ResolvedRecipe resolved,
                      ResolveRecipe(recipe, layers));
  for (const LayerWish& wish : wishes)
    HX_CHECK(SameWish(resolved.For(wish.layer.name), wish.settings));
  return recipe;
}

}  // namespace hexllm::quant
