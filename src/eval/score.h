// What a model thinks of given tokens: the log-probabilities that all figures
// of eval/ are made of. Works on a Session, whatever stage or backend its
// artifact is. Not where texts become tokens: see eval/task.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/session.h"

namespace hexllm {

// Tokens that run from an empty context: all but the last, which is only
// predicted. Those from index `first_counted` (at least 1) on count.
struct Request {
  std::vector<int32_t> ids;
  uint32_t first_counted = 1;
};

// Sums over the counted tokens of a request, in nats.
struct Score {
  double nll = 0;      // negative log-likelihood
  double squares = 0;  // of the tokens' ones
  uint64_t tokens = 0;
  bool greedy = true;  // each counted token was the likeliest
};

// -log of the probability that softmax(logits) gives `id` (in range, checked).
// exp in f32, sums in f64: within 1e-6 of the exact value.
double NegativeLogLikelihood(std::span<const float> logits, int32_t id);

// kBadInput with token and `position` unless all `logits` are finite.
Status CheckFinite(std::span<const float> logits, uint32_t position);

// Runs `request` (at least two ids, checked). Errors of Session::Logits and
// CheckFinite.
Result<Score> ScoreRequest(Session& session, const Request& request);

}  // namespace hexllm
