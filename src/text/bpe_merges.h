// Turns published merges, pairs of spellings, into pairs of ids. Used by the
// readers of tokenizer.json and GGUF.
#pragma once

#include <vector>

#include "base/status.h"
#include "text/string_table.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// `halves` holds the left and right spelling of each merge, one after the
// other. kBadInput naming a merge whose parts or result are not in `pieces`.
Result<std::vector<Merge>> ResolveMerges(const StringTable& pieces,
                                         const StringTable& halves);

}  // namespace hexllm
