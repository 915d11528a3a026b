#include "backend/engine_checks.h"

#include <fmt/format.h>

namespace hexllm {
namespace {

// The cache's window may begin anywhere in its buffer; an evictor writes there.
size_t AlignmentOf(const artifact::GraphEntry& entry,
                   const artifact::IoSpec& spec) {
  const RoleKind kind = spec.role.kind;
  const bool writes_cache =
      entry.kind == GraphKind::kEvictor && kind == RoleKind::kKOut;
  return writes_cache || kind == RoleKind::kKIn || kind == RoleKind::kVIn
             ? GetDTypeInfo(spec.dtype).block_bytes
             : kBufferAlignment;
}

}  // namespace

Status CheckMemory(const artifact::GraphEntry& entry, IoDirection direction,
                   size_t index, std::span<const std::byte> memory) {
  const bool input = direction == IoDirection::kInput;
  const auto& specs = input ? entry.inputs : entry.outputs;
  if (index >= specs.size()) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("graph '{}' has {} {}, there is no number {}", entry.name,
                    specs.size(), input ? "inputs" : "outputs", index)};
  }
  const artifact::IoSpec& spec = specs[index];
  const auto bytes = StorageBytes(spec.dtype, spec.shape);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  const size_t alignment = AlignmentOf(entry, spec);
  if (bytes && memory.size() == *bytes && address % alignment == 0)
    return OkStatus();
  return Error{
      ErrorCode::kUsage,
      fmt::format("graph '{}': {} needs {} bytes at a multiple of {}, found {} "
                  "bytes at {:#x}",
                  entry.name, RoleToString(spec.role), bytes.value_or(0),
                  alignment, memory.size(), address)};
}

Status CheckRows(const artifact::GraphEntry& entry, StepRows rows) {
  if (rows.begin < entry.step_tokens) return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("graph '{}' has {} rows, none from row {} on",
                           entry.name, entry.step_tokens, rows.begin)};
}

Error NotBound(const artifact::GraphEntry& entry,
               const artifact::IoSpec& spec) {
  return Error{ErrorCode::kUsage,
               fmt::format("graph '{}': {} has no memory bound", entry.name,
                           RoleToString(spec.role))};
}

Status CheckTokenId(int32_t id, int64_t row, int64_t vocab) {
  if (id >= 0 && id < vocab) return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("token id {} of row {}: expected 0 to {}", id, row,
                           vocab - 1)};
}

}  // namespace hexllm
