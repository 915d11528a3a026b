// Which constants the plans of a module use, in which form, and their segments
// in the artifact. Used by cpu/lower*.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "artifact/segment_sink.h"
#include "backend/cpu/plan.h"
#include "base/progress.h"
#include "base/status.h"
#include "ir/constant.h"

namespace hexllm::cpu {

// How a plan wants a constant. An encoding of the constant is that of
// Constant::encoding.
enum class WeightForm : uint8_t {
  kStored,     // as it is stored; rows put in order
  kF32,        // widened to f32, rounded to its encoding: norms, biases
  kF16,        // rounded to half precision
  kPanels,     // panels of its encoding: q4_1, q8_0, or steps of a grid
  kScales,     // f32[1,N]: the scale of each row of its encoding
  kSums,       // i32[1,N]: the sum of each row's steps
  kBiasCodes,  // i32[1,N]: the codes of a linear's bias
};

// One use of a constant. `id` is w or the bias of a linear.
struct WeightUse {
  ir::ConstantId id;
  WeightForm form = WeightForm::kStored;
  // kBiasCodes only: the linear's w, and the scale of its x.
  ir::ConstantId linear = {};
  float x_scale = 0;
  bool operator==(const WeightUse&) const = default;
};

// One row per use, in order of first use. Shared by the graphs of a module, so
// that each is stored once.
class WeightTable {
 public:
  // `constants` must outlive the table.
  explicit WeightTable(const ir::ConstantStore& constants)
      : constants_(constants) {}

  const ir::ConstantStore& constants() const { return constants_; }

  // The number of this weight in the table.
  size_t Use(const WeightUse& use);
  // Of an embedding's table: the panels of the linear that has the same rows,
  // when they hold the stored numbers, so that a tied table is stored once.
  size_t UseTable(ir::ConstantId id);

  // Writes one segment per weight. Stored bytes in order go to `sink` as views
  // of the checkpoint, without a copy; of the others, one is in memory at a
  // time. Errors name the weight: those of the sink, kBadInput for numbers that
  // are not finite and must be rounded.
  Status Write(artifact::SegmentSink& sink, ProgressSink& progress);

  // Weight `index`. Its segment is known after Write.
  const PlanWeight& operator[](size_t index) const {
    return rows_[index].weight;
  }

 private:
  struct Row {
    WeightUse use;
    PlanWeight weight;
  };

  Result<uint32_t> WriteRow(const Row& row, std::string name,
                            artifact::SegmentSink& sink);

  const ir::ConstantStore& constants_;
  std::vector<Row> rows_;
  // Found while panels are packed; kSums writes them.
  std::map<ir::ConstantId, std::vector<int32_t>> sums_;
};

}  // namespace hexllm::cpu
