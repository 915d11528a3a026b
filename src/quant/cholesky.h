// Cholesky's factor of a large matrix, in blocks whose products are fast. Part
// of quant/weight_search.h.
#pragma once

#include <cstdint>
#include <vector>

#include "quant/weight_search.h"

namespace hexllm::quant {

// Columns that triangular matrices are worked through at a time.
inline constexpr int64_t kFactorBlock = 128;

// Replaces a symmetric matrix [n,n] by U, upper triangular with zeros below,
// where matrix = U^T U. In f32, blocks on the diagonal in double. False when a
// pivot is not positive: the matrix is then in an unspecified state.
bool FactorCholesky(std::vector<float>& matrix, int64_t n,
                    const SearchContext& context);

}  // namespace hexllm::quant
