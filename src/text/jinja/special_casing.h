// Characters whose upper or title case is more than one character, e.g. the
// sharp s. Used by jinja/text.cc. Source: Unicode's SpecialCasing.txt, the
// entries without conditions.
#pragma once

#include <cstdint>

namespace hexllm::jinja {

// Unused places are 0.
struct SpecialCasing {
  uint32_t character;
  uint32_t upper[3];
  uint32_t title[3];
};

// The entry of `c`, or null when its mappings are single characters.
const SpecialCasing* FindSpecialCasing(uint32_t c);

}  // namespace hexllm::jinja
