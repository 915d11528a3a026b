// The residual stream of a decoder, and which of its terms and of their inputs
// are too large for codes. Used by compile/quantize to fill in AssignOptions.
#pragma once

#include <set>
#include <string>

#include "ir/graph.h"
#include "quant/assign.h"
#include "quant/range.h"
#include "quant/recipe.h"

namespace hexllm::quant {

// What was observed of the stream's values, all together.
Range ResidualRange(const ir::Module& module, const Ranges& ranges);

// A term's step of so many median steps is too coarse: SmolLM2 135M adds 25149
// in one channel of one token, and a step of that range, 570 median ones, is
// 0.4 in all others.
inline constexpr float kCoarseSteps = 64;

// The linears whose output is such a term of the stream, as names for
// AssignOptions::half_terms. Only where halves hold the sum and all that is
// added, and of schemes whose weights the HTP multiplies with halves: 4 or 8
// bits without blocks beside activations of 16 bits.
std::set<std::string> CoarseTerms(const ir::Module& module,
                                  const Ranges& ranges,
                                  const ResolvedRecipe& recipe);

// The same for the inputs of such linears that are products of two values, as
// names of the linears for AssignOptions::half_inputs: 3065 in one channel of
// the first token makes a step of 0.047 there, of a product that is 0.16 in the
// mean of all others.
std::set<std::string> CoarseInputs(const ir::Module& module,
                                   const Ranges& ranges,
                                   const ResolvedRecipe& recipe);

}  // namespace hexllm::quant
