#include "quant/input_moments.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "quant/cholesky.h"

namespace hexllm::quant {
namespace {

std::vector<float> Transposed(std::span<const float> rows, int64_t width) {
  const auto columns = static_cast<size_t>(width);
  const size_t count = rows.size() / columns;
  std::vector<float> out(rows.size());
  constexpr size_t kTile = 32;
  for (size_t r = 0; r < count; r += kTile) {
    for (size_t c = 0; c < columns; ++c) {
      for (size_t i = r; i < std::min(r + kTile, count); ++i)
        out[c * count + i] = rows[i * columns + c];
    }
  }
  return out;
}

double Dot(const float* a, const float* b, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// H in the order of `factor`, damped.
std::vector<float> OrderedHessian(std::span<const float> gram,
                                  const std::vector<int32_t>& order,
                                  double damping) {
  const size_t k = order.size();
  double trace = 0;
  for (size_t i = 0; i < k; ++i) trace += static_cast<double>(gram[i * k + i]);
  // Inputs that were always 0 leave nothing to weigh.
  const double mean = trace > 0 ? trace / static_cast<double>(k) : 1;
  std::vector<float> h(k * k);
  for (size_t i = 0; i < k; ++i) {
    const float* row = &gram[static_cast<size_t>(order[i]) * k];
    for (size_t j = 0; j < k; ++j)
      h[i * k + j] = row[static_cast<size_t>(order[j])];
    h[i * k + i] += static_cast<float>(damping * mean);
  }
  return h;
}

}  // namespace

void AddSecondMoments(std::span<const float> rows, int64_t width,
                      const ProductFn& product, ThreadPool& pool,
                      std::span<float> moments) {
  const int64_t tokens = std::ssize(rows) / width;
  const std::vector<float> columns = Transposed(rows, width);
  constexpr int64_t kRows = 64;
  const int64_t blocks = (width + kRows - 1) / kRows;
  pool.ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> products;
    for (int64_t i = begin; i < end; ++i) {
      // Long and short rows of the upper half in turn.
      const int64_t row = (i % 2 == 0 ? i / 2 : blocks - 1 - i / 2) * kRows;
      const int64_t count = std::min(kRows, width - row);
      const int64_t length = width - row;
      const float* const from = &columns[static_cast<size_t>(row * tokens)];
      products.resize(static_cast<size_t>(count * length));
      product({.a = from,
               .a_stride = tokens,
               .b = from,
               .b_stride = tokens,
               .out = products.data(),
               .out_stride = length,
               .m = count,
               .n = length,
               .k = tokens});
      for (int64_t r = 0; r < count; ++r) {
        float* const to =
            &moments[static_cast<size_t>((row + r) * width + row)];
        const float* const add = &products[static_cast<size_t>(r * length)];
        for (int64_t j = 0; j < length; ++j) to[j] += add[j];
      }
    }
  });
}

void MirrorUpper(std::span<float> matrix, int64_t n) {
  const auto count = static_cast<size_t>(n);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < i; ++j)
      matrix[i * count + j] = matrix[j * count + i];
  }
}

InputMoments::InputMoments(const InputSample& sample, int64_t width,
                           const SearchContext& context)
    : sample_(sample), width_(width), context_(context) {
  HX_CHECK(width > 0);
  HX_CHECK(sample.rows.empty() ? std::ssize(sample.moments) == width * width
                               : std::ssize(sample.rows) % width == 0);
}

bool InputMoments::ByGram() const {
  return sample_.rows.empty() || width_ <= std::ssize(sample_.rows) / width_;
}

std::span<const float> InputMoments::Gram() {
  if (sample_.rows.empty()) return sample_.moments;
  if (!gram_.empty()) return gram_;
  gram_.resize(static_cast<size_t>(width_ * width_));
  AddSecondMoments(sample_.rows, width_, context_.product, context_.pool,
                   gram_);
  MirrorUpper(gram_, width_);
  return gram_;
}

const HessianFactor& InputMoments::Factor(double damping) {
  HX_CHECK(damping > 0);
  if (damping_ == damping) return factor_;
  damping_ = damping;
  const std::span<const float> gram = Gram();
  const auto k = static_cast<size_t>(width_);
  factor_.order.resize(k);
  std::iota(factor_.order.begin(), factor_.order.end(), 0);
  const auto diagonal = [&](int32_t i) {
    return gram[static_cast<size_t>(i) * k + static_cast<size_t>(i)];
  };
  std::ranges::stable_sort(factor_.order, {}, diagonal);
  for (;; damping *= 10) {
    HX_CHECK(damping < 1e6);  // a matrix of nothing but its diagonal
    factor_.upper = OrderedHessian(gram, factor_.order, damping);
    if (FactorCholesky(factor_.upper, width_, context_)) return factor_;
  }
}

void InputMoments::PrepareErrors() {
  if (ByGram()) Gram();
}

std::vector<double> InputMoments::Errors(std::span<const float> errors) const {
  const auto k = static_cast<size_t>(width_);
  const size_t count = errors.size() / k;
  const bool by_gram = ByGram();
  const std::span<const float> gram =
      sample_.rows.empty() ? sample_.moments : std::span<const float>(gram_);
  const auto n = by_gram ? k : sample_.rows.size() / k;
  std::vector<float> products(count * n);
  context_.product({.a = errors.data(),
                    .a_stride = width_,
                    .b = by_gram ? gram.data() : sample_.rows.data(),
                    .b_stride = width_,
                    .out = products.data(),
                    .out_stride = static_cast<int64_t>(n),
                    .m = static_cast<int64_t>(count),
                    .n = static_cast<int64_t>(n),
                    .k = width_});
  std::vector<double> sums(count);
  for (size_t i = 0; i < count; ++i) {
    const float* row = &products[i * n];
    sums[i] = Dot(row, by_gram ? &errors[i * k] : row, n);
  }
  return sums;
}

}  // namespace hexllm::quant
