// A matrix product for tests of what takes one (weight_search.h).
#pragma once

#include "quant/weight_search.h"

namespace hexllm::quant {

inline void MultiplyPlainly(const ProductArgs& p) {
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum += p.a[i * p.a_stride + k] * p.b[j * p.b_stride + k];
      p.out[i * p.out_stride + j] = sum;
    }
  }
}

}  // namespace hexllm::quant
