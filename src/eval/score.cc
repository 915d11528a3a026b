#include "eval/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace hexllm {
namespace {

// exp(x) for x <= 0, 0 below -87: 2^n * 2^f, the latter by Taylor's series in
// f * ln 2, |f| <= 1/2, whose rest is below 2^-24. Without branches, so that
// compilers make vectors of it.
float ExpOfNegative(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adds away the fraction
  const float scaled = std::max(x, -87.0F) * kLog2E;
  const float shifted = scaled + kRound;
  const float f = (scaled - (shifted - kRound)) * 0.69314718F;
  float p = 1.0F / 5040;
  for (const float c :
       {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F})
    p = p * f + c;
  const auto n =
      std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
  return p * std::bit_cast<float>((n + 127) << 23);
}

constexpr size_t kLanes = 16;

// Partial sums of a short block in f32, of blocks in f64.
double SumOfExp(std::span<const float> logits, float best) {
  constexpr size_t kBlock = 64 * kLanes;
  double sum = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const auto block =
        logits.subspan(begin, std::min(kBlock, logits.size() - begin));
    std::array<float, kLanes> lanes{};
    const size_t whole = block.size() / kLanes * kLanes;
    for (size_t i = 0; i < whole; i += kLanes) {
      for (size_t k = 0; k < kLanes; ++k)
        lanes[k] += ExpOfNegative(block[i + k] - best);
    }
    for (const float lane : lanes) sum += static_cast<double>(lane);
    for (size_t i = whole; i < block.size(); ++i)
      sum += static_cast<double>(ExpOfNegative(block[i] - best));
  }
  return sum;
}

float Largest(std::span<const float> values) {
  float best = values[0];
  for (const float value : values) best = std::max(best, value);
  return best;
}

}  // namespace

double NegativeLogLikelihood(std::span<const float> logits, int32_t id) {
  HX_CHECK(id >= 0 && static_cast<size_t>(id) < logits.size());
  const float best = Largest(logits);
  return std::log(SumOfExp(logits, best)) + static_cast<double>(best) -
         static_cast<double>(logits[static_cast<size_t>(id)]);
}

Status CheckFinite(std::span<const float> logits, uint32_t position) {
  const auto bad = std::find_if_not(logits.begin(), logits.end(),
                                    [](float x) { return std::isfinite(x); });
  if (bad == logits.end()) return OkStatus();
  return Error{ErrorCode::kBadInput,
               fmt::format("the logit of token {} at position {} is {}: the "
                           "weights or encodings are damaged",
                           bad - logits.begin(), position, *bad)};
}

Result<Score> ScoreRequest(Session& session, const Request& request) {
  const std::span<const int32_t> ids = request.ids;
  HX_CHECK(ids.size() >= 2 && request.first_counted >= 1);
  Score score;
  const auto add = [&](uint32_t position,
                       std::span<const float> logits) -> Status {
    HX_RETURN_IF_ERROR(CheckFinite(logits, position));
    const size_t next = size_t{position} + 1;
    if (next < request.first_counted) return OkStatus();
    const int32_t id = ids[next];
    const double nll = NegativeLogLikelihood(logits, id);
    score.nll += nll;
    score.squares += nll * nll;
    ++score.tokens;
    score.greedy =
        score.greedy && logits[static_cast<size_t>(id)] == Largest(logits);
    return OkStatus();
  };
  HX_RETURN_IF_ERROR(session.Logits(ids.first(ids.size() - 1), add));
  return score;
}

}  // namespace hexllm
