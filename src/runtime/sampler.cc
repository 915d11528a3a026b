#include "runtime/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace hexllm {
namespace {

Error OutOfRange(const char* option, double found, const char* expected) {
  return {ErrorCode::kUsage,
          fmt::format("{} is {}; expected {}", option, found, expected)};
}

// The finalizer of SplitMix64.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Status ValidateSamplerOptions(const SamplerOptions& options) {
  // Written so that NaN fails.
  const auto is_share = [](float p) { return p >= 0 && p <= 1; };
  if (!(options.temperature >= 0 && std::isfinite(options.temperature)))
    return OutOfRange("temperature", options.temperature, "0 or more");
  if (options.top_k < 0)
    return OutOfRange("top-k", options.top_k, "0 (off) or more");
  if (!is_share(options.top_p))
    return OutOfRange("top-p", options.top_p, "0 to 1 (off)");
  if (!is_share(options.min_p))
    return OutOfRange("min-p", options.min_p, "0 (off) to 1");
  if (!(std::isnormal(options.repetition_penalty) &&
        options.repetition_penalty > 0)) {
    return OutOfRange("repetition penalty", options.repetition_penalty,
                      "more than 0 (1 = off)");
  }
  return OkStatus();
}

double UniformAt(uint64_t seed, uint32_t position) {
  const uint64_t bits = Mix(Mix(seed) ^ position);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Sampler::Sampler(uint32_t vocab_size) : penalized_(vocab_size) {
  candidates_.reserve(vocab_size);
}

bool Sampler::IsBetter(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

Result<int32_t> Sampler::Sample(const SampleInput& input,
                                const SamplerOptions& options) {
  HX_CHECK(input.logits.size() == penalized_.size());
  HX_RETURN_IF_ERROR(Load(input, options.repetition_penalty));
  if (options.temperature == 0) return best_.id;
  if (options.top_k > 0) KeepTopK(static_cast<size_t>(options.top_k));
  ToWeights(options.temperature);
  if (options.top_p < 1) KeepTopP(options.top_p);
  if (options.min_p > 0) KeepMinP(options.min_p);
  return Draw(UniformAt(options.seed, input.position));
}

Status Sampler::Load(const SampleInput& input, float penalty) {
  candidates_.clear();
  for (size_t i = 0; i < input.logits.size(); ++i)
    candidates_.push_back({input.logits[i], static_cast<int32_t>(i)});
  if (penalty != 1) Penalize(input.history, penalty);
  best_ = {-std::numeric_limits<float>::infinity(), 0};
  for (const Candidate& c : candidates_) {
    if (std::isnan(c.score) || c.score == INFINITY) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("the logit of token {} at position {} is {}: "
                               "the weights or encodings are damaged",
                               c.id, input.position, c.score)};
    }
    if (c.score > best_.score) best_ = c;
  }
  if (std::isfinite(best_.score)) return OkStatus();
  return Error{ErrorCode::kBadInput,
               fmt::format("all logits at position {} are -infinity: the "
                           "weights or encodings are damaged",
                           input.position)};
}

void Sampler::Penalize(std::span<const int32_t> history, float penalty) {
  if (++epoch_ == 0) {  // wrapped: forget all marks
    std::fill(penalized_.begin(), penalized_.end(), 0U);
    epoch_ = 1;
  }
  for (const int32_t id : history) {
    const auto index = static_cast<size_t>(id);
    if (id < 0 || index >= penalized_.size()) continue;
    if (penalized_[index] == epoch_) continue;  // once, however often it occurs
    penalized_[index] = epoch_;
    float& score = candidates_[index].score;
    if (!std::isfinite(score)) continue;
    score = score > 0
                ? std::min(score / penalty, std::numeric_limits<float>::max())
                : score * penalty;
  }
}

void Sampler::KeepTopK(size_t k) {
  if (k >= candidates_.size()) return;
  const auto end = candidates_.begin() + static_cast<ptrdiff_t>(k);
  std::nth_element(candidates_.begin(), end, candidates_.end(), IsBetter);
  candidates_.resize(k);
  // nth_element's order is the library's own business; the draw must not be.
  std::sort(candidates_.begin(), candidates_.end(), IsBetter);
}

void Sampler::ToWeights(float temperature) {
  for (Candidate& c : candidates_)
    c.score = std::exp((c.score - best_.score) / temperature);
}

void Sampler::KeepTopP(float top_p) {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.score;
  const double wanted = top_p * total;
  double mass = 0;
  // Sorts only as many as it takes: few tokens hold most of the mass.
  size_t sorted = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (i == sorted) {
      sorted = std::min(candidates_.size(), std::max<size_t>(64, 4 * sorted));
      const auto from = candidates_.begin() + static_cast<ptrdiff_t>(i);
      const auto to = candidates_.begin() + static_cast<ptrdiff_t>(sorted);
      std::nth_element(from, to, candidates_.end(), IsBetter);
      std::sort(from, to, IsBetter);
    }
    mass += candidates_[i].score;
    if (mass >= wanted) {
      candidates_.resize(i + 1);
      return;
    }
  }
}

void Sampler::KeepMinP(float min_p) {
  std::erase_if(candidates_,
                [min_p](const Candidate& c) { return c.score < min_p; });
}

int32_t Sampler::Draw(double uniform) const {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.score;
  double left = uniform * total;
  int32_t last = best_.id;  // for a sum that rounds below `left`
  for (const Candidate& c : candidates_) {
    if (c.score == 0) continue;
    if (left < c.score) return c.id;
    left -= c.score;
    last = c.id;
  }
  return last;
}

}  // namespace hexllm
