// Random arguments for the CPU kernels and comparison by bits, for their tests,
// fuzz target and benchmarks. Everything is a function of the generator passed.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "backend/cpu/engine.h"
#include "backend/cpu/kernels/kernels.h"
#include "base/dtype.h"
#include "base/half.h"

namespace hexllm::cpu::testing {

// The types that matmul takes as weights.
inline constexpr DType kWeightTypes[] = {
    DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ4_0, DType::kQ4_1,
    DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ2_K, DType::kQ3_K,
    DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

inline const KernelTable& ScalarKernels() { return *FindKernels(Isa::kScalar); }

// The tables other than the scalar one that this CPU runs.
inline std::vector<const KernelTable*> VectorKernels() {
  std::vector<const KernelTable*> tables;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kNeon,
                        Isa::kNeonDot}) {
    if (FindKernels(isa) != nullptr) tables.push_back(FindKernels(isa));
  }
  return tables;
}

// The index of the first float whose bits differ (any NaN equals any NaN), or
// -1. Spans of different sizes differ at the end of the shorter one.
inline int64_t FirstDifference(std::span<const float> a,
                               std::span<const float> b) {
  const size_t size = std::min(a.size(), b.size());
  for (size_t i = 0; i < size; ++i) {
    const bool same =
        std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i]);
    if (!same && !(std::isnan(a[i]) && std::isnan(b[i]))) {
      return static_cast<int64_t>(i);
    }
  }
  return a.size() == b.size() ? -1 : static_cast<int64_t>(size);
}

// A whole number in [low, high].
inline int64_t RandomInt(std::mt19937& rng, int64_t low, int64_t high) {
  return low +
         static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
}

// `count` floats in [-1, 1).
inline std::vector<float> RandomFloats(std::mt19937& rng, int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) {
    value = static_cast<float>(static_cast<int32_t>(rng())) * 0x1p-31f;
  }
  return out;
}

inline int64_t WeightRowBytes(DType dtype, int64_t k) {
  const DTypeInfo& info = GetDTypeInfo(dtype);
  return k / info.block_elems * info.block_bytes;
}

// Byte offsets of the half-precision factors of a block; -1 = none.
struct BlockFactors {
  DType dtype;
  int first, second;
};
inline constexpr BlockFactors kBlockFactors[] = {
    {DType::kQ4_0, 0, -1},   {DType::kQ4_1, 0, 2},  {DType::kQ5_0, 0, -1},
    {DType::kQ5_1, 0, 2},    {DType::kQ8_0, 0, -1}, {DType::kQ2_K, 80, 82},
    {DType::kQ3_K, 108, -1}, {DType::kQ4_K, 0, 2},  {DType::kQ5_K, 0, 2},
    {DType::kQ6_K, 208, -1}};

// One row of k weights of ordinary size: plain types in [-1, 1), blocks of
// random bits with factors in that range.
inline void FillWeightRow(std::mt19937& rng, DType dtype, int64_t k,
                          std::byte* row) {
  const auto half = [&](std::byte* at) {
    const uint16_t bits = F32ToF16(RandomFloats(rng, 1)[0]);
    std::memcpy(at, &bits, sizeof(bits));
  };
  if (dtype == DType::kF32) {
    const std::vector<float> values = RandomFloats(rng, k);
    std::memcpy(row, values.data(), values.size() * sizeof(float));
    return;
  }
  const DTypeInfo& info = GetDTypeInfo(dtype);
  for (int64_t i = 0; i < k / info.block_elems; ++i, row += info.block_bytes) {
    if (dtype == DType::kBF16) {
      const uint16_t bits = F32ToBF16(RandomFloats(rng, 1)[0]);
      std::memcpy(row, &bits, sizeof(bits));
      continue;
    }
    if (dtype == DType::kF16) {
      half(row);
      continue;
    }
    for (uint32_t b = 0; b < info.block_bytes; ++b) {
      row[b] = static_cast<std::byte>(rng() >> 24);
    }
    const auto* factors =
        std::ranges::find(kBlockFactors, dtype, &BlockFactors::dtype);
    half(row + factors->first);
    if (factors->second >= 0) half(row + factors->second);
  }
}

// 64-byte aligned floats; exactly `floats` of them end the allocation.
class Scratch {
 public:
  explicit Scratch(int64_t floats)
      : storage_(static_cast<size_t>(floats) + 16) {
    const auto at = reinterpret_cast<uintptr_t>(storage_.data());
    data_ = storage_.data() + (64 - at % 64) % 64 / sizeof(float);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  float* data() { return data_; }

 private:
  std::vector<float> storage_;
  float* data_;
};

// One matmul with all that its arguments point to.
struct MatMulShape {
  int64_t rows, n, k;
  int64_t n_begin, n_end;
  int64_t x_gap = 0, w_gap_bytes = 0, out_gap = 0;  // after each row
  bool bias = false, residual = false;
};

class MatMulCase {
 public:
  MatMulCase(std::mt19937& rng, DType dtype, const MatMulShape& shape)
      : dtype_(dtype),
        shape_(shape),
        x_(RandomFloats(rng, shape.rows * (shape.k + shape.x_gap))),
        bias_(RandomFloats(rng, shape.n)),
        residual_(RandomFloats(rng, shape.rows * (shape.n + shape.out_gap))),
        row_bytes_(WeightRowBytes(dtype, shape.k) + shape.w_gap_bytes),
        w_(static_cast<size_t>((shape.n - 1) * row_bytes_ +
                               WeightRowBytes(dtype, shape.k))) {
    for (int64_t i = 0; i < shape.n; ++i) {
      FillWeightRow(rng, dtype, shape.k, w_.data() + i * row_bytes_);
    }
  }

  DType dtype() const { return dtype_; }
  std::vector<float>& x() { return x_; }
  std::vector<std::byte>& w() { return w_; }
  int64_t w_row_bytes() const { return row_bytes_; }

  // All rows, into `out`, which is also the residual.
  MatMulArgs Args(float* out, float* scratch) const {
    return {.x = x_.data(),
            .x_stride = shape_.k + shape_.x_gap,
            .w = w_.data(),
            .w_row_bytes = row_bytes_,
            .bias = shape_.bias ? bias_.data() : nullptr,
            .residual = shape_.residual ? out : nullptr,
            .out = out,
            .out_stride = shape_.n + shape_.out_gap,
            .rows = shape_.rows,
            .k = shape_.k,
            .n_begin = shape_.n_begin,
            .n_end = shape_.n_end,
            .scratch = scratch};
  }

  // Runs rows [begin, end) and returns the whole output [rows, n + out_gap];
  // what the kernel must not write stays as in the residual.
  std::vector<float> Run(const KernelTable& table, int64_t begin,
                         int64_t end) const {
    std::vector<float> out = residual_;
    Scratch scratch(MatMulScratchFloats(shape_.k));
    MatMulArgs args = Args(out.data(), scratch.data());
    args.x += begin * args.x_stride;
    args.out += begin * args.out_stride;
    if (shape_.residual) args.residual += begin * args.out_stride;
    args.rows = end - begin;
    table.matmul[static_cast<size_t>(dtype_)](args);
    return out;
  }
  std::vector<float> Run(const KernelTable& table) const {
    return Run(table, 0, shape_.rows);
  }

 private:
  DType dtype_;
  MatMulShape shape_;
  std::vector<float> x_, bias_, residual_;
  int64_t row_bytes_;
  std::vector<std::byte> w_;
};

// A shape for `dtype` with k up to about `max_k`.
inline MatMulShape RandomShape(std::mt19937& rng, DType dtype, int64_t max_k) {
  const int64_t block = GetDTypeInfo(dtype).block_elems;
  MatMulShape shape = {};
  shape.rows = RandomInt(rng, 0, 2) == 0 ? 1 : RandomInt(rng, 1, 40);
  shape.n = RandomInt(rng, 1, 150);
  shape.k = block * RandomInt(rng, 1, std::max<int64_t>(1, max_k / block));
  shape.n_begin = RandomInt(rng, 0, 1) * RandomInt(rng, 0, shape.n - 1);
  shape.n_end = RandomInt(rng, shape.n_begin + 1, shape.n);
  shape.x_gap = RandomInt(rng, 0, 1) * RandomInt(rng, 0, 20);
  shape.w_gap_bytes = RandomInt(rng, 0, 1) * 4 * RandomInt(rng, 0, 20);
  shape.out_gap = RandomInt(rng, 0, 1) * RandomInt(rng, 0, 20);
  shape.bias = RandomInt(rng, 0, 1) == 1;
  shape.residual = RandomInt(rng, 0, 1) == 1;
  return shape;
}

// One row of attention for one KV head, with all it points to.
struct AttentionShape {
  int64_t group, head_dim, past, step;
  float softcap = 0.0f;
};

struct AttentionCase {
  AttentionCase(std::mt19937& rng, const AttentionShape& of)
      : shape(of),
        q(RandomFloats(rng, of.group * of.head_dim)),
        k_past(RandomFloats(rng, of.head_dim * of.past)),
        v_past(RandomFloats(rng, of.past * of.head_dim)),
        k_new(RandomFloats(rng, of.head_dim * of.step)),
        v_new(RandomFloats(rng, of.step * of.head_dim)),
        mask(static_cast<size_t>(of.past + of.step)) {}

  // Hides columns in runs of random lengths.
  void HideAtRandom(std::mt19937& rng, int64_t longest_run) {
    bool hidden = RandomInt(rng, 0, 1) == 1;
    for (size_t c = 0; c < mask.size(); hidden = !hidden) {
      const int64_t run = RandomInt(rng, 1, longest_run);
      for (int64_t i = 0; i < run && c < mask.size(); ++i, ++c) {
        mask[c] = hidden ? -INFINITY : 0.0f;
      }
    }
  }

  AttentionArgs Args(float* out, float* scratch) const {
    return {.q = q.data(),
            .k_past = k_past.data(),
            .v_past = v_past.data(),
            .k_new = k_new.data(),
            .v_new = v_new.data(),
            .mask = mask.data(),
            .out = out,
            .group = shape.group,
            .head_dim = shape.head_dim,
            .past = shape.past,
            .step = shape.step,
            .scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim)),
            .softcap = shape.softcap,
            .scratch = scratch};
  }

  // The output [group, head_dim].
  std::vector<float> Run(const KernelTable& table) const {
    std::vector<float> out(q.size(), NAN);
    Scratch scratch(
        AttentionScratchFloats(shape.group, shape.past, shape.step));
    table.attention(Args(out.data(), scratch.data()));
    return out;
  }

  AttentionShape shape;
  std::vector<float> q, k_past, v_past, k_new, v_new, mask;
};

}  // namespace hexllm::cpu::testing
