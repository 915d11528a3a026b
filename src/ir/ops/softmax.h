// The softmax of one row, in double. Shared by softmax and attention.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

namespace hexllm::ir {

// Turns scores into weights that sum to 1, or to all zeros when every column is
// hidden (-infinity).
inline void Softmax(std::vector<double>& scores) {
  double top = -std::numeric_limits<double>::infinity();
  for (const double score : scores) top = std::fmax(top, score);
  double sum = 0;
  for (double& score : scores) {
    score = std::isinf(top) && top < 0 ? 0.0 : std::exp(score - top);
    sum += score;
  }
  for (double& score : scores) score = sum > 0 ? score / sum : 0.0;
}

}  // namespace hexllm::ir
