// Cuts token sequences into the windows that perplexity is measured over. Used
// by eval/task.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "eval/score.h"

namespace hexllm {

// Every token of a document counts once. A window runs at most `window` tokens
// (at least 1); each but the last counts as many as it runs, the last one has
// full context. `prefix` stands before the first token and is not counted;
// without one the first token is given. window 3, document a b c d e:
//
//   runs   < a b     counts   a b c         < = prefix
//          b c d              d e           (b and c are context)
//
// Source: lm-evaluation-harness, get_rolling_token_windows with context_len 1.
std::vector<Request> RollingWindows(std::span<const int32_t> ids,
                                    std::optional<int32_t> prefix,
                                    uint32_t window);

// Windows of `window` tokens (at least 2) start every `stride` tokens (1 to
// window). The first token of each is given; of the others, those count that no
// window before it has counted. A rest shorter than a window is left out.
// window 4, stride 2, text a b c d e f g:
//
//   . B C D            counts b, c, d
//       . . E F        counts e, f
//
// Source: Hugging Face transformers, "Perplexity of fixed-length models".
std::vector<Request> FixedWindows(std::span<const int32_t> ids, uint32_t window,
                                  uint32_t stride);

}  // namespace hexllm
