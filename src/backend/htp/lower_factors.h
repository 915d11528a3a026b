// Factors of values: where a product with a constant costs nothing. The HTP's
// MatMul has no scale; the scale of attention goes back to the projection of
// the queries, whose weights, and all tensors on the way, then have scales that
// much larger. The codes are the same as without. Used by htp/lower_graph.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace hexllm::htp {

// What the values of a graph are multiplied by in its QNN graph. A value has a
// factor when all that read it want the same one.
class Factors {
 public:
  explicit Factors(const ir::Graph& graph);

  // 1 for most. A node's op sees to it that its output has its factor:
  //   linear, rms_norm                 from their constants
  //   reshape, transpose, rope, convert, slice_rows
  //                                    from their input, which has the same
  //   matmul                           from a, which has its scale besides
  double Of(ir::ValueId id) const {
    return factors_[static_cast<size_t>(id.index)];
  }
  // What remains to be multiplied with after the matmul, softcap or scale
  // `node` when its first input has the factor that it has.
  double Remaining(const ir::Node& node) const;

 private:
  std::vector<double> factors_;
};

}  // namespace hexllm::htp
