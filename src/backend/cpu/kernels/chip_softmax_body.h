// The HTP's softmax of codes (base/chip_softmax.h) in 32 bits, as plain loops
// over chunks of 16 elements in arrays of their own, which compilers turn into
// the vectors of the instruction set that a file is compiled for.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/inline.h"
#include "backend/cpu/kernels/kernels.h"

namespace hexllm::cpu {
namespace {

constexpr int kChipLanes = 16;
constexpr uint32_t kOctave = 1U << 22;    // of distances, which are base 2
constexpr uint32_t kFar = 15 * kOctave;   // powers are 0 from there on
constexpr uint32_t kPowerOfNone = 32767;  // of no distance

// What a step between codes is, of distances.
struct ChipSteps {
  float most;       // the largest element of the row
  float per_scale;  // 1 / scale
  float last;       // steps that are far enough for a power of 0, or 65536
  uint32_t factor;  // of distances a step
};

HX_INLINE ChipSteps StepsOf(const float* x, int64_t width, float scale) {
  constexpr double kLog2E = 1.4426950408889634074;
  constexpr double kMostFactor = 1 << 30;
  float lanes[kChipLanes];
  for (float& lane : lanes) lane = -INFINITY;
  int64_t i = 0;
  for (; i + kChipLanes <= width; i += kChipLanes) {
    for (int l = 0; l < kChipLanes; ++l) {
      lanes[l] = lanes[l] < x[i + l] ? x[i + l] : lanes[l];
    }
  }
  for (; i < width; ++i) lanes[0] = lanes[0] < x[i] ? x[i] : lanes[0];
  float most = -INFINITY;
  for (const float lane : lanes) most = most < lane ? lane : most;
  const double factor = floor(static_cast<double>(scale) * kLog2E * kOctave);
  const auto whole =
      static_cast<uint32_t>(factor < kMostFactor ? factor : kMostFactor);
  const uint32_t far = whole == 0 ? 65536 : kFar / whole + 1;
  return {.most = most,
          .per_scale = 1 / scale,
          .last = static_cast<float>(far < 65536 ? far : 65536),
          .factor = whole};
}

// 2^-(distance / kOctave) in 2^-15: (c0 + (c1 + c2 g) g) / 2^15 is 2^g / 2 in a
// quarter of 0 .. 1.
HX_INLINE uint32_t PowerAt(uint32_t distance) {
  const uint32_t near = distance < kFar ? distance : kFar;
  const uint32_t g = 65535 - ((near >> 6) & 65535);
  const bool low = g < 32768;
  const bool first = g < 16384, third = g < 49152;
  const uint32_t c0 = low ? (first ? 32769U : 32876U) : third ? 33371U : 34681U;
  const uint32_t c1 = low ? (first ? 22652U : 21816U) : third ? 19857U : 16401U;
  const uint32_t c2 = low ? (first ? 4300U : 5119U) : third ? 6087U : 7227U;
  const uint32_t slope = (c1 * 32768 + c2 * g) >> 16;
  return ((c0 * 32768 + slope * g) >> 16) >> (near / kOctave);
}

// A chunk of a row.
template <class T>
struct ChipChunk {
  T at[kChipLanes];
};
using ChipFloats = ChipChunk<float>;
using ChipSums = ChipChunk<uint32_t>;

// `count` elements, and -infinity behind.
HX_INLINE ChipFloats LoadChip(const float* from, int64_t count) {
  ChipFloats out;
  if (count == kChipLanes) {
    memcpy(&out, from, sizeof(out));
    return out;
  }
  for (float& value : out.at) value = -INFINITY;
  memcpy(&out, from, static_cast<size_t>(count) * sizeof(float));
  return out;
}

HX_INLINE void StoreChip(const ChipFloats& from, int64_t count, float* out) {
  if (count == kChipLanes) {
    memcpy(out, &from, sizeof(from));
  } else {
    memcpy(out, &from, static_cast<size_t>(count) * sizeof(float));
  }
}

HX_INLINE ChipSums PowersOf(const ChipFloats& x, const ChipSteps& steps) {
  ChipSums out;
  for (int l = 0; l < kChipLanes; ++l) {
    const float away = (steps.most - x.at[l]) * steps.per_scale + 0.5f;
    const float near = away < steps.last ? away : steps.last;  // NaN too
    out.at[l] = PowerAt(static_cast<uint32_t>(static_cast<int32_t>(near)) *
                        steps.factor);
  }
  return out;
}

// Writes the powers of a row; returns their sum.
HX_INLINE uint64_t WritePowers(const float* x, const ChipSteps& steps,
                               float* out, int64_t width) {
  ChipSums sums = {};
  for (int64_t i = 0; i < width; i += kChipLanes) {
    const int64_t count = width - i < kChipLanes ? width - i : kChipLanes;
    ChipSums powers = PowersOf(LoadChip(x + i, count), steps);
    for (int64_t l = count; l < kChipLanes; ++l) powers.at[l] = 0;
    ChipFloats floats;
    for (int l = 0; l < kChipLanes; ++l) {
      sums.at[l] += powers.at[l];
      floats.at[l] = static_cast<float>(static_cast<int32_t>(powers.at[l]));
    }
    StoreChip(floats, count, out + i);
  }
  uint64_t sum = 0;
  for (const uint32_t lane : sums.at) sum += lane;
  return sum;
}

// Makes shares of their sum of powers.
HX_INLINE void WriteShares(uint32_t inverse, int shift, float* out,
                           int64_t width) {
  for (int64_t i = 0; i < width; i += kChipLanes) {
    const int64_t count = width - i < kChipLanes ? width - i : kChipLanes;
    ChipFloats chunk = LoadChip(out + i, count);
    for (float& value : chunk.at) {
      const uint32_t code =
          (static_cast<uint32_t>(static_cast<int32_t>(value)) * inverse) >>
          shift;
      const uint32_t most = code < 65535 ? code : 65535;
      value = static_cast<float>(static_cast<int32_t>(most)) * (1.0f / 65536);
    }
    StoreChip(chunk, count, out + i);
  }
}

HX_INLINE void ChipSoftmaxRow(const float* x, float scale, float* out,
                              int64_t width) {
  const ChipSteps steps = StepsOf(x, width, scale);
  const uint64_t sum = WritePowers(x, steps, out, width);
  uint32_t inverse = 0;  // of a row of nothing that is a number
  int shift = 0;
  if (sum >= kPowerOfNone) {
    const int n = 63 - __builtin_clzll(sum);
    const int bits = n - 1 < 16 ? n - 1 : 16;
    inverse = static_cast<uint32_t>(
        floor(static_cast<double>(uint64_t{1} << (n + bits)) /
                  (static_cast<double>(sum / 2 * 2) + 0.5) +
              0.5));
    shift = n + bits - 16;
    if (shift > 31) inverse = 0;  // of so many columns each has no share
    shift = shift > 31 ? 0 : shift;
  }
  WriteShares(inverse, shift, out, width);
}

HX_INLINE void ChipSoftmaxBody(const ChipSoftmaxArgs& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    const int64_t at = r * args.width;
    ChipSoftmaxRow(args.x + at, args.scale, args.out + at, args.width);
  }
}

}  // namespace
}  // namespace hexllm::cpu
