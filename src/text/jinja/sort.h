// Sorting as the filters `sort` and `dictsort` do it.
#pragma once

#include <vector>

#include "text/jinja/context.h"

namespace hexllm::jinja {

struct SortOrder {
  bool reverse = false;
  bool case_sensitive = false;
};

// Sorts `items` by the attributes that `attributes` names (a path, several with
// commas, an int, or None for the items themselves). Stable. kBadInput when two
// keys cannot be ordered.
Status SortByAttributes(Context& context, std::vector<Value>& items,
                        const Value& attributes, const SortOrder& order);

}  // namespace hexllm::jinja
