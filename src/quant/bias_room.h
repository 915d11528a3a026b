// Room for biases: the code of a bias is 32 bits wide in steps of x.scale *
// w.scale, and small weights have steps too fine for a large bias. Part of
// quant/assign.h.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/constant.h"

namespace hexllm::quant {

// Raises the scales of `weight`, an encoding with codes of a linear's w [N,K],
// to at least |bias[n]| / (x_scale * 2^31) for output channel n, so that
// clamping changes no bias. Block factors are rounded anew. Returns for how
// many channels this makes the steps of weights that are not all 0 coarser.
// kBadInput naming tensor and column where `bias` [N] has NaN or infinity.
Result<int64_t> MakeRoomForBias(const ir::Constant& bias, double x_scale,
                                ir::Encoding& weight);

}  // namespace hexllm::quant
