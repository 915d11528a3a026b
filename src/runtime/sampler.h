// Picks the next token from one row of logits. Used by the token generator.
// Not for beam search or speculative decoding.
//
// Order (that of Hugging Face's logits processors):
//   repetition penalty -> temperature -> top-k -> top-p -> min-p -> draw.
// Each step sees only the candidates that the one before it left.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace hexllm {

// How tokens are drawn. The defaults switch everything off but temperature.
struct SamplerOptions {
  float temperature = 0.8f;      // >= 0; 0 = greedy, ties go to the lowest id
  int32_t top_k = 0;             // keeps the k best; 0 = off
  float top_p = 1;               // 0..1: fewest best of that mass; 1 = off
  float min_p = 0;               // 0..1 of the best one's probability; 0 = off
  float repetition_penalty = 1;  // > 0: logit / r when > 0, else logit * r
  uint64_t seed = 0;
};

// kUsage names the option that is out of range.
Status ValidateSamplerOptions(const SamplerOptions& options);

// What one draw looks at.
struct SampleInput {
  std::span<const float> logits;     // [V]
  std::span<const int32_t> history;  // ids the repetition penalty applies to
  uint32_t position = 0;             // of the token to be drawn
};

// A uniform number in [0, 1), a function of its arguments alone (two rounds of
// SplitMix64's finalizer, Steele et al. 2014): a token's draw does not depend
// on what was drawn before.
double UniformAt(uint64_t seed, uint32_t position);

// Owns scratch memory for V candidates; not thread-safe.
class Sampler {
 public:
  explicit Sampler(uint32_t vocab_size);

  // The id drawn: a function of `input` and `options` alone. `options` must be
  // valid and ids in `history` below V (others are ignored). O(V) without
  // top-p; with it O(V + n log n) for the n candidates that it looks at.
  // kBadInput naming the position when a logit is NaN or +infinity, or when
  // none is finite. Does not allocate.
  Result<int32_t> Sample(const SampleInput& input,
                         const SamplerOptions& options);

 private:
  struct Candidate {
    float score;  // logit; after ToWeights its share, 1 for the best
    int32_t id;
  };
  static bool IsBetter(const Candidate& a, const Candidate& b);

  Status Load(const SampleInput& input, float penalty);
  void Penalize(std::span<const int32_t> history, float penalty);
  void KeepTopK(size_t k);
  void ToWeights(float temperature);
  void KeepTopP(float top_p);
  void KeepMinP(float min_p);
  int32_t Draw(double uniform) const;

  std::vector<Candidate> candidates_;  // capacity V
  Candidate best_{};                   // the first of IsBetter's order
  std::vector<uint32_t> penalized_;    // [V] the epoch_ of the last penalty
  uint32_t epoch_ = 0;
};

}  // namespace hexllm
