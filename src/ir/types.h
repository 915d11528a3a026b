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

// How integer codes stand for real numbers:
//   value = scale * (code - zero_point)
//   axis < 0: one scale for the tensor (block is 0).
//   axis >= 0: one scale per index of that axis.
//   block > 0: one scale per `block` consecutive elements of the last axis in
//     each index of `axis`, which is another one.
struct Encoding {
  int32_t axis = -1;
  int32_t block = 0;
  std::vector<float> scales = {};
  std::vector<int32_t> zero_points = {};  // empty = all 0 (symmetric)
  bool operator==(const Encoding&) const = default;
};

}  // namespace hexllm::ir
