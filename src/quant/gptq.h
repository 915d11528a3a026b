// Codes of a weight that make up for one another's rounding: GPTQ (Frantar et
// al. 2022). Part of quant/weight_search.h.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/constant.h"
#include "quant/input_moments.h"

namespace hexllm::quant {

// Codes [N,K] on the grid of `encoding`, symmetric i8 (4 or 8 bits; per tensor,
// channel, or in blocks), one byte each, for w [N,K]. Inputs are taken in the
// order of `inputs`' factor, with `damping`: H = U^T U, i falling from K-1 to
// 0:
//   want[i] = w[i] + (sum over j > i of U[i,j] * (w[j] - q[j])) / U[i,i]
//   q[i]    = the nearest of want[i] on the grid
// which is what GPTQ does with the rows of the factor of H's inverse, without
// the inverse: sum over i of (U[i,i] * (want[i] - q[i]))^2 = (w-q) H (w-q)^T.
std::vector<std::byte> GptqCodes(const ir::Constant& weight,
                                 const ir::Encoding& encoding, double damping,
                                 InputMoments& inputs);

}  // namespace hexllm::quant
