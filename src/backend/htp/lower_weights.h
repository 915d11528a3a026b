// Constants in the forms that the HTP's ops read. Used by htp/ops. Rows are
// read, widened and rounded one after the other; beside the result, a few are
// in memory.
#pragma once

#include <cstddef>
#include <vector>

#include "backend/htp/qnn_tensor.h"
#include "base/status.h"
#include "ir/constant.h"

namespace hexllm::htp {

// A constant and its bytes, little-endian; a 4-bit code takes a byte.
struct StaticTensor {
  TensorSpec spec;
  std::vector<std::byte> bytes;
};

// w[N,K] of a linear, times `factor`, as the filter [1,1,K,N] of a Conv2d:
// codes of its encoding, whose axis becomes the last, or f16. 4 bits in blocks
// with K > 32 get zeros behind, up to a multiple of 32, and blocks of 64 become
// two of 32 with the same factor. kUnsupported for
// a constant without an encoding or with one that the HTP does not have;
// kBadInput names the row whose numbers are not finite.
Result<StaticTensor> MakeFilter(const ir::Constant& w, double factor);

// A constant of zeros, of the type, shape and encoding of `spec`.
StaticTensor MakeZeros(TensorSpec spec);

// The scales of a linear's accumulators: x.scale times w's scale, of each row
// when w has one for each.
struct BiasScales {
  double x_scale = 1;
  const ir::Constant& w;
  double factor = 1;  // of w in this graph, as given to MakeFilter
};
// bias[N] as i32 codes of these scales: the library misreads all others.
Result<StaticTensor> MakeBias(const ir::Constant& bias,
                              const BiasScales& scales);

// bias[N] times `factor` as f16.
Result<StaticTensor> MakeHalfBias(const ir::Constant& bias, double factor);

// table[V,M] of an embedding in the codes of `encoding` (u8, u16, or f16).
Result<StaticTensor> MakeTable(const ir::Constant& table,
                               const ir::Encoding& encoding);

// How a norm reads its weight.
struct GammaForm {
  DType dtype = DType::kU16;  // u8, u16 or f16
  double offset = 0;          // added to each number
  double factor = 1;          // of the sum
  bool symmetric = false;     // 0 is the middle code
};
// w[M] of a norm. Its own codes when it has codes of that type, no offset and
// the form wants no other zero, else codes of its least and greatest number.
Result<StaticTensor> MakeGamma(const ir::Constant& w, const GammaForm& form);

// bias[M] of a norm that is computed in `dtype`: f16, or i32 with the steps of
// its encoding, else 65535 of them from its least to its greatest number and 0.
Result<StaticTensor> MakeBeta(const ir::Constant& bias, DType dtype);

}  // namespace hexllm::htp
