#include "eval/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace hexllm {
namespace {

// Loops over this many values have a fixed length and no branches, so that
// compilers make vectors of them.
constexpr size_t kLanes = 16;
using Lanes = std::array<float, kLanes>;

// Adds exp(x) for x <= 0, 0 below -87, to each sum: 2^n * 2^f, the latter by
// Taylor's series in f * ln 2, |f| <= 1/2, whose rest is below 2^-24.
void AddExpOfNegative(Lanes x, Lanes& sums) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adds away the fraction
  for (float& value : x) value = value > -87.0F ? value : -87.0F;
  for (size_t i = 0; i < kLanes; ++i) {
    const float scaled = x[i] * kLog2E;
    const float shifted = scaled + kRound;
    const float f = (scaled - (shifted - kRound)) * 0.69314718F;
    float p = f * (1.0F / 5040) + 1.0F / 720;
    p = p * f + 1.0F / 120;
    p = p * f + 1.0F / 24;
    p = p * f + 1.0F / 6;
    p = p * f + 0.5F;
    p = p * f + 1.0F;
    p = p * f + 1.0F;
    const auto n =
        std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
    sums[i] += p * std::bit_cast<float>((n + 127) << 23);
  }
}

// Calls use(lanes) for all values, the last ones padded with `padding`.
template <typename F>
void ForEachLanes(std::span<const float> values, float padding, F&& use) {
  size_t i = 0;
  Lanes lanes;
  for (; i + kLanes <= values.size(); i += kLanes) {
    std::memcpy(lanes.data(), values.data() + i, sizeof(lanes));
    use(lanes);
  }
  if (i == values.size()) return;
  lanes.fill(padding);
  std::copy(values.begin() + static_cast<ptrdiff_t>(i), values.end(),
            lanes.begin());
  use(lanes);
}

// Partial sums of a short block in f32, of blocks in f64.
double SumOfExp(std::span<const float> logits, float best) {
  constexpr size_t kBlock = 64 * kLanes;
  double sum = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const size_t size = std::min(kBlock, logits.size() - begin);
    Lanes sums{};
    ForEachLanes(logits.subspan(begin, size), -INFINITY, [&](Lanes x) {
      for (float& value : x) value -= best;
      AddExpOfNegative(x, sums);
    });
    for (const float lane : sums) sum += static_cast<double>(lane);
  }
  return sum;
}

float Largest(std::span<const float> values) {
  Lanes best;
  best.fill(-INFINITY);
  ForEachLanes(values, -INFINITY, [&](const Lanes& x) {
    for (size_t i = 0; i < kLanes; ++i)
      best[i] = best[i] > x[i] ? best[i] : x[i];
  });
  return *std::max_element(best.begin(), best.end());
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
