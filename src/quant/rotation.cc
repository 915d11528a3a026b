#include "quant/rotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "base/check.h"
#include "ir/pseudo_random.h"
#include "quant/hadamard.h"

namespace hexllm::quant {
namespace {

size_t Size(int64_t n) { return static_cast<size_t>(n); }

bool IsPrime(int64_t n) {
  for (int64_t i = 2; i * i <= n; ++i)
    if (n % i == 0) return false;
  return n > 1;
}

// [q]: 1 for the squares modulo the prime q, -1 for the others, 0 for 0.
std::vector<float> QuadraticCharacter(int64_t q) {
  std::vector<float> character(Size(q), -1.0f);
  character[0] = 0;
  for (int64_t i = 1; i < q; ++i) character[Size(i * i % q)] = 1;
  return character;
}

// [q + 1, q + 1]: a first row of 1, a first column of `corner`, between them
// the character of column - row; the diagonal is 0. Skew for corner -1 (and q =
// 3 mod 4), symmetric for 1 (q = 1 mod 4).
std::vector<float> ConferenceMatrix(int64_t q, float corner) {
  const std::vector<float> character = QuadraticCharacter(q);
  const int64_t n = q + 1;
  std::vector<float> matrix(Size(n * n));
  for (int64_t i = 1; i < n; ++i) {
    matrix[Size(i)] = 1;
    matrix[Size(i * n)] = corner;
    for (int64_t j = 1; j < n; ++j)
      matrix[Size(i * n + j)] = character[Size((j - i + q) % q)];
  }
  return matrix;
}

// I + S of the skew S.
std::vector<float> FirstPaley(int64_t q) {
  std::vector<float> matrix = ConferenceMatrix(q, -1);
  for (int64_t i = 0; i <= q; ++i) matrix[Size(i * (q + 2))] = 1;
  return matrix;
}

// Each entry of the symmetric C as two rows of two: c [[1, 1], [1, -1]], and
// [[1, -1], [-1, -1]] on the diagonal.
std::vector<float> SecondPaley(int64_t q) {
  const std::vector<float> c = ConferenceMatrix(q, 1);
  const int64_t n = 2 * (q + 1);
  std::vector<float> matrix(Size(n * n));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const float entry = c[Size(i / 2 * (q + 1) + j / 2)];
      const bool both_odd = i % 2 == 1 && j % 2 == 1;
      const bool both_even = i % 2 == 0 && j % 2 == 0;
      const float diagonal = both_even ? 1.0f : -1.0f;
      matrix[Size(i * n + j)] =
          i / 2 == j / 2 ? diagonal : (both_odd ? -entry : entry);
    }
  }
  return matrix;
}

// Next to normally distributed, by sums alone: libraries differ in logarithms.
double Normal(ir::PseudoRandom& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random.Unit());
  return sum;
}

// Takes the part along each of the `count` unit vectors of `rows` out of `x`,
// and gives it the length 1.
void Orthonormalize(const std::vector<double>& rows, size_t count,
                    std::span<double> x) {
  const size_t n = x.size();
  for (size_t k = 0; k <= count; ++k) {
    const double* row = k < count ? rows.data() + k * n : x.data();
    double product = 0;
    for (size_t i = 0; i < n; ++i) product += row[i] * x[i];
    const double length = std::sqrt(product);
    for (size_t i = 0; i < n; ++i)
      x[i] = k < count ? x[i] - product * row[i] : x[i] / length;
  }
}

// Normal numbers, row after row made orthogonal to those before (Gram-Schmidt;
// twice, which is enough): uniform among the orthogonal matrices.
std::vector<float> RandomOrthogonal(int64_t size, ir::PseudoRandom& random) {
  const size_t n = Size(size);
  std::vector<double> rows(n * n);
  for (size_t i = 0; i < n; ++i) {
    const std::span<double> row = std::span(rows).subspan(i * n, n);
    for (double& x : row) x = Normal(random);
    Orthonormalize(rows, i, row);
    Orthonormalize(rows, i, row);
  }
  return {rows.begin(), rows.end()};
}

// Orthogonal [p,p], where size / p is a power of two. `p` in and out: the odd
// part of the size first.
Result<std::vector<float>> MakeCore(int64_t size, ir::PseudoRandom& random,
                                    int64_t& p) {
  if (p == 1) return std::vector<float>();
  for (int64_t order = p; order <= Rotation::kMostCore && size % order == 0;
       order *= 2) {
    std::vector<float> core = PaleyMatrix(order);
    if (core.empty()) continue;
    const auto factor =
        static_cast<float>(1 / std::sqrt(static_cast<double>(order)));
    for (float& entry : core) entry *= factor;
    p = order;
    return core;
  }
  if (p > 8 * Rotation::kMostCore)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("rotation: expected a size that is at most {} "
                             "times a power of two, found {}",
                             8 * Rotation::kMostCore, size)};
  return RandomOrthogonal(p, random);
}

}  // namespace

std::vector<float> PaleyMatrix(int64_t order) {
  if (order % 4 != 0) return {};
  if (IsPrime(order - 1)) return FirstPaley(order - 1);
  const int64_t q = order / 2 - 1;
  if (q % 4 == 1 && IsPrime(q)) return SecondPaley(q);
  return {};
}

Result<Rotation> Rotation::Make(RotationKind kind, int64_t size, int seed,
                                std::string_view name) {
  HX_CHECK(kind != RotationKind::kNone && size > 0);
  ir::PseudoRandom random(fmt::format("rotation {} {}", seed, name));
  Rotation made;
  made.size_ = size;
  made.core_size_ = size >> std::countr_zero(static_cast<uint64_t>(size));
  HX_ASSIGN_OR_RETURN(made.core_, MakeCore(size, random, made.core_size_));
  made.signs_.resize(kind == RotationKind::kRandom ? 3 : 1);
  for (std::vector<float>& signs : made.signs_) {
    signs.resize(Size(size));
    for (float& sign : signs) sign = random.Below(2) == 0 ? 1.0f : -1.0f;
  }
  return made;
}

Rotation Rotation::FromMatrix(std::vector<float> matrix, int64_t size) {
  HX_CHECK(size > 0 && matrix.size() == Size(size * size));
  Rotation made;
  made.size_ = size;
  made.core_size_ = size;
  made.core_ = std::move(matrix);
  made.signs_.resize(1);
  return made;
}

void Rotation::ApplyRound(std::span<const float> signs, std::span<float> x,
                          std::vector<float>& scratch) const {
  for (size_t i = 0; i < signs.size(); ++i) x[i] *= signs[i];
  const size_t p = Size(core_size_);
  const size_t width = x.size() / p;
  for (size_t i = 0; i < p; ++i) HadamardTransform(x.subspan(i * width, width));
  if (core_.empty()) return;
  scratch.assign(x.begin(), x.end());
  std::fill(x.begin(), x.end(), 0.0f);
  for (size_t i = 0; i < p; ++i) {
    const float* from = scratch.data() + i * width;
    for (size_t j = 0; j < p; ++j) {
      const float entry = core_[i * p + j];
      float* to = x.data() + j * width;
      for (size_t k = 0; k < width; ++k) to[k] += entry * from[k];
    }
  }
}

void Rotation::ApplyToRows(std::span<float> rows) const {
  const size_t n = Size(size_);
  HX_CHECK(rows.size() % n == 0);
  std::vector<float> scratch;
  for (size_t at = 0; at < rows.size(); at += n) {
    for (const std::vector<float>& signs : signs_)
      ApplyRound(signs, rows.subspan(at, n), scratch);
  }
}

void Rotation::ApplyToColumns(std::span<float> matrix, int64_t columns) const {
  // Columns that are put into rows at a time: a cache line of each row.
  constexpr size_t kTile = 16;
  const size_t n = Size(size_);
  const size_t width = Size(columns);
  HX_CHECK(matrix.size() == n * width);
  std::vector<float> tile;
  for (size_t first = 0; first < width; first += kTile) {
    const size_t count = std::min(kTile, width - first);
    tile.resize(count * n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < count; ++j)
        tile[j * n + i] = matrix[i * width + first + j];
    }
    ApplyToRows(tile);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < count; ++j)
        matrix[i * width + first + j] = tile[j * n + i];
    }
  }
}

}  // namespace hexllm::quant
