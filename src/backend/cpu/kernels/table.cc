// The kernel tables. Every instruction set has a kernel for every weight type
// (weight_types.def) and every op, so no entry falls back to another set.
#include "backend/cpu/engine.h"
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/panel.h"
#include "base/dtype.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hexllm::cpu {
namespace {

// All entries but matmul, from the functions in namespace `ns`.
#define HX_OPS(ns)                                                       \
  .rms_norm = ns::RmsNorm, .rope = ns::Rope, .attention = ns::Attention, \
  .add = ns::Add, .mul = ns::Mul, .scale = ns::Scale,                    \
  .activate = ns::Activate, .gated_mul = ns::GatedMul, .softcap = ns::Softcap

constexpr KernelTable RefTable() {
  KernelTable table = {.isa = Isa::kScalar, .matmul = {}, HX_OPS(ref)};
#define HX_WEIGHT_TYPE(name) \
  table.matmul[static_cast<size_t>(DType::k##name)] = ref::MatMul##name;
#include "backend/cpu/kernels/weight_types.def"
#undef HX_WEIGHT_TYPE
  return table;
}
constexpr KernelTable kRefTable = RefTable();

}  // namespace

int64_t MatMulScratchFloats(int64_t k) {
  return PanelRows(k) * PaddedK(k) + PanelLanes(k);
}

int64_t AttentionScratchFloats(int64_t group, int64_t past, int64_t step) {
  return group * PaddedK(past + step);
}

const KernelTable* FindKernels(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return &kRefTable;
    case Isa::kAvx2:
    case Isa::kAvx512:
    case Isa::kNeon:
      return nullptr;
  }
  return nullptr;
}

const KernelTable& BestKernels() {
  for (const Isa isa : {Isa::kNeon, Isa::kAvx512, Isa::kAvx2}) {
    const KernelTable* table = FindKernels(isa);
    if (table != nullptr) return *table;
  }
  return kRefTable;
}

}  // namespace hexllm::cpu
