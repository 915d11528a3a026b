#include "backend/lower_entry.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <utility>

#include "ir/encode.h"

namespace hexllm {
namespace {

using artifact::GraphEntry;
using artifact::IoSpec;
using ir::Encoding;

// The lowest f16 number.
constexpr uint64_t kHiddenF16 = 0xfbff;

int32_t ZeroPoint(const Encoding& encoding) {
  return encoding.zero_points.empty() ? 0 : encoding.zero_points[0];
}

Status SetMaskCodes(const std::optional<Encoding>& encoding, IoSpec& spec) {
  if (!encoding) {
    // Added to the scores.
    spec.mask_visible = std::bit_cast<uint32_t>(0.0f);
    spec.mask_hidden =
        std::bit_cast<uint32_t>(-std::numeric_limits<float>::infinity());
    return OkStatus();
  }
  if (encoding->dtype == DType::kF16) {
    spec.mask_visible = 0;
    spec.mask_hidden = kHiddenF16;
    return OkStatus();
  }
  const ir::CodeRange range = CodesOf(*encoding);
  if (range.least == 0 && ZeroPoint(*encoding) == range.most) {
    spec.mask_visible = static_cast<uint64_t>(range.most);
    spec.mask_hidden = 0;
    return OkStatus();
  }
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("{}: codes from {} to {} with zero point {}; of a mask, the "
                  "highest code stands for 0 and code 0 hides a column",
                  RoleToString(spec.role), range.least, range.most,
                  ZeroPoint(*encoding))};
}

Result<LogitsRows> FindLogitsRows(const ir::Graph& graph) {
  const ir::ValueId logits = graph.FindIo({.kind = RoleKind::kLogits});
  if (!logits.valid()) return LogitsRows::kNone;
  const int64_t rows = graph.type(logits).shape[0];
  if (rows == graph.step_tokens) return LogitsRows::kAll;
  if (rows == 1) return LogitsRows::kLast;
  return Error{ErrorCode::kUnsupported,
               fmt::format("graph '{}': logits of {} of {} rows; expected all "
                           "rows or the last one",
                           graph.name, rows, graph.step_tokens)};
}

}  // namespace

Result<IoSpec> MakeIoSpec(const ir::Graph& graph, const ir::GraphIo& io) {
  const ir::Value& value = graph[io.value];
  IoSpec spec;
  spec.role = io.role;
  spec.dtype = value.encoding ? value.encoding->dtype : value.type.dtype;
  spec.shape = value.type.shape;
  if (value.encoding && HasCodes(*value.encoding)) {
    spec.encoding = {.scale = value.encoding->scales[0],
                     .zero_point = ZeroPoint(*value.encoding)};
  }
  if (io.role.kind == RoleKind::kMask) {
    HX_RETURN_IF_ERROR(SetMaskCodes(value.encoding, spec));
  }
  return spec;
}

Result<GraphEntry> MakeEntry(const ir::Graph& graph, std::string_view backend) {
  GraphEntry entry;
  entry.name = graph.name;
  entry.kind = graph.kind;
  entry.step_tokens = static_cast<uint32_t>(graph.step_tokens);
  entry.context_tokens = static_cast<uint32_t>(graph.context_tokens);
  entry.shard = graph.shard;
  entry.backend = backend;
  HX_ASSIGN_OR_RETURN(entry.logits_rows, FindLogitsRows(graph));
  for (const ir::GraphIo& io : graph.inputs) {
    HX_ASSIGN_OR_RETURN(IoSpec spec, MakeIoSpec(graph, io));
    entry.inputs.push_back(std::move(spec));
  }
  for (const ir::GraphIo& io : graph.outputs) {
    HX_ASSIGN_OR_RETURN(IoSpec spec, MakeIoSpec(graph, io));
    entry.outputs.push_back(std::move(spec));
  }
  return entry;
}

}  // namespace hexllm
