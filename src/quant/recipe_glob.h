// Globs over layer names. Used by recipes' rules. Not file globs: a dot or
// slash is a character like any other, and there is no escape (layer names hold
// no special characters).
//   *       any run of characters, also none
//   ?       any one character
//   [a-c5]  one of a set, [!a-c5] one outside it
//   other   itself
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"

namespace hexllm::quant {

inline constexpr size_t kMaxGlobBytes = 256;

// kBadInput saying what is wrong: empty or too long, a set that is empty, not
// closed or has a range that runs backwards.
Status CheckGlob(std::string_view glob);

// Whether all of `name` matches. `glob` must have passed CheckGlob. Takes at
// most size(glob) * size(name) steps.
bool GlobMatches(std::string_view glob, std::string_view name);

}  // namespace hexllm::quant
