#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "artifact/format.h"
#include "artifact/validate.h"
#include "base/bytes.h"
#include "base/quote.h"

namespace hexllm::artifact {
namespace {

// No buffer of a step comes near it; a damaged shape does.
constexpr uint64_t kMaxIoBytes = uint64_t{1} << 36;

// Axes of each role, one letter each. T, C, P = C - T, V have the sizes that
// manifest.h gives them; R = rows of the logits, H = half_dim of the RoPE
// table, E = width of the embedding table. Other letters (G, D, M) may be any
// size. Empty: any shape.
struct RoleRule {
  RoleKind kind;
  std::string_view axes;
};

constexpr RoleRule kRules[] = {
    {RoleKind::kToken, "T"},     {RoleKind::kEmbedding, "TE"},
    {RoleKind::kRopeCos, "TH"},  {RoleKind::kRopeSin, "TH"},
    {RoleKind::kMask, "TC"},     {RoleKind::kKIn, "GDP"},
    {RoleKind::kVIn, "GPD"},     {RoleKind::kLogits, "RV"},
    {RoleKind::kKOut, "GDT"},    {RoleKind::kVOut, "GTD"},
    {RoleKind::kHiddenIn, "TM"}, {RoleKind::kHiddenOut, "TM"},
    {RoleKind::kTap, ""},
};

std::string_view AxesOf(RoleKind kind) {
  for (const RoleRule& rule : kRules) {
    if (rule.kind == kind) return rule.axes;
  }
  return "";
}

bool IsCache(RoleKind kind) {
  return kind == RoleKind::kKIn || kind == RoleKind::kVIn ||
         kind == RoleKind::kKOut || kind == RoleKind::kVOut;
}

// An integer type that holds codes of an encoding, with its range.
struct CodeType {
  DType dtype;
  int32_t least;
  int32_t most;
};

constexpr CodeType kCodeTypes[] = {{DType::kI8, -128, 127},
                                   {DType::kU8, 0, 255},
                                   {DType::kI16, -32768, 32767},
                                   {DType::kU16, 0, 65535}};

const CodeType* FindCodeType(DType dtype) {
  for (const CodeType& type : kCodeTypes) {
    if (type.dtype == dtype) return &type;
  }
  return nullptr;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

class GraphValidator {
 public:
  GraphValidator(const Manifest& manifest, const GraphEntry& graph)
      : manifest_(manifest), graph_(graph) {}

  Status Run() const {
    HX_RETURN_IF_ERROR(CheckHead());
    HX_RETURN_IF_ERROR(CheckIos(graph_.inputs, true));
    return CheckIos(graph_.outputs, false);
  }

 private:
  Status CheckHead() const;
  Status CheckProgram() const;
  Status CheckIos(const std::vector<IoSpec>& ios, bool inputs) const;
  Status CheckIo(const IoSpec& io) const;
  Status CheckIndex(const Role& role) const;
  Status CheckType(const IoSpec& io) const;
  Status CheckEncoding(const IoSpec& io) const;
  Status CheckMaskCodes(const IoSpec& io) const;
  Status CheckShape(const IoSpec& io) const;
  std::optional<int64_t> AxisSize(char axis, const Role& role) const;
  std::string ExpectedShape(const Role& role) const;

  const Manifest& manifest_;
  const GraphEntry& graph_;
};

Status GraphValidator::CheckHead() const {
  if (graph_.name.empty() || graph_.name.size() > kMaxNameBytes) {
    return Invalid("the name is empty or too long");
  }
  if (graph_.context_tokens != manifest_.context_tokens) {
    return Invalid(
        fmt::format("expected the artifact's context length {}, "
                    "found {}",
                    manifest_.context_tokens, graph_.context_tokens));
  }
  if (graph_.step_tokens < 1 || graph_.step_tokens > graph_.context_tokens) {
    return Invalid(fmt::format("expected steps of 1 to {} tokens, found {}",
                               graph_.context_tokens, graph_.step_tokens));
  }
  return CheckProgram();
}

Status GraphValidator::CheckProgram() const {
  if (graph_.backend == "cpu") {
    if (graph_.simulator_program)
      return Invalid("it has a simulator program and is for the CPU");
    return ValidateReference(manifest_, graph_.program, SegmentKind::kCpuPlan,
                             "program");
  }
  if (graph_.backend == "htp") {
    HX_RETURN_IF_ERROR(ValidateReference(manifest_, graph_.program,
                                         SegmentKind::kQnnContext, "program"));
    if (!graph_.simulator_program) return OkStatus();
    return ValidateReference(manifest_, *graph_.simulator_program,
                             SegmentKind::kQnnContext, "simulator program");
  }
  return Invalid(fmt::format("backend: expected cpu or htp, found {}",
                             Quoted(graph_.backend)));
}

Status GraphValidator::CheckIos(const std::vector<IoSpec>& ios,
                                bool inputs) const {
  std::set<std::tuple<RoleKind, int32_t, std::string>> seen;
  for (const IoSpec& io : ios) {
    const std::string where = Printable(RoleToString(io.role));
    if (IsInputRole(io.role.kind) != inputs) {
      return Invalid(
          fmt::format("{} is no {}", where, inputs ? "input" : "output"));
    }
    if (!seen.emplace(io.role.kind, io.role.index, io.role.name).second) {
      return Invalid(where + " is listed twice");
    }
    Status status = CheckIo(io);
    if (!status.ok()) return std::move(status).error().With(where);
  }
  return OkStatus();
}

Status GraphValidator::CheckIo(const IoSpec& io) const {
  HX_RETURN_IF_ERROR(CheckIndex(io.role));
  HX_RETURN_IF_ERROR(CheckType(io));
  HX_RETURN_IF_ERROR(CheckEncoding(io));
  HX_RETURN_IF_ERROR(CheckMaskCodes(io));
  return CheckShape(io);
}

Status GraphValidator::CheckIndex(const Role& role) const {
  size_t count = 1;
  if (role.kind == RoleKind::kRopeCos || role.kind == RoleKind::kRopeSin) {
    count = manifest_.rope_tables.size();
  } else if (role.kind == RoleKind::kMask) {
    count = manifest_.mask_windows.size();
  } else if (IsCache(role.kind)) {
    count = manifest_.layers;
  } else if (role.kind == RoleKind::kEmbedding && !manifest_.embedding) {
    return Invalid("the artifact has no embedding table");
  }
  if (role.index < 0 || static_cast<size_t>(role.index) >= count) {
    return Invalid(
        fmt::format("index {}: the artifact has {}", role.index, count));
  }
  const bool named = !role.name.empty();
  if (named != (role.kind == RoleKind::kTap) ||
      role.name.size() > kMaxNameBytes) {
    return Invalid("a tap needs a name, and nothing else has one");
  }
  return OkStatus();
}

Status GraphValidator::CheckType(const IoSpec& io) const {
  const bool legal =
      io.role.kind == RoleKind::kToken
          ? io.dtype == DType::kI32
          : IsFloat(io.dtype) || FindCodeType(io.dtype) != nullptr;
  if (legal) return OkStatus();
  return Invalid(
      fmt::format("unexpected element type {}", DTypeName(io.dtype)));
}

Status GraphValidator::CheckEncoding(const IoSpec& io) const {
  const CodeType* type = FindCodeType(io.dtype);
  // A mask says its two codes itself.
  const bool optional = io.role.kind == RoleKind::kMask;
  if (!io.encoding) {
    if (type == nullptr || optional) return OkStatus();
    return Invalid(fmt::format("{} needs an encoding", DTypeName(io.dtype)));
  }
  if (type == nullptr) {
    return Invalid(fmt::format("{} has no encoding", DTypeName(io.dtype)));
  }
  const IoEncoding& encoding = *io.encoding;
  if (!std::isfinite(encoding.scale) || encoding.scale <= 0 ||
      encoding.zero_point < type->least || encoding.zero_point > type->most) {
    return Invalid(fmt::format("bad encoding: scale {}, zero point {} of {}",
                               encoding.scale, encoding.zero_point,
                               DTypeName(io.dtype)));
  }
  return OkStatus();
}

Status GraphValidator::CheckMaskCodes(const IoSpec& io) const {
  if (io.role.kind != RoleKind::kMask) {
    if (io.mask_visible == 0 && io.mask_hidden == 0) return OkStatus();
    return Invalid("it has mask codes and is no mask");
  }
  const uint32_t bits = GetDTypeInfo(io.dtype).block_bytes * 8;
  const uint64_t most = (uint64_t{1} << bits) - 1;
  if (io.mask_visible != io.mask_hidden && io.mask_visible <= most &&
      io.mask_hidden <= most) {
    return OkStatus();
  }
  return Invalid(
      fmt::format("expected two different {} codes for visible and "
                  "hidden, found {} and {}",
                  DTypeName(io.dtype), io.mask_visible, io.mask_hidden));
}

std::optional<int64_t> GraphValidator::AxisSize(char axis,
                                                const Role& role) const {
  // Its k_in are the T columns that it rotates.
  if (graph_.kind == GraphKind::kEvictor && axis == 'P') axis = 'T';
  switch (axis) {
    case 'T':
      return graph_.step_tokens;
    case 'C':
      return graph_.context_tokens;
    case 'P':
      return graph_.context_tokens - graph_.step_tokens;
    case 'V':
      return manifest_.vocab_size;
    case 'R':
      return graph_.logits_rows == LogitsRows::kAll ? graph_.step_tokens : 1;
    case 'E':
      return manifest_.embedding->width;
    case 'H':
      return manifest_.rope_tables[static_cast<size_t>(role.index)].half_dim;
    default:
      return std::nullopt;
  }
}

std::string GraphValidator::ExpectedShape(const Role& role) const {
  std::string out = "[";
  for (const char axis : AxesOf(role.kind)) {
    if (out.size() > 1) out += ',';
    const auto size = AxisSize(axis, role);
    out += size ? std::to_string(*size) : std::string(1, axis);
  }
  return out + "]";
}

Status GraphValidator::CheckShape(const IoSpec& io) const {
  const std::string_view axes = AxesOf(io.role.kind);
  bool fits = axes.empty() || io.shape.size() == axes.size();
  for (size_t i = 0; fits && i < io.shape.size(); ++i) {
    const auto size = axes.empty() ? std::nullopt : AxisSize(axes[i], io.role);
    fits = size ? io.shape[i] == *size : io.shape[i] >= 1;
  }
  if (!fits) {
    return Invalid(fmt::format("expected shape {}, found {}",
                               ExpectedShape(io.role),
                               ShapeToString(io.shape)));
  }
  const auto bytes = StorageBytes(io.dtype, io.shape);
  if (!bytes || *bytes > kMaxIoBytes) {
    return Invalid(
        fmt::format("shape {} is too large", ShapeToString(io.shape)));
  }
  return OkStatus();
}

}  // namespace

Status ValidateGraph(const Manifest& manifest, const GraphEntry& graph) {
  return GraphValidator(manifest, graph).Run();
}

}  // namespace hexllm::artifact
