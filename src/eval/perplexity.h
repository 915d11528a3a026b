// Token-level perplexity over fixed windows of one token sequence. Works on a
// Session, whatever stage or backend its artifact is. Used by cli/.
//
// Windows of `window` tokens start every `stride` tokens; each is run from an
// empty context. Its first token is given; of the others, those count that no
// window before it has counted. A rest shorter than `window` is left out.
//
//   window 4, stride 2    a b c d e f g
//   first window          . B C D            counts b, c, d
//   second window             . . E F        counts e, f
//
// Source: Hugging Face transformers, "Perplexity of fixed-length models".
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/progress.h"
#include "base/status.h"
#include "runtime/session.h"

namespace hexllm {

struct PerplexityOptions {
  uint32_t window = 512;
  uint32_t stride = 512;               // 1 to window
  std::optional<uint64_t> limit = {};  // windows; unset = all
};

struct Perplexity {
  double perplexity = 0;      // exp of the mean negative log-likelihood
  double mean_nll = 0;        // nats per counted token
  double standard_error = 0;  // of mean_nll, over counted tokens
  uint64_t windows = 0;
  uint64_t counted_tokens = 0;
};

// -log of the probability that softmax(logits) gives `id`, in double.
double NegativeLogLikelihood(std::span<const float> logits, int32_t id);

// Runs `ids`. kUsage when window or stride are out of range, the window is
// longer than the session's context, or `ids` are fewer than one window;
// errors of the session.
Result<Perplexity> MeasurePerplexity(Session& session,
                                     std::span<const int32_t> ids,
                                     const PerplexityOptions& options,
                                     ProgressSink& progress);

}  // namespace hexllm
