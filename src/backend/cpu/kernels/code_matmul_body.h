// One panel of the products of 16-bit and 8-bit codes, over the abstraction D
// of integer dot products (dots_*.h). The definition is quant_ref.cc.
//
// As in dots_body.h a lane is an output and a tile a part of the panel and some
// activation rows. Products are added in 32 bits as far as those hold them, and
// these sums in double. Stored bytes are 128 above the codes: what that adds is
// known from the sum of the activations.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/dots_body.h"
#include "backend/cpu/kernels/inline.h"
#include "backend/cpu/kernels/kernels.h"

namespace hexllm::cpu {
namespace {

// Blocks whose sums fit in 32 bits: 128 groups of four products, in two sums at
// least, each below 2^15 * 255.
constexpr int64_t kWideBlocks = 16;
static_assert(kWideBlocks * kQuantBlock / 2 * 32768 * 255 < INT32_MAX);

constexpr int64_t kGroupsPerBlock = kQuantBlock / kPackedGroup;

// Sums of a tile, place times those of one plane of weights. `w` is that of the
// tile's first lane.
template <class D, int kRows>
HX_INLINE void AddPlane(const CodeMatMulArgs& args, const int16_t* x,
                        const uint8_t* w, double place,
                        double (*sums)[Bound(D::kLanes)]) {
  const int64_t groups =
      (args.k + kQuantBlock - 1) / kQuantBlock * kGroupsPerBlock;
  constexpr int64_t kMost = kWideBlocks * kGroupsPerBlock;
  const int16_t* codes[Bound(kRows)];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    codes[r] = x + r * args.x_stride;
    asm("" : "+r"(codes[r]));  // a register each, not sums of strides
  }
  for (int64_t begin = 0; begin < groups; begin += kMost) {
    const int64_t end = groups - begin < kMost ? groups : begin + kMost;
    typename D::WideSum acc[Bound(kRows)];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) acc[r] = D::StartWide();
    for (int64_t g = begin; g < end; ++g) {
      const uint8_t* at = w + g * kLineBytes;
      if constexpr (kRows < D::kWideRows) {
        __builtin_prefetch(at + kAskAhead, 0, 2);
      }
      const auto wide = D::ReadWide(at);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        D::AddWide(acc[r], wide, codes[r] + g * kPackedGroup);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) D::AddTotals(acc[r], place, sums[r]);
  }
}

// What the sums of a row start from: the offsets of the outputs, less what the
// bytes above the codes add.
template <class D>
HX_INLINE void StartSums(const CodeMatMulArgs& args, int64_t r, int64_t lane,
                         double* sums) {
  const double above = args.low == nullptr ? 128 : 32768;
  const double row_term = -above * static_cast<double>(args.x_sums[r]);
  const double* const offsets = args.terms->offsets + lane;
  for (int i = 0; i < D::kLanes; ++i) sums[i] = row_term + offsets[i];
}

// The outputs of a row of a tile, of its exact sums.
template <class D>
HX_INLINE void FinishCodes(const CodeMatMulArgs& args, int64_t r, int64_t lane,
                           double* steps) {
  constexpr int kLanes = D::kLanes;
  if (args.drops) {
    for (int i = 0; i < kLanes; ++i) {
      steps[i] = floor(steps[i] * args.terms->per_place[lane + i]) +
                 args.terms->rest[lane + i];
    }
  }
  float out[Bound(kLanes)];
  for (int i = 0; i < kLanes; ++i) {
    out[i] = static_cast<float>(steps[i] * args.terms->factors[lane + i]);
  }
  float* const to = args.out + r * args.out_stride + lane;
  if (args.outputs - lane >= kLanes) {
    memcpy(to, out, sizeof(out));
  } else {
    for (int64_t i = 0; i < args.outputs - lane; ++i) to[i] = out[i];
  }
}

// kRows rows from `row` on, all outputs.
template <class D, int kRows>
HX_INLINE void CodeTile(const CodeMatMulArgs& args, int64_t row) {
  const int16_t* x = args.x + row * args.x_stride;
  for (int64_t lane = 0; lane < args.outputs; lane += D::kLanes) {
    double sums[Bound(kRows)][Bound(D::kLanes)];
    for (int r = 0; r < kRows; ++r) StartSums<D>(args, row + r, lane, sums[r]);
    const auto plane = [&](const std::byte* w) {
      return reinterpret_cast<const uint8_t*>(w) + lane * kPackedGroup;
    };
    AddPlane<D, kRows>(args, x, plane(args.w), args.low == nullptr ? 1 : 256,
                       sums);
    if (args.low != nullptr) {
      AddPlane<D, kRows>(args, x, plane(args.low), 1, sums);
    }
    for (int r = 0; r < kRows; ++r) {
      FinishCodes<D>(args, row + r, lane, sums[r]);
    }
  }
}

// The same for `rows` rows, 1 to kRows.
template <class D, int kRows = D::kWideRows>
void CodeTileOf(const CodeMatMulArgs& args, int64_t row, int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return CodeTileOf<D, kRows - 1>(args, row, rows);
  }
  CodeTile<D, kRows>(args, row);
}

template <class D>
HX_INLINE void CodeMatMulBody(const CodeMatMulArgs& args) {
  const int64_t tiles = (args.rows + D::kWideRows - 1) / D::kWideRows;
  for (int64_t t = 0; t < tiles; ++t) {  // of about equal size
    const int64_t row = args.rows * t / tiles;
    CodeTileOf<D>(args, row, args.rows * (t + 1) / tiles - row);
  }
}

}  // namespace
}  // namespace hexllm::cpu
