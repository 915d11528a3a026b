// What every engine checks before it trusts its caller: sizes and order of Bind
// and Execute (backend/engine.h). Used by the engines.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "artifact/manifest.h"
#include "backend/engine.h"
#include "base/status.h"

namespace hexllm {

// kUsage unless `memory` fits input or output `index` of `entry`.
Status CheckMemory(const artifact::GraphEntry& entry, IoDirection direction,
                   size_t index, std::span<const std::byte> memory);

// kUsage unless some row of the step is left.
Status CheckRows(const artifact::GraphEntry& entry, StepRows rows);

// kUsage naming the input or output that has no memory.
Error NotBound(const artifact::GraphEntry& entry, const artifact::IoSpec& spec);

// kUsage for a token id outside of a vocabulary of `vocab`.
Status CheckTokenId(int32_t id, int64_t row, int64_t vocab);

// CheckRows, then that all of `inputs` and `outputs` (in the order of the
// entry; they have a member `bound`) are bound. Does not allocate when all is
// well.
template <typename Slot>
Status CheckReady(const artifact::GraphEntry& entry, StepRows rows,
                  const std::vector<Slot>& inputs,
                  const std::vector<Slot>& outputs) {
  HX_RETURN_IF_ERROR(CheckRows(entry, rows));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].bound) return NotBound(entry, entry.inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].bound) return NotBound(entry, entry.outputs[i]);
  return OkStatus();
}

}  // namespace hexllm
