// Ids and types of the IR. See ir/graph.h for how they fit together.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "base/dtype.h"

namespace hexllm::ir {

// A typed index into one of a Graph's or Module's vectors. A default-made id is
// invalid; the verifier rejects it.
template <typename Tag>
struct Id {
  int32_t index = -1;
  bool valid() const { return index >= 0; }
  auto operator<=>(const Id&) const = default;
};
using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;
using ConstantId = Id<struct ConstantTag>;

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};

// How codes stand for real numbers. A value with an encoding is still of type
// f32: its elements are numbers that a code can stand for. What rounding to an
// encoding means, exactly, is in ir/encode.h.
//   integers: value = scale * (code - zero_point)
//     axis < 0: one scale for the tensor.
//     axis >= 0: one scale per index of that axis.
//     block > 0 (LPBQ): the last axis, which is not `axis`, is cut into blocks
//       of `block` elements with an integer factor each:
//       value = code * block_scales[index of axis, block] * scale[index of
//       axis]
//   kF16: rounded to half precision; no scales.
//   kQ4_1, kQ8_0 (weights of linear only): the blocks of 32 of that type. The
//     other input is then rounded to 8 bits per block of 32 at run time.
struct Encoding {
  DType dtype = DType::kU16;  // of the codes: u8, u16, i8, i16, i32, or above
  int32_t bits = 0;           // of a code: 4 for int4 kept in i8; 0 = all
  int32_t axis = -1;
  int32_t block = 0;
  std::vector<float> scales = {};
  std::vector<int32_t> zero_points = {};   // empty = all 0 (symmetric)
  std::vector<uint8_t> block_scales = {};  // 1 to 16; empty unless block > 0
  bool operator==(const Encoding&) const = default;
};

}  // namespace hexllm::ir
