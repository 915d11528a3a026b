// Which constants the plans of a module use, in which form, and their segments
// in the artifact. Used by cpu/lower*.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/segment_sink.h"
#include "backend/cpu/plan.h"
#include "base/progress.h"
#include "base/status.h"
#include "ir/constant.h"

namespace hexllm::cpu {

// How a plan wants a constant.
enum class WeightForm : uint8_t {
  kStored,  // as it is stored; rows put in order
  kF32,     // widened to f32: what norms and biases read
};

// One row per (constant, form), in order of first use. Shared by the graphs of
// a module, so that each is stored once.
class WeightTable {
 public:
  // `constants` must outlive the table.
  explicit WeightTable(const ir::ConstantStore& constants)
      : constants_(constants) {}

  // The number of this weight in the table.
  size_t Use(ir::ConstantId id, WeightForm form);

  // Writes one segment per weight. Stored bytes in order go to `sink` as views
  // of the checkpoint, without a copy. Errors of the sink name the weight.
  Status Write(artifact::SegmentSink& sink, ProgressSink& progress);

  // Weight `index`. Its segment is known after Write.
  const PlanWeight& operator[](size_t index) const {
    return rows_[index].weight;
  }

 private:
  struct Row {
    ir::ConstantId id;
    WeightForm form;
    PlanWeight weight;
  };

  const ir::ConstantStore& constants_;
  std::vector<Row> rows_;
};

}  // namespace hexllm::cpu
