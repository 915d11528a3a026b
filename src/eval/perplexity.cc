#include "eval/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hexllm {
namespace {

// Sums of the counted tokens' negative log-likelihoods.
struct Sums {
  double nll = 0;
  double squares = 0;
  uint64_t tokens = 0;

  void Add(double value) {
    nll += value;
    squares += value * value;
    ++tokens;
  }
};

Status CheckOptions(const Session& session, size_t tokens,
                    const PerplexityOptions& options) {
  const auto usage = [](std::string message) {
    return Error{ErrorCode::kUsage, std::move(message)};
  };
  if (options.window < 2 || options.window > session.context_tokens()) {
    return usage(fmt::format("window: expected 2 to {}, the context, found {}",
                             session.context_tokens(), options.window));
  }
  if (options.stride < 1 || options.stride > options.window) {
    return usage(fmt::format("stride: expected 1 to {}, the window, found {}",
                             options.window, options.stride));
  }
  if (tokens < options.window) {
    return usage(
        fmt::format("text: expected at least one window of {} tokens, "
                    "found {} tokens",
                    options.window, tokens));
  }
  return OkStatus();
}

// Runs one window and adds the tokens from `first_counted` (an index in the
// window, at least 1) on.
Status RunWindow(Session& session, std::span<const int32_t> window,
                 size_t first_counted, Sums& sums) {
  return session.Logits(
      window, [&](uint32_t position, std::span<const float> logits) {
        const size_t next = size_t{position} + 1;
        if (next >= first_counted && next < window.size()) {
          sums.Add(NegativeLogLikelihood(logits, window[next]));
        }
        return OkStatus();
      });
}

Perplexity Summarize(const Sums& sums, uint64_t windows) {
  Perplexity out;
  const auto tokens = static_cast<double>(sums.tokens);
  out.windows = windows;
  out.counted_tokens = sums.tokens;
  out.mean_nll = sums.nll / tokens;
  out.perplexity = std::exp(out.mean_nll);
  const double variance =
      std::max(0.0, sums.squares / tokens - out.mean_nll * out.mean_nll);
  out.standard_error = std::sqrt(variance / tokens);
  return out;
}

}  // namespace

double NegativeLogLikelihood(std::span<const float> logits, int32_t id) {
  HX_CHECK(id >= 0 && static_cast<size_t>(id) < logits.size());
  const double best = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - best);
  }
  return std::log(sum) + best -
         static_cast<double>(logits[static_cast<size_t>(id)]);
}

Result<Perplexity> MeasurePerplexity(Session& session,
                                     std::span<const int32_t> ids,
                                     const PerplexityOptions& options,
                                     ProgressSink& progress) {
  HX_RETURN_IF_ERROR(CheckOptions(session, ids.size(), options));
  uint64_t windows = (ids.size() - options.window) / options.stride + 1;
  windows = std::min(windows, options.limit.value_or(windows));
  if (windows == 0) {
    return Error{ErrorCode::kUsage,
                 "limit: expected at least 1 window, found 0"};
  }
  progress.Begin("perplexity", "windows", static_cast<int64_t>(windows));
  Sums sums;
  for (uint64_t i = 0; i < windows; ++i) {
    const auto window = ids.subspan(i * options.stride, options.window);
    const size_t first = i == 0 ? 1 : options.window - options.stride;
    HX_RETURN_IF_ERROR(
        RunWindow(session, window, std::max<size_t>(first, 1), sums));
    progress.Update(static_cast<int64_t>(i) + 1);
  }
  return Summarize(sums, windows);
}

}  // namespace hexllm
