// Factors of input channels that make linears easier to quantize: what a linear
// reads is divided by them, its weight's columns are multiplied. By SmoothQuant
// (Xiao et al. 2022, https://arxiv.org/abs/2211.10438), or found by a search
// over exponents as AWQ's (Lin et al. 2023, https://arxiv.org/abs/2306.00978).
// Used by compile/smooth, which says where a model has places for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/constant.h"
#include "quant/recipe.h"
#include "quant/weight_search.h"

namespace hexllm::quant {

// What was seen of a value [T,K].
class ChannelRanges {
 public:
  // Rows [n,K].
  void Add(std::span<const float> rows, int64_t width);

  bool IsFinite() const { return is_finite_; }
  std::span<const float> least() const { return least_; }  // [K]
  std::span<const float> most() const { return most_; }    // [K]
  int64_t tokens() const { return tokens_; }
  // The mean over tokens of 1 / mean square of the row: what a squared error
  // counts where rows are scaled to a mean square of 1 (quant::InputSample).
  double MeanWeight() const;

 private:
  std::vector<float> least_, most_;
  int64_t tokens_ = 0;
  double weights_ = 0;
  bool is_finite_ = true;
};

// Channels that must have one factor: of K = G * repeats * size, those of the
// `repeats` pieces of a group at the same place of a piece (query heads that
// read one KV head). With 1 none.
struct ChannelTies {
  int64_t repeats = 1;
  int64_t size = 1;
  // Each number [K] becomes the greatest of those it is tied to.
  void TakeGreatest(std::span<float> values) const;
};

// A linear that reads the value.
struct FactoredLinear {
  const ir::Constant& weight;  // [N,K]
  const LayerSettings& settings;
};

// The linears that read one value, and the value. Borrows all.
struct FactorTask {
  std::span<const FactoredLinear> linears;  // not empty
  const ChannelRanges& ranges;              // finite
  ChannelTies ties = {};
};

// SmoothQuant's factors [K]: (max |x|)^alpha / (max |w|)^(1 - alpha), 1 where
// one of both is 0, their geometric mean made 1, and none beyond kMostFactor or
// its inverse.
std::vector<float> FactorsByAlpha(const FactorTask& task, double alpha);

inline constexpr float kMostFactor = 64;

// Among the factors x^a / w^b, those that leave the least error. x: the root
// mean square of a channel; w: that of the weights that read it, each in units
// of the greatest of its row; a and b: 0 to 1 in steps of 0.1, where the search
// goes up from 0 (which leaves all alone) as long as a step of one of them
// helps. Normalized as above. The error, summed over linears in units of what
// each gives, is
//   of its weight, rounded as its settings say (the nearest codes for gptq, the
//   scales of mse for seq_mse), on the inputs of `sample`; of 512 rows at most,
//   and with static ranges of its input, step^2 / 12 for each number.
// Empty where leaving alone is best. kBadInput, kUnsupported for weights that
// cannot be rounded.
Result<std::vector<float>> SearchFactors(const FactorTask& task,
                                         const InputSample& sample,
                                         const SearchContext& context);

// That error with `factors` [K]; infinity where a weight cannot be rounded
// then.
double FactorError(const FactorTask& task, const InputSample& sample,
                   const SearchContext& context,
                   std::span<const float> factors);

}  // namespace hexllm::quant
