// linear whose weight has codes: the sums that engines must reproduce bit for
// bit. Used by linear and linear_add alone.
#pragma once

#include <span>

#include "ir/ops.h"

namespace hexllm::ir {

// True when x (input 0) has codes of one scale and w (input 1) has codes of one
// scale or one per row: LinearOfCodes.
bool IsLinearOfCodes(const OpContext& context);
// True when w has blocks of q4_1 or q8_0: LinearOfBlocks.
bool IsLinearOfBlocks(const OpContext& context);

// x[T,K], w[N,K], bias[N]? -> [T,N] in exact integers:
//   acc  = sum over k of (x code - x zero point) *
//          (w code - w zero point) * block scale
//   step = double(x.scale) * double(w.scale[n])
//   out  = float((acc + EncodeBias(bias[n], step)) * step)
//
// With dropped_bits = b the low b bits of each term are lost, where codes of x
// count from 0 (signed ones are shifted) and zero is their zero point:
//   acc = sum over k of x code * (w code - w zero point) * block scale
//   sum = sum over k of          (w code - w zero point) * block scale
//   out = float((floor(acc / 2^b) - floor(zero * sum / 2^b + 1/2) +
//                trunc(EncodeBias(bias[n], step) / 2^b)) * 2^b * step)
//
// With fixed_point = 1 codes of u8 come out, not always the nearest ones, with
// the exact sum of the first line (base/chip_arithmetic.h):
//   ratio = step / double(scale of out)
//   sixteenths = floor((acc + EncodeBias(bias[n], step)) / 2^shift(ratio))
//   out = the number of code RescaleSixteenths(sixteenths) + zero point of out
HostTensor LinearOfCodes(const OpContext& context,
                         std::span<const HostTensor* const> inputs,
                         const TensorType& output);

// As above in f32; x is rounded to 8 bits per block of 32 along K. acc starts
// at +0 and takes the blocks in order:
//   amax = max |x|; inverse = amax == 0 ? 0 : 127 / amax; sx = amax / 127
//   code = rint(x * inverse), NaN gives 0
//   dot  = exact sum of code * q;  sum = exact sum of code
//   acc  = fma(float(dot), d * sx, acc)
//   acc  = fma(m, sx * float(sum), acc)       (q4_1 only)
// out = acc + bias[n].
HostTensor LinearOfBlocks(const OpContext& context,
                          std::span<const HostTensor* const> inputs,
                          const TensorType& output);

}  // namespace hexllm::ir
