// Scales and block factors of LPBQ by the error of the layer's outputs. Part of
// quant/weight_search.h.
#pragma once

#include "ir/constant.h"
#include "quant/input_moments.h"

namespace hexllm::quant {

// `encoding`, LPBQ with min_max's scales and factors, with better ones. For
// each channel, with E(e) = e G e^T of its rounding errors, G = X^T X:
//   1. of a sixteenth of `candidates` scales, from the one given down to half
//      of it, that whose blocks, each with the best of its 16 factors and alone
//      (G without what lies between blocks), have the least E;
//   2. that or what was given, whichever has the less E with all of G;
//   3. twice through the blocks: each gets the factor of the least E given what
//      all others have.
// A channel's E never grows.
ir::Encoding SearchBlockScales(const ir::Constant& weight, InputMoments& inputs,
                               int candidates, ir::Encoding encoding);

}  // namespace hexllm::quant
