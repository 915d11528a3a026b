// Suggestions for a mistyped name. Used in messages about names that are not in
// a table: schemes, recipes, keys. Not a search: tables are short.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hexllm {

// The candidates that `name` may have been meant as, nearest first, at most
// three: those that differ by few edits (insertion, deletion, replacement, swap
// of neighbours; upper and lower case are one), and those that begin with it.
// May be empty. Views of the candidates' text.
std::vector<std::string_view> NearNames(
    std::string_view name, std::span<const std::string_view> candidates);

// The end of a message: "did you mean 'a' or 'b'?", or, when nothing is near,
// "expected one of a, b, c".
std::string SuggestNames(std::string_view name,
                         std::span<const std::string_view> candidates);

}  // namespace hexllm
