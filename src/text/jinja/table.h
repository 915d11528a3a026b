// Looks a name up in a constant table whose rows have a member `name`. Used for
// filters, tests, methods and functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace hexllm::jinja {

// The row called `name`, or null.
template <typename Row, size_t kCount>
const Row* FindRow(const Row (&rows)[kCount], std::string_view name) {
  const auto* it =
      std::find_if(std::begin(rows), std::end(rows),
                   [name](const Row& row) { return row.name == name; });
  return it != std::end(rows) ? it : nullptr;
}

// The function of that row, or null.
template <typename Row, size_t kCount>
auto FindFunction(const Row (&rows)[kCount], std::string_view name) {
  const Row* row = FindRow(rows, name);
  return row != nullptr ? row->function : nullptr;
}

}  // namespace hexllm::jinja
