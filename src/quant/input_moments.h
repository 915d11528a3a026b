// What a search asks of a layer's inputs X [T,K]: the squared error that errors
// of weights make in the outputs, and the triangular factor that GPTQ goes
// along. Part of quant/weight_search.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quant/weight_search.h"

namespace hexllm::quant {

// H = X^T X, with a part of its mean diagonal added to the diagonal (GPTQ's
// damping; ten times as much as often as rounding leaves no positive pivot),
// taken apart along the inputs in the order of falling diagonals: GPTQ's "act
// order". With rows and columns in the reverse of that order, H = U^T U.
struct HessianFactor {
  std::vector<int32_t> order;  // [K]: input at place i; the last goes first
  std::vector<float> upper;    // U [K,K], row-major; below the diagonal 0
};

// Adds X^T X of rows X [T,K] to the upper half of `moments` [K,K].
void AddSecondMoments(std::span<const float> rows, int64_t width,
                      const ProductFn& product, ThreadPool& pool,
                      std::span<float> moments);
// The upper half of a matrix [n,n] becomes the lower one as well.
void MirrorUpper(std::span<float> matrix, int64_t n);

// Borrows sample and context. Not thread-safe but for Errors.
class InputMoments {
 public:
  InputMoments(const InputSample& sample, int64_t width,
               const SearchContext& context);

  int64_t width() const { return width_; }
  const SearchContext& context() const { return context_; }
  // X^T X [K,K]; made on first use where only the rows are given.
  std::span<const float> Gram();
  const HessianFactor& Factor(double damping);

  // sum over t of (X e)^2 for each row e of `errors` [m, K]. Thread-safe, after
  // PrepareErrors.
  void PrepareErrors();
  std::vector<double> Errors(std::span<const float> errors) const;

 private:
  // Errors go by X^T X, not by X.
  bool ByGram() const;

  const InputSample sample_;
  int64_t width_;
  const SearchContext& context_;
  std::vector<float> gram_;
  HessianFactor factor_;
  double damping_ = 0;  // of factor_, as asked for
};

}  // namespace hexllm::quant
