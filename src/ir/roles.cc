#include "ir/roles.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/quote.h"
#include "ir/axes.h"

namespace hexllm::ir {
namespace {

// What a role's tensors look like. Roles of one group and index share their
// axes; kTap has any shape.
struct RoleSpec {
  RoleKind kind;
  std::string_view axes;
  Elem elem;
  enum class Group { kAlone, kLayer, kRope } group;
};

constexpr RoleSpec kRoleSpecs[] = {
    {RoleKind::kToken, "T", Elem::kIndex, RoleSpec::Group::kAlone},
    {RoleKind::kEmbedding, "TM", Elem::kActivation, RoleSpec::Group::kAlone},
    {RoleKind::kRopeCos, "Tr", Elem::kActivation, RoleSpec::Group::kRope},
    {RoleKind::kRopeSin, "Tr", Elem::kActivation, RoleSpec::Group::kRope},
    {RoleKind::kMask, "TC", Elem::kActivation, RoleSpec::Group::kAlone},
    {RoleKind::kKIn, "GDP", Elem::kActivation, RoleSpec::Group::kLayer},
    {RoleKind::kVIn, "GPD", Elem::kActivation, RoleSpec::Group::kLayer},
    {RoleKind::kLogits, "NV", Elem::kActivation, RoleSpec::Group::kAlone},
    {RoleKind::kKOut, "GDT", Elem::kActivation, RoleSpec::Group::kLayer},
    {RoleKind::kVOut, "GTD", Elem::kActivation, RoleSpec::Group::kLayer},
    {RoleKind::kHiddenIn, "TM", Elem::kActivation, RoleSpec::Group::kAlone},
    {RoleKind::kHiddenOut, "TM", Elem::kActivation, RoleSpec::Group::kAlone},
    {RoleKind::kTap, ".", Elem::kActivation, RoleSpec::Group::kAlone},
};

const RoleSpec* FindSpec(RoleKind kind) {
  for (const RoleSpec& spec : kRoleSpecs) {
    if (spec.kind == kind) return &spec;
  }
  return nullptr;
}

// Printable: a tap's name may be anything.
std::string RoleText(const Role& role) { return Printable(RoleToString(role)); }

Error RoleError(const Role& role, std::string_view problem) {
  return Error{ErrorCode::kBadInput,
               fmt::format("{}: {}", RoleText(role), problem)};
}

// Checks shapes role by role, remembering the axes of layers and rope tables.
class ShapeChecker {
 public:
  explicit ShapeChecker(const Graph& graph) : graph_(graph) {
    graph_axes_.Bind('T', graph.step_tokens);
    graph_axes_.Bind('C', graph.context_tokens);
    // An evictor reads the columns that it rotates.
    graph_axes_.Bind('P', graph.kind == GraphKind::kEvictor
                              ? graph.step_tokens
                              : graph.context_tokens - graph.step_tokens);
  }

  Status Check(const GraphIo& io) {
    const RoleSpec* spec = FindSpec(io.role.kind);
    if (spec == nullptr)
      return Error{ErrorCode::kBadInput, "a role has no shape rule"};
    const std::string name = RoleText(io.role);
    const TensorType& type = graph_.type(io.value);
    HX_RETURN_IF_ERROR(
        AxesOf(*spec, io.role.index)
            .Match({.name = name, .axes = spec->axes, .elem = spec->elem},
                   type));
    if (io.role.kind == RoleKind::kLogits &&
        type.shape[0] > graph_.step_tokens) {
      return RoleError(io.role,
                       fmt::format("expected at most T={} rows, found {}",
                                   graph_.step_tokens, type.shape[0]));
    }
    return OkStatus();
  }

 private:
  Axes& AxesOf(const RoleSpec& spec, int32_t index) {
    switch (spec.group) {
      case RoleSpec::Group::kLayer:
        return layers_.try_emplace(index, graph_axes_).first->second;
      case RoleSpec::Group::kRope:
        return ropes_.try_emplace(index, graph_axes_).first->second;
      case RoleSpec::Group::kAlone:
        break;
    }
    alone_ = graph_axes_;
    return alone_;
  }

  const Graph& graph_;
  Axes graph_axes_;
  Axes alone_;
  std::map<int32_t, Axes> layers_;
  std::map<int32_t, Axes> ropes_;
};

Status CheckRole(const Role& role, bool is_input) {
  if (IsInputRole(role.kind) != is_input) {
    return RoleError(role, is_input ? "an output's role on an input"
                                    : "an input's role on an output");
  }
  if (role.index < 0 || (role.index != 0 && !IsIndexedRole(role.kind))) {
    return RoleError(role, fmt::format("bad index {}", role.index));
  }
  if (role.name.empty() == (role.kind == RoleKind::kTap)) {
    return RoleError(role, "a tap needs a name, other roles have none");
  }
  return OkStatus();
}

// Checks one list, noting its roles in `seen`.
Status CheckList(const std::vector<GraphIo>& list, bool is_input,
                 ShapeChecker& shapes, std::map<std::string, int>& seen) {
  for (const GraphIo& io : list) {
    HX_RETURN_IF_ERROR(CheckRole(io.role, is_input));
    if (++seen[RoleToString(io.role)] > 1)
      return RoleError(io.role, "the role occurs twice");
    HX_RETURN_IF_ERROR(shapes.Check(io));
  }
  return OkStatus();
}

}  // namespace

Status CheckRoles(const Graph& graph) {
  ShapeChecker shapes(graph);
  std::map<std::string, int> seen;
  HX_RETURN_IF_ERROR(CheckList(graph.inputs, true, shapes, seen));
  return CheckList(graph.outputs, false, shapes, seen);
}

}  // namespace hexllm::ir
