// How well the keys of one layer bear 8 bits: per-channel statistics of what
// goes into the K cache. Used by compile/calibrate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace hexllm {

class KeyStatistics {
 public:
  // Keys [T,G,D] of T tokens. The channels G*D stay the same from call to call.
  void Add(std::span<const float> keys, const Shape& shape);

  // 10 log10 of the variance over tokens, averaged over channels, over the
  // rounding error scale^2 / 12 of one u8 scale for all, with the middle code
  // as zero point. A channel's mean shifts all scores of a query alike and
  // softmax does not see it: it is no signal. Infinity where no channel differs
  // from token to token.
  double SqnrOf8Bits() const;

 private:
  int64_t tokens_ = 0;
  float least_ = 0;
  float most_ = 0;
  std::vector<double> sum_;      // [G*D]
  std::vector<double> squares_;  // [G*D]
};

// 3 of "model.layers.3.self_attn.k_cache"; nothing for another name.
std::optional<int> LayerOfName(std::string_view name);

}  // namespace hexllm
