// Chooses the scales of weights. Reads them row by row and keeps no copy: the
// memory is a row and the scales. Used by AssignEncodings. Not where codes are
// written (ir/encode.h).
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/constant.h"
#include "quant/recipe.h"

namespace hexllm::quant {

// What WeightEncoding noticed.
struct WeightReport {
  int64_t channels = 0;
  int64_t zero_channels = 0;  // rows of nothing but zeros
};

// The encoding of a linear's weight [N,K] (N output channels) in the scheme of
// `settings`, which is not fp32 (checked):
//   static, 4 or 8 bits: i8, most = 7 or 127, symmetric. Per channel (axis 0)
//     or per tensor: scale = max(max|w| / most, LeastScale(16)), or with kMse
//     the best of `mse_candidates` scales from that one down to a fifth of it.
//   static, 16 bits: the same as i16 and always per tensor.
//   LPBQ: i8 with bits 4, a scale per channel and for each block of `block`
//     input channels a factor of 1 to 16. With S = max(max|w_block| / 7,
//     LeastScale(16)): scale = max S / 16, factor = clamp(rint(S / scale), 1,
//     16). With kMse the best factors from these down to a third, for the best
//     of a few smaller scales: no weight is rounded much more often than
//     `mse_candidates` times.
//   dynamic: kQ4_1 or kQ8_0.   fp16: kF16.
// For kSeqMse what kMinMax gives: WeightSearch goes on from there.
// kBadInput naming tensor and row: a number that is NaN or infinite, or too
// large for fp16 or for the f16 scales of blocks. kUnsupported naming the
// tensor: blocks (32 for dynamic schemes) that do not divide K. `report` may be
// null.
Result<ir::Encoding> WeightEncoding(const ir::Constant& weight,
                                    const LayerSettings& settings,
                                    WeightReport* report);

// That encoding but for its numbers: scales and factors are there and 1. Reads
// nothing.
ir::Encoding WeightFormat(const ir::Constant& weight,
                          const LayerSettings& settings);

// Of a small tensor that is rounded as activations are (norm weights): u16 from
// its least and greatest number. kBadInput as above.
Result<ir::Encoding> TensorEncoding(const ir::Constant& tensor);

// kF16, once all numbers are known to fit. kBadInput as above.
Result<ir::Encoding> HalfEncoding(const ir::Constant& tensor);

// kBadInput as above where a tensor that gets no encoding has NaN or infinity.
Status CheckFinite(const ir::Constant& tensor);

// Whether dynamic schemes can round this weight: whole blocks of inputs.
bool HasWholeBlocks(const ir::Constant& weight);

// Whether a linear with these settings has its weight encoded: not where it
// stays as stored.
bool TakesEncoding(const ir::Constant& weight, const LayerSettings& settings);

// Whether it is encoded in codes, not in halves.
bool TakesCodes(const ir::Constant& weight, const LayerSettings& settings);

}  // namespace hexllm::quant
