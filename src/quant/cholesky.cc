#include "quant/cholesky.h"

#include <algorithm>
#include <cmath>

namespace hexllm::quant {
namespace {

// Lower triangular, row-major [n,n], in double.
using Block = std::vector<double>;

// The lower factor of the block at (at, at) of `matrix`, of which the lower
// half is read; empty when there is none.
Block FactorOf(const std::vector<float>& matrix, size_t n, size_t at,
               size_t size) {
  Block lower(size * size);
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      auto sum = static_cast<double>(matrix[(at + i) * n + at + j]);
      for (size_t k = 0; k < j; ++k)
        sum -= lower[i * size + k] * lower[j * size + k];
      if (i != j) {
        lower[i * size + j] = sum / lower[j * size + j];
        continue;
      }
      if (!(sum > 0) || !std::isfinite(sum)) return {};
      lower[i * size + i] = std::sqrt(sum);
    }
  }
  return lower;
}

// The inverse of a lower triangular block.
std::vector<float> InverseOf(const Block& lower, size_t size) {
  Block inverse(size * size);
  for (size_t j = 0; j < size; ++j) {
    for (size_t i = j; i < size; ++i) {
      double sum = i == j ? 1 : 0;
      for (size_t k = j; k < i; ++k)
        sum -= lower[i * size + k] * inverse[k * size + j];
      inverse[i * size + j] = sum / lower[i * size + i];
    }
  }
  return {inverse.begin(), inverse.end()};
}

// The strip of `size` columns at `at` of a matrix whose columns before it are
// factored already.
class Strip {
 public:
  Strip(std::vector<float>& matrix, int64_t n, int64_t at,
        const SearchContext& context)
      : matrix_(matrix),
        n_(n),
        at_(at),
        size_(std::min(kFactorBlock, n - at)),
        context_(context) {}

  bool Factor() {
    Subtract();
    const auto size = static_cast<size_t>(size_);
    const Block lower = FactorOf(matrix_, static_cast<size_t>(n_),
                                 static_cast<size_t>(at_), size);
    if (lower.empty()) return false;
    Divide(InverseOf(lower, size));
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j <= i; ++j)
        At(at_ + static_cast<int64_t>(i))[j] =
            static_cast<float>(lower[i * size + j]);
    }
    return true;
  }

 private:
  // The strip's part of row `row`.
  float* At(int64_t row) {
    return &matrix_[static_cast<size_t>(row * n_ + at_)];
  }

  // Calls change(first row, its products [rows, size]) for parts of the rows
  // from `first` on, whose `k` columns at `column` are multiplied by `b`
  // [size, k].
  struct Factors {
    int64_t first;
    int64_t column;
    const float* b;
    int64_t b_stride;
    int64_t k;
  };
  template <typename Change>
  void Multiply(const Factors& f, Change change) {
    context_.pool.ParallelFor(
        n_ - f.first, 16, [&](int64_t begin, int64_t end) {
          std::vector<float> products(
              static_cast<size_t>((end - begin) * size_));
          const int64_t row = f.first + begin;
          context_.product(
              {.a = &matrix_[static_cast<size_t>(row * n_ + f.column)],
               .a_stride = n_,
               .b = f.b,
               .b_stride = f.b_stride,
               .out = products.data(),
               .out_stride = size_,
               .m = end - begin,
               .n = size_,
               .k = f.k});
          for (int64_t i = begin; i < end; ++i)
            change(At(f.first + i),
                   &products[static_cast<size_t>((i - begin) * size_)]);
        });
  }

  void Subtract() {
    if (at_ == 0) return;
    // Own rows are read by all: their products wait until all are made.
    const float* own = &matrix_[static_cast<size_t>(at_ * n_)];
    Multiply({.first = at_, .column = 0, .b = own, .b_stride = n_, .k = at_},
             [this](float* row, const float* products) {
               for (int64_t j = 0; j < size_; ++j) row[j] -= products[j];
             });
  }

  void Divide(const std::vector<float>& inverse) {
    const int64_t below = at_ + size_;
    if (below == n_) return;
    Multiply({.first = below,
              .column = at_,
              .b = inverse.data(),
              .b_stride = size_,
              .k = size_},
             [this](float* row, const float* products) {
               std::copy_n(products, size_, row);
             });
  }

  std::vector<float>& matrix_;
  const int64_t n_;
  const int64_t at_;
  const int64_t size_;
  const SearchContext& context_;
};

// The lower half becomes the upper one.
void Transpose(std::vector<float>& matrix, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < i; ++j) {
      matrix[j * n + i] = matrix[i * n + j];
      matrix[i * n + j] = 0;
    }
  }
}

}  // namespace

bool FactorCholesky(std::vector<float>& matrix, int64_t n,
                    const SearchContext& context) {
  for (int64_t at = 0; at < n; at += kFactorBlock) {
    if (!Strip(matrix, n, at, context).Factor()) return false;
  }
  Transpose(matrix, static_cast<size_t>(n));
  return true;
}

}  // namespace hexllm::quant
