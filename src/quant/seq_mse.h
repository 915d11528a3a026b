// Scales of weights without blocks by the error of the layer's outputs: the
// search of AIMET's and ExecuTorch's SeqMSE. Part of quant/weight_search.h.
#pragma once

#include "ir/constant.h"
#include "quant/input_moments.h"

namespace hexllm::quant {

// Even steps from a scale down to a fifth of it.
inline float ShrunkScale(float widest, int candidate, int candidates) {
  return widest * (1 - 0.8f * static_cast<float>(candidate) /
                           static_cast<float>(candidates));
}

// `encoding`, i8 per channel or per tensor, with the best of `candidates`
// scales from the ones it has down to a fifth of them.
ir::Encoding SearchScales(const ir::Constant& weight, InputMoments& inputs,
                          int candidates, ir::Encoding encoding);

}  // namespace hexllm::quant
