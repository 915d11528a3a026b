#include "compile/targets.h"

#include <fmt/format.h>

#include "backend/cpu/lower.h"
#include "backend/htp/lower_rounding.h"

namespace hexllm {
namespace {

using LowerFn = Result<std::vector<artifact::GraphEntry>> (*)(
    const TargetOptions&, const ir::Module&, artifact::SegmentSink&,
    ProgressSink&);

Result<std::vector<artifact::GraphEntry>> LowerCpu(const TargetOptions&,
                                                   const ir::Module& module,
                                                   artifact::SegmentSink& sink,
                                                   ProgressSink& progress) {
  return cpu::Lower(module, sink, progress);
}

htp::LowerOptions HtpOptions(const TargetOptions& target) {
  return {.soc = target.soc,
          .lib_dir = target.qnn_lib_dir,
          .use = target.use,
          .cache = target.cache,
          .max_memory = target.max_memory,
          .release_weights = target.release_weights};
}

Result<std::vector<artifact::GraphEntry>> LowerHtp(const TargetOptions& target,
                                                   const ir::Module& module,
                                                   artifact::SegmentSink& sink,
                                                   ProgressSink& progress) {
  return htp::Lower(module, HtpOptions(target), sink, progress);
}

Status CheckNothing(const TargetOptions&) { return OkStatus(); }
Status CheckHtp(const TargetOptions& target) {
  return htp::CheckTarget(HtpOptions(target));
}

Status FitsAlways(const TargetOptions&, const ir::Module&) {
  return OkStatus();
}
Status FitsHtp(const TargetOptions& target, const ir::Module& module) {
  return htp::CheckSize(module, HtpOptions(target));
}

struct Target {
  std::string_view name;
  bool needs_static_recipe;
  models::EmbeddingPlace embedding;
  Status (*check)(const TargetOptions&);
  Status (*check_size)(const TargetOptions&, const ir::Module&);
  LowerFn lower;
};

constexpr Target kTargets[] = {
    {"cpu", false, models::EmbeddingPlace::kGraph, CheckNothing, FitsAlways,
     LowerCpu},
    {"htp", true, models::EmbeddingPlace::kHost, CheckHtp, FitsHtp, LowerHtp},
};

const Target* FindTarget(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

const Target& TargetOf(const TargetOptions& options) {
  const Target* row = FindTarget(options.name);
  HX_CHECK(row != nullptr);
  return *row;
}

}  // namespace

Status CheckTarget(const TargetOptions& target) {
  if (const Target* row = FindTarget(target.name)) return row->check(target);
  std::string known;
  for (const Target& row : kTargets)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  return Error{ErrorCode::kUsage,
               fmt::format("--target: expected one of {}, found '{}'", known,
                           target.name)};
}

Status CheckTargetSize(const TargetOptions& target, const ir::Module& module) {
  return TargetOf(target).check_size(target, module);
}

Result<Digest> TargetDigest(const TargetOptions& target) {
  HX_CHECK(target.name == "htp");
  return htp::TargetDigest(HtpOptions(target));
}

models::EmbeddingPlace DefaultEmbedding(const TargetOptions& target) {
  return TargetOf(target).embedding;
}

bool HasHalf(const TargetOptions& target) {
  const auto soc = htp::FindSoc(target.soc);
  return soc.ok() && htp::RequireFeature(*soc, htp::Feature::kHalf).ok();
}

bool NeedsStaticRecipe(const TargetOptions& target) {
  return TargetOf(target).needs_static_recipe;
}

void ModelRounding(const TargetOptions& target, ir::Module& module) {
  const auto soc = htp::FindSoc(target.soc);
  if (soc.ok() && !NeedsStaticRecipe(target)) htp::ModelRounding(module, *soc);
}

Result<std::vector<artifact::GraphEntry>> LowerForTarget(
    const TargetOptions& target, const ir::Module& module,
    artifact::SegmentSink& sink, ProgressSink& progress) {
  return TargetOf(target).lower(target, module, sink, progress);
}

}  // namespace hexllm
