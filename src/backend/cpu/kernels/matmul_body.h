// Matmul for every weight type and instruction set, over the vector abstraction
// V (vec_*.h) and the decoders W (weights.h). Two regimes with the same bits:
//  - Up to 4 activation rows (decoding tokens): weights go from packed bytes
//    through registers into the dot products, V::DirectWeights of their rows at
//    a time, whose independent chains hide the latency of fma.
//  - More rows (prompts): matmul_panel_body.h.
// A lane's sum is over k = lane, lane + 16, ... in order, so accumulators are
// kept, or saved and restored between slices of k, never split.
#pragma once

#include <stdint.h>

#include "backend/cpu/kernels/inline.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/matmul_panel_body.h"

namespace hexllm::cpu {
namespace {

// Outputs of a row that are finished at once.
constexpr int64_t kDirectOutputs = 64;

// --- Few activation rows.

// W::Read of the blocks at `offset` of kW rows.
template <class V, class W, int kW>
HX_INLINE void ReadBlocks(const uint8_t* const* rows, int64_t offset,
                          typename W::Shared* shared) {
  if constexpr (W::kHalfPairs && kW == 4) {
    alignas(32) float pairs[8];
    V::LoadHalfPairs(rows, offset, pairs);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) shared[i] = {pairs[2 * i], pairs[2 * i + 1]};
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < kW; ++i) {
      shared[i] = W::Read(rows[i] + offset);
    }
  }
}

// Sums of kX activation rows with the weight rows that are decoded at once.
template <class V, int kX>
struct DirectSums {
  typename V::F at[Bound(kX)][Bound(V::DirectWeights(kX))];
};

// The last args.k % 16 elements, after `blocks` blocks of a plain type.
template <class V, class W, int kX>
HX_INLINE void AddDirectTail(const MatMulArgs& args, const uint8_t* const* rows,
                             int64_t blocks, DirectSums<V, kX>& sum) {
  const int64_t tail = args.k % 16;
  if (tail == 0) return;
  for (int i = 0; i < V::DirectWeights(kX); ++i) {
    const auto w = DecodeTail<V, W>(rows[i] + blocks * W::kBlockBytes, tail);
#pragma GCC unroll 4
    for (int r = 0; r < kX; ++r) {
      const float* x = args.x + r * args.x_stride + blocks * 16;
      sum.at[r][i] = V::Fma(V::LoadPartial(x, tail), w, sum.at[r][i]);
    }
  }
}

// Dot products of kX activation rows with some weight rows.
template <class V, class W, int kX>
HX_INLINE DirectSums<V, kX> DotDirect(const MatMulArgs& args,
                                      const uint8_t* const* rows) {
  constexpr int kRows = V::DirectWeights(kX);
  constexpr int kBlock = W::kParts * W::kVecs * 16;
  DirectSums<V, kX> sum;
#pragma GCC unroll 4
  for (int r = 0; r < kX; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sum.at[r][i] = V::Set(0.0f);
  }
  const float* x = args.x;
  const int64_t blocks = args.k / kBlock;
  for (int64_t b = 0; b < blocks; ++b) {
    typename W::Shared shared[Bound(kRows)];
    ReadBlocks<V, W, kRows>(rows, b * W::kBlockBytes, shared);
    for (int part = 0; part < W::kParts; ++part) {
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const uint8_t* block = rows[i] + b * W::kBlockBytes;
        __builtin_prefetch(block + kPrefetchBytes +
                           part * (W::kBlockBytes / W::kParts));
        typename V::F w[Bound(W::kVecs)];
        W::Decode(block, shared[i], part, w);
#pragma GCC unroll 4
        for (int r = 0; r < kX; ++r) {
#pragma GCC unroll 2
          for (int v = 0; v < W::kVecs; ++v) {
            const auto x_vec = V::Load(x + r * args.x_stride + 16 * v);
            sum.at[r][i] = V::Fma(x_vec, w[v], sum.at[r][i]);
          }
        }
      }
      x += W::kVecs * 16;
    }
  }
  if constexpr (kBlock == 16) {
    AddDirectTail<V, W, kX>(args, rows, blocks, sum);
  }
  return sum;
}

// The sums of the lanes of each of kCount vectors.
template <class V, size_t kCount>
HX_INLINE void AddLanesOf(const typename V::F (&a)[kCount], float* out) {
  if constexpr (kCount == 4) {
    V::AddLanes4(a, out);
  } else {
    for (size_t i = 0; i < kCount; ++i) out[i] = V::AddLanes(a[i]);
  }
}

// kX activation rows.
template <class V, class W, int kX>
void MatMulDirect(const MatMulArgs& args) {
  constexpr int kRows = V::DirectWeights(kX);
  for (int64_t n = args.n_begin; n < args.n_end; n += kDirectOutputs) {
    const int64_t count = Smaller(kDirectOutputs, args.n_end - n);
    float sums[Bound(kX)][kDirectOutputs];
    for (int64_t i = 0; i < count; i += kRows) {
      // A short group repeats its last row and drops the copies.
      const uint8_t* rows[Bound(kRows)];
      for (int j = 0; j < kRows; ++j) {
        rows[j] = WeightRow(args, n + Smaller(i + j, count - 1));
      }
      const auto sum = DotDirect<V, W, kX>(args, rows);
#pragma GCC unroll 4
      for (int r = 0; r < kX; ++r) AddLanesOf<V>(sum.at[r], sums[r] + i);
    }
    for (int r = 0; r < kX; ++r) FinishRow<V>(args, r, {n, count}, sums[r]);
  }
}

template <class V, class W>
void MatMul(const MatMulArgs& args) {
  switch (args.rows) {
    case 1:
      return MatMulDirect<V, W, 1>(args);
    case 2:
      return MatMulDirect<V, W, 2>(args);
    case 3:
      return MatMulDirect<V, W, 3>(args);
    case 4:
      return MatMulDirect<V, W, 4>(args);
    default:
      return MatMulPanels<V, W>(args);
  }
}

}  // namespace
}  // namespace hexllm::cpu
