// What rounding a linear's weight does to the linear's output, on given inputs.
// Used by compile/layer_probe. Activations are as exact here as floats are.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "ir/constant.h"
#include "quant/recipe.h"

namespace hexllm::quant {

// `weight` [N,K] as `settings` would have it: a constant of its own, f32 [N,K],
// each number rounded to the nearest code; `mse` stands for `seq_mse`. Errors
// of WeightEncoding.
Result<ir::Constant> RoundedWeight(const ir::Constant& weight,
                                   const LayerSettings& settings);

// Some rows of `weight`, at most `most`, evenly spaced: a constant that stands
// for it where all output channels would take long. Borrows its bytes.
ir::Constant SampleRows(const ir::Constant& weight, int64_t most);

// Energies over all outputs and inputs' rows.
struct OutputError {
  double signal = 0;  // of x w^T
  double noise = 0;   // of x (w - rounded)^T
};

// Of inputs x [S,K], row by row. `rounded` is f32 and of `weight`'s shape.
OutputError OutputErrorOf(const ir::Constant& weight,
                          const ir::Constant& rounded,
                          std::span<const float> inputs);

}  // namespace hexllm::quant
