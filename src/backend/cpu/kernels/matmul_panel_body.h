// Matmul of many activation rows (prompts), over the vector abstraction V
// (vec_*.h) and the decoders W (weights.h).
//
// A panel of weight rows is decoded once into scratch, transposed, so that a
// register holds V::kNative outputs of one lane of the sum (kernels.h), and
// multiplied by all activation rows. A tile is V::kTileRows activation rows x
// V::kTileVecs registers of outputs; it goes through one lane at a time, and
// the 16 lanes are added at the end, output by output in one register: nothing
// is added across a register. Sums are kept, or saved and restored between
// slices of k, never split.
#pragma once

#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/panel.h"

namespace hexllm::cpu {
namespace {

HX_INLINE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

HX_INLINE const uint8_t* WeightRow(const MatMulArgs& args, int64_t n) {
  return reinterpret_cast<const uint8_t*>(args.w) + n * args.w_row_bytes;
}

// Outputs begin .. begin + count - 1.
struct Outputs {
  int64_t begin;
  int64_t count;
};

// Writes outputs of a row from finished sums.
template <class V>
HX_INLINE void FinishRow(const MatMulArgs& args, int64_t r,
                         const Outputs& outputs, const float* sums) {
  const int64_t at = r * args.out_stride + outputs.begin;
  for (int64_t i = 0; i < outputs.count; i += 16) {
    const int64_t size = Smaller(16, outputs.count - i);
    auto sum = V::LoadPartial(sums + i, size);
    if (args.bias != nullptr) {
      sum = V::Add(sum, V::LoadPartial(args.bias + outputs.begin + i, size));
    }
    if (args.residual != nullptr) {
      sum = V::Add(sum, V::LoadPartial(args.residual + at + i, size));
    }
    V::StorePartial(args.out + at + i, sum, size);
  }
}

// The last `count` < 16 weights of a row of a plain type, padded with zeros.
template <class V, class W>
HX_INLINE typename V::F DecodeTail(const uint8_t* block, int64_t count) {
  uint8_t padded[Bound(W::kBlockBytes)] = {};
  memcpy(padded, block, static_cast<size_t>(count * (W::kBlockBytes / 16)));
  typename V::F out[1];
  W::Decode(padded, W::Read(padded), 0, out);
  return out[0];
}

// How far ahead of their use weights are asked for: about the latency of memory
// at the speed of one core. Past the end of the weights it asks in vain.
constexpr int64_t kPrefetchBytes = 4096;

// Outputs of a tile, which are decoded together.
template <class V>
constexpr int64_t kColumns = V::kTileVecs* V::kNative;

// The scratch of one thread.
struct PanelScratch {
  float* w;        // [groups of kColumns][16 lanes][steps of 16][kColumns]
  float* lanes;    // [16][kTileRows][kColumns]
  float* decoded;  // [kColumns][elements of a block of weights]
};

template <class V>
HX_INLINE PanelScratch SplitScratch(const MatMulArgs& args) {
  PanelScratch out = {};
  out.w = args.scratch;
  out.lanes = out.w + PanelRows(args.k, kColumns<V>) * PaddedK(args.k);
  out.decoded = out.lanes + 16 * V::kTileRows * kColumns<V>;
  return out;
}

// --- Weights.

// Decodes one block of a row.
template <class V, class W>
HX_INLINE void DecodeBlock(const uint8_t* block, float* out) {
  const auto shared = W::Read(block);
  for (int part = 0; part < W::kParts; ++part) {
    __builtin_prefetch(block + kPrefetchBytes +
                       part * (W::kBlockBytes / W::kParts));
    typename V::F w[Bound(W::kVecs)];
    W::Decode(block, shared, part, w);
#pragma GCC unroll 4
    for (int v = 0; v < W::kVecs; ++v) {
      V::Store(out + (part * W::kVecs + v) * 16, w[v]);
    }
  }
}

// Floats at equal distances.
template <class T>
struct Strided {
  T* at;
  int64_t stride;
};

// kColumns rows of 16 * vecs floats to [16 lanes][vecs][kColumns]; strides are
// those of rows and of lanes.
template <class V>
HX_INLINE void Transpose(const Strided<const float>& from, int64_t vecs,
                         const Strided<float>& to) {
  for (int64_t v = 0; v < vecs; ++v) {
    for (int lane = 0; lane < 16; lane += 4) {
#pragma GCC unroll 4
      for (int64_t n = 0; n < kColumns<V>; n += V::kNative) {
        V::NativeTranspose4(
            from.at + n * from.stride + 16 * v + lane, from.stride,
            to.at + lane * to.stride + v * kColumns<V> + n, to.stride);
      }
    }
  }
}

// Weights of type W are floats as they lie.
template <class W>
constexpr bool kAreFloats = W::kBlockBytes == 64 && W::kVecs == 1;

// Decodes the kColumns rows of a group; beyond its outputs the last repeats.
template <class V, class W>
void DecodeGroup(const MatMulArgs& args, const Outputs& group, float* decoded,
                 float* w) {
  constexpr int kVecs = W::kParts * W::kVecs;
  const int64_t blocks = args.k / (16 * kVecs);
  Strided<float> out = {w, PaddedK(args.k) / 16 * kColumns<V>};
  const auto row_of = [&](int64_t i) {
    return WeightRow(args, group.begin + Smaller(i, group.count - 1));
  };
  if (kAreFloats<W> && group.count == kColumns<V> && args.k % 16 == 0) {
    const auto* floats = reinterpret_cast<const float*>(row_of(0));
    return Transpose<V>({floats, args.w_row_bytes / 4}, blocks, out);
  }
  for (int64_t b = 0; b < blocks; ++b, out.at += kVecs * kColumns<V>) {
    for (int64_t i = 0; i < kColumns<V>; ++i) {
      const uint8_t* row = row_of(i);
      DecodeBlock<V, W>(row + b * W::kBlockBytes, decoded + i * 16 * kVecs);
    }
    Transpose<V>({decoded, 16 * kVecs}, kVecs, out);
  }
  if constexpr (kVecs == 1) {
    if (args.k % 16 == 0) return;
    for (int64_t i = 0; i < kColumns<V>; ++i) {
      const uint8_t* row = row_of(i);
      V::Store(decoded + i * 16,
               DecodeTail<V, W>(row + blocks * W::kBlockBytes, args.k % 16));
    }
    Transpose<V>({decoded, 16}, 1, out);
  }
}

// --- Products.

// Rows of activations that are multiplied together: up to kTileRows.
struct RowBlock {
  int64_t begin;
  int64_t count;
};

// A slice of one lane.
struct TileArgs {
  const float* w;  // [steps, kColumns]
  const float* x;  // [rows, x_stride]; a step is 16 elements
  int64_t x_stride;
  int64_t steps;
  bool first;   // start from zero, not from `sums`
  float* sums;  // [kTileRows, kColumns], in and out
};

template <class V, int kRows>
HX_INLINE void MultiplyLane(const TileArgs& t) {
  constexpr int kVecs = V::kTileVecs;
  typename V::N acc[Bound(kRows)][Bound(kVecs)];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      const float* at = t.sums + r * kColumns<V> + v * V::kNative;
      acc[r][v] = t.first ? V::NativeSet(0.0f) : V::NativeLoad(at);
    }
  }
  const float* w = t.w;
  const float* x = t.x;
  for (int64_t i = 0; i < t.steps; ++i, w += kColumns<V>, x += 16) {
    typename V::N w_vec[Bound(kVecs)];
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      w_vec[v] = V::NativeLoad(w + v * V::kNative);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const auto x_vec = V::NativeSet(x[r * t.x_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) {
        acc[r][v] = V::NativeFma(x_vec, w_vec[v], acc[r][v]);
      }
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      V::NativeStore(t.sums + r * kColumns<V> + v * V::kNative, acc[r][v]);
    }
  }
}

// All lanes of a slice; lanes of `w` are `lane_stride` apart.
template <class V, int kRows = V::kTileRows>
void MultiplySlice(TileArgs t, int64_t lane_stride, int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return MultiplySlice<V, kRows - 1>(t, lane_stride, rows);
  }
  for (int lane = 0; lane < 16; ++lane) {
    MultiplyLane<V, kRows>(t);
    t.w += lane_stride;
    t.x += 1;
    t.sums += V::kTileRows * kColumns<V>;
  }
}

// Adds the lanes of a row of a tile in the tree of the reduction order.
template <class V>
HX_INLINE void AddTile(const float* lanes, float* sums) {
  constexpr int64_t kLane = V::kTileRows * kColumns<V>;
  for (int64_t n = 0; n < kColumns<V>; n += V::kNative) {
    typename V::N sum[8];
#pragma GCC unroll 8
    for (int l = 0; l < 8; ++l) {
      sum[l] = V::NativeAdd(V::NativeLoad(lanes + l * kLane + n),
                            V::NativeLoad(lanes + (l + 8) * kLane + n));
    }
#pragma GCC unroll 4
    for (int l = 0; l < 4; ++l) sum[l] = V::NativeAdd(sum[l], sum[l + 4]);
    sum[0] = V::NativeAdd(sum[0], sum[2]);
    sum[1] = V::NativeAdd(sum[1], sum[3]);
    V::NativeStore(sums + n, V::NativeAdd(sum[0], sum[1]));
  }
}

// The last args.k % 16 elements of rows of activations, padded with zeros.
template <class V>
HX_INLINE void CopyTails(const MatMulArgs& args, const RowBlock& rows,
                         float* out) {
  const int64_t whole = args.k / 16 * 16;
  for (int64_t r = 0; r < rows.count; ++r) {
    const float* from = args.x + (rows.begin + r) * args.x_stride + whole;
    V::Store(out + r * 16, V::LoadPartial(from, args.k - whole));
  }
}

// A decoded group of weight rows.
struct WeightGroup {
  const float* w;
  Outputs outputs;
};

// Multiplies a block of activation rows with a group; `lanes` as in
// PanelScratch.
template <class V>
void MultiplyGroup(const MatMulArgs& args, const RowBlock& rows,
                   const WeightGroup& group, float* lanes) {
  const int64_t whole = args.k / 16 * 16;
  const int64_t lane_stride = PaddedK(args.k) / 16 * kColumns<V>;
  const int64_t slice = SliceSize(args.k);
  TileArgs t = {.w = group.w,
                .x = args.x + rows.begin * args.x_stride,
                .x_stride = args.x_stride,
                .steps = 0,
                .first = true,
                .sums = lanes};
  for (int64_t k = 0; k < whole; k += slice) {
    t.steps = Smaller(slice, whole - k) / 16;
    MultiplySlice<V>(t, lane_stride, rows.count);
    t.w += t.steps * kColumns<V>;
    t.x += t.steps * 16;
    t.first = false;
  }
  if (whole < args.k || args.k == 0) {
    float tails[V::kTileRows * 16];
    CopyTails<V>(args, rows, tails);
    t.x = tails;
    t.x_stride = 16;
    t.steps = PaddedK(args.k - whole) / 16;
    MultiplySlice<V>(t, lane_stride, rows.count);
  }
  for (int64_t r = 0; r < rows.count; ++r) {
    float sums[kColumns<V>];
    AddTile<V>(lanes + r * kColumns<V>, sums);
    FinishRow<V>(args, rows.begin + r, group.outputs, sums);
  }
}

template <class V, class W>
void MatMulPanels(const MatMulArgs& args) {
  const PanelScratch scratch = SplitScratch<V>(args);
  const int64_t panel = PanelRows(args.k, kColumns<V>);
  const int64_t blocks = (args.rows + V::kTileRows - 1) / V::kTileRows;
  for (int64_t n = args.n_begin; n < args.n_end; n += panel) {
    const int64_t groups =
        (Smaller(panel, args.n_end - n) + kColumns<V> - 1) / kColumns<V>;
    const auto outputs = [&](int64_t g) {
      const int64_t begin = n + g * kColumns<V>;
      return Outputs{begin, Smaller(kColumns<V>, args.n_end - begin)};
    };
    const auto weights = [&](int64_t g) {
      return scratch.w + g * kColumns<V> * PaddedK(args.k);
    };
    for (int64_t g = 0; g < groups; ++g) {
      DecodeGroup<V, W>(args, outputs(g), scratch.decoded, weights(g));
    }
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t begin = args.rows * b / blocks;
      const RowBlock rows = {begin, args.rows * (b + 1) / blocks - begin};
      for (int64_t g = 0; g < groups; ++g) {
        MultiplyGroup<V>(args, rows, {weights(g), outputs(g)}, scratch.lanes);
      }
    }
  }
}

}  // namespace
}  // namespace hexllm::cpu
