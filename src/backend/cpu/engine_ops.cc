#include "backend/cpu/engine_ops.h"

#include <iterator>

#include "backend/cpu/engine_split.h"
#include "base/check.h"

namespace hexllm::cpu {
namespace {

void RunRmsNorm(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const int64_t first = rows.begin * step.vectors;
  Split(context, rows.count() * step.vectors, step.width,
        [&](int64_t begin, int64_t end) {
          const int64_t at = (first + begin) * step.width;
          context.kernels.rms_norm({.x = step.In(0) + at,
                                    .weight = step.In(1),
                                    .out = step.Out() + at,
                                    .rows = end - begin,
                                    .width = step.width,
                                    .eps = step.eps,
                                    .weight_offset = step.weight_offset});
        });
}

void RunLayerNorm(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const int64_t first = rows.begin * step.vectors;
  Split(context, rows.count() * step.vectors, step.width,
        [&](int64_t begin, int64_t end) {
          const int64_t at = (first + begin) * step.width;
          context.kernels.layer_norm({.x = step.In(0) + at,
                                      .weight = step.In(1),
                                      .bias = step.In(2),
                                      .out = step.Out() + at,
                                      .rows = end - begin,
                                      .width = step.width,
                                      .eps = step.eps});
        });
}

void RunAdd(const Step& step, const RunContext& context) {
  SplitElements(step, context, 1, [&](int64_t at, int64_t n) {
    context.kernels.add(step.In(0) + at, step.In(1) + at, step.Out() + at, n);
  });
}

void RunMul(const Step& step, const RunContext& context) {
  SplitElements(step, context, 1, [&](int64_t at, int64_t n) {
    context.kernels.mul(step.In(0) + at, step.In(1) + at, step.Out() + at, n);
  });
}

void RunScale(const Step& step, const RunContext& context) {
  SplitElements(step, context, 1, [&](int64_t at, int64_t n) {
    context.kernels.scale(step.In(0) + at, step.factor, step.Out() + at, n);
  });
}

void RunActivate(const Step& step, const RunContext& context) {
  SplitElements(step, context, kActivationWork, [&](int64_t at, int64_t n) {
    context.kernels.activate(step.In(0) + at, step.Out() + at, n,
                             step.activation);
  });
}

void RunGatedMul(const Step& step, const RunContext& context) {
  SplitElements(step, context, kActivationWork, [&](int64_t at, int64_t n) {
    context.kernels.gated_mul(step.In(0) + at, step.In(1) + at, step.Out() + at,
                              n, step.activation);
  });
}

void RunSoftcap(const Step& step, const RunContext& context) {
  SplitElements(step, context, kActivationWork, [&](int64_t at, int64_t n) {
    context.kernels.softcap(step.In(0) + at, step.factor, step.Out() + at, n);
  });
}

// b is the same for every row.
void RunAddRow(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  Split(context, rows.count(), step.width, [&](int64_t begin, int64_t end) {
    for (int64_t r = rows.begin + begin; r < rows.begin + end; ++r) {
      const int64_t at = r * step.width;
      context.kernels.add(step.In(0) + at, step.In(1), step.Out() + at,
                          step.width);
    }
  });
}

// In the order of PlanOp.
constexpr RunFn kRun[] = {
    RunEmbed,        RunMatMul,        RunRmsNorm,          RunRope,
    RunStoreK,       RunStoreV,        RunAttention,        RunAdd,
    RunMul,          RunScale,         RunActivate,         RunGatedMul,
    RunSoftcap,      RunCopyRows,      RunDecode,           RunEncode,
    RunRound,        RunRoundF16,      RunQuantizeRows,     RunMatMulQ,
    RunRowCodes,     RunCodeMatMul,    RunBatchMatMul,      RunSoftmax,
    RunConcat,       RunTranspose,     RunAddRow,           RunLayerNorm,
    RunConvertCodes, RunConvertHalves, RunFixedPointMatMul, RunChipRmsNorm,
    RunChipSoftmax};
static_assert(std::size(kRun) == kNumPlanOps);

}  // namespace

RunFn FindRun(PlanOp op) {
  HX_CHECK(static_cast<size_t>(op) < std::size(kRun));
  return kRun[static_cast<size_t>(op)];
}

}  // namespace hexllm::cpu
