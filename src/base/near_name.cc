#include "base/near_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hexllm {
namespace {

// Longer names are no typing errors; this bounds the work on hostile ones.
constexpr size_t kMaxLength = 100;
constexpr size_t kMaxSuggestions = 3;

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The number of edits from `a` to `b` (optimal string alignment).
size_t EditDistance(std::string_view a, std::string_view b) {
  // Row i of the table holds the distances from a[0, i) to each b[0, j).
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1),
      row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      row[j] = std::min(
          {last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0u : 1u)});
      const bool swapped = i > 1 && j > 1 &&
                           Lower(a[i - 1]) == Lower(b[j - 2]) &&
                           Lower(a[i - 2]) == Lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

bool BeginsWith(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::ranges::equal(text.substr(0, prefix.size()), prefix, {}, Lower,
                            Lower);
}

}  // namespace

std::vector<std::string_view> NearNames(
    std::string_view name, std::span<const std::string_view> candidates) {
  if (name.empty() || name.size() > kMaxLength) return {};
  std::vector<std::pair<size_t, std::string_view>> found;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kMaxLength) continue;
    const size_t edits = EditDistance(name, candidate);
    const bool near = edits <= std::max<size_t>(1, name.size() / 3);
    if (near || BeginsWith(candidate, name))
      found.emplace_back(edits, candidate);
  }
  std::ranges::stable_sort(found, {},
                           [](const auto& entry) { return entry.first; });
  std::vector<std::string_view> names;
  for (const auto& [edits, candidate] : found) {
    if (names.size() == kMaxSuggestions) break;
    names.push_back(candidate);
  }
  return names;
}

std::string SuggestNames(std::string_view name,
                         std::span<const std::string_view> candidates) {
  const auto near = NearNames(name, candidates);
  if (near.empty())
    return fmt::format("expected one of {}", fmt::join(candidates, ", "));
  return fmt::format("did you mean '{}'?", fmt::join(near, "' or '"));
}

}  // namespace hexllm
