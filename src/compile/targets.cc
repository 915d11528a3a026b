#include "compile/targets.h"

#include <fmt/format.h>

#include "backend/cpu/lower.h"

namespace hexllm {
namespace {

using LowerFn = Result<std::vector<artifact::GraphEntry>> (*)(
    const ir::Module&, artifact::SegmentSink&, ProgressSink&);

struct Target {
  std::string_view name;
  LowerFn lower;
};

constexpr Target kTargets[] = {
    {"cpu", cpu::Lower},
};

const Target* FindTarget(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace

Status CheckTarget(std::string_view target) {
  if (FindTarget(target) != nullptr) return OkStatus();
  std::string known;
  for (const Target& row : kTargets)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("--target: expected one of {}, found '{}'", known, target)};
}

Result<std::vector<artifact::GraphEntry>> LowerForTarget(
    std::string_view target, const ir::Module& module,
    artifact::SegmentSink& sink, ProgressSink& progress) {
  const Target* row = FindTarget(target);
  HX_CHECK(row != nullptr);
  return row->lower(module, sink, progress);
}

}  // namespace hexllm
