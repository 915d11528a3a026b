// Orthogonal matrices that spread outliers over all elements of a vector: the
// rotations of SpinQuant (Liu et al. 2024, https://arxiv.org/abs/2405.16406)
// and QuaRot (Ashkboos et al. 2024, https://arxiv.org/abs/2404.00456). Named by
// recipes, applied to weights by compile/rotate. Which tensors are rotated is
// not said here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hexllm::quant {

enum class RotationKind : uint8_t {
  kNone,
  kHadamard,  // one Hadamard transform behind random signs
  kRandom,    // three of them, which is next to a random orthogonal matrix
};

// What a recipe asks for. M model dim, D head dim.
struct Rotations {
  RotationKind r1 = RotationKind::kNone;  // [M,M], of the residual stream
  RotationKind r2 = RotationKind::kNone;  // [D,D] a layer, of value heads
  // Of query and key heads, while the model runs: kNone, or kHadamard without
  // signs.
  RotationKind r3 = RotationKind::kNone;
  int seed = 0;  // of r1 and r2: other seeds, other matrices; at least 0
  bool operator==(const Rotations&) const = default;
};

// An orthogonal matrix R [size,size] as `rounds` factors, each
//
//   diag(signs) (C x H)      x: Kronecker product
//
// with Sylvester's H of the largest power of two that C leaves. C [p,p] is the
// least Hadamard matrix of Paley's constructions (1933) that goes with it, as
// 12 = 11 + 1 for 1536 = 12 * 128 or 36 = 2 (17 + 1) for 576 = 36 * 16; where
// there is none up to kMostCore, a random orthogonal matrix of the odd part of
// `size`. Applying it takes size * (log2(size / p) + p) additions. The same
// bits on every machine. Immutable.
class Rotation {
 public:
  static constexpr int64_t kMostCore = 512;

  // `kind` is not kNone. `name` tells rotations of one seed apart.
  // kUnsupported for a size whose C would be larger than 8 kMostCore.
  static Result<Rotation> Make(RotationKind kind, int64_t size, int seed,
                               std::string_view name);
  // Any orthogonal matrix [size,size], row-major, as it is.
  static Rotation FromMatrix(std::vector<float> matrix, int64_t size);

  int64_t size() const { return size_; }
  // p, the size of C.
  int64_t core_size() const { return core_size_; }
  // Each vector x of `rows`, [n,size], becomes x R, in f32.
  void ApplyToRows(std::span<float> rows) const;
  // `matrix` [size,columns] becomes R^T times it: each column c^T R.
  void ApplyToColumns(std::span<float> matrix, int64_t columns) const;

 private:
  Rotation() = default;
  void ApplyRound(std::span<const float> signs, std::span<float> x,
                  std::vector<float>& scratch) const;

  int64_t size_ = 0;
  int64_t core_size_ = 1;
  std::vector<float> core_;                // [p,p]; empty: p = 1
  std::vector<std::vector<float>> signs_;  // a round each; empty = all 1
};

// A Hadamard matrix [order,order] of +1 and -1, row-major, by Paley's first
// (order - 1 is prime) or second construction (order / 2 - 1 is); empty when
// neither has one.
std::vector<float> PaleyMatrix(int64_t order);

}  // namespace hexllm::quant
