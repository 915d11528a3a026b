#include "passes/pipeline.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/quote.h"
#include "ir/verify.h"
#include "passes/convert_kv.h"
#include "passes/dead_code.h"
#include "passes/decompose_attention.h"
#include "passes/fold_scale.h"
#include "passes/fuse_gated_mul.h"
#include "passes/fuse_linear_add.h"
#include "passes/simplify_reshape.h"

namespace hexllm {
namespace {

constexpr Pass kConvertKv = {"convert_kv", ConvertKv};
constexpr Pass kDeadCode = {"dead_code", RemoveDeadCode};
constexpr Pass kDecomposeAttention = {"decompose_attention",
                                      DecomposeAttention};
constexpr Pass kFoldScale = {"fold_scale", FoldScale};
constexpr Pass kFuseGatedMul = {"fuse_gated_mul", FuseGatedMul};
constexpr Pass kFuseLinearAdd = {"fuse_linear_add", FuseLinearAdd};
constexpr Pass kSimplifyReshape = {"simplify_reshape", SimplifyReshape};

constexpr Pass kAllPasses[] = {
    kConvertKv,    kDeadCode,      kDecomposeAttention, kFoldScale,
    kFuseGatedMul, kFuseLinearAdd, kSimplifyReshape};

// Dead readers would hide single uses from the fusions: they go first. Every
// pass removes what it made dead.
constexpr Pass kCpuPasses[] = {kDeadCode, kSimplifyReshape, kFoldScale,
                               kFuseGatedMul, kFuseLinearAdd};

// Attention is taken apart before the caches are converted: its concats then
// read the converted values. Nothing is fused: each value has an encoding.
constexpr Pass kHtpPasses[] = {kDeadCode, kSimplifyReshape, kFoldScale,
                               kDecomposeAttention, kConvertKv};

struct TargetRow {
  std::string_view target;
  std::span<const Pass> passes;
};

constexpr TargetRow kTargets[] = {{"cpu", kCpuPasses}, {"htp", kHtpPasses}};

// A pass broke the module: the message is all that helps to find out why.
void CheckValid(const ir::Module& module, std::string_view pass) {
  const Status status = ir::Verify(module);
  if (status.ok()) return;
  CheckFailed(
      __FILE__, __LINE__,
      fmt::format("after pass {}: {}", pass, status.error().message).c_str());
}

Status Show(const PipelineOptions& options, const PassStage& stage,
            const ir::Module& module) {
  return options.dump ? options.dump(stage, module) : OkStatus();
}

}  // namespace

std::span<const Pass> AllPasses() { return kAllPasses; }

Result<std::span<const Pass>> PassesOf(std::string_view target) {
  std::string known;
  for (const TargetRow& row : kTargets) {
    if (row.target == target) return row.passes;
    known += known.empty() ? "" : ", ";
    known += row.target;
  }
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("no passes for target {}; known: {}", Quoted(target), known)};
}

Status RunPipeline(ir::Module& module, std::string_view target,
                   const PipelineOptions& options) {
  HX_ASSIGN_OR_RETURN(const std::span<const Pass> passes, PassesOf(target));
  HX_RETURN_IF_ERROR(ir::Verify(module));
  PassStage stage{.index = 0, .pass = "input"};
  HX_RETURN_IF_ERROR(Show(options, stage, module));
  for (const Pass& pass : passes) {
    stage = {.index = stage.index + 1, .pass = pass.name};
    HX_RETURN_IF_ERROR(pass.run(module));
    CheckValid(module, pass.name);
    HX_RETURN_IF_ERROR(Show(options, stage, module));
  }
  return OkStatus();
}

}  // namespace hexllm
