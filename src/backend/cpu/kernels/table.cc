// The kernel tables. Every instruction set has a kernel for every weight type
// (weight_types.def) and every op, so no entry falls back to another set. The
// sets that add integer dot products to another one share all else with it.
#include "backend/cpu/engine.h"
#include "backend/cpu/kernels/isa_kernels.h"
#include "backend/cpu/kernels/panel.h"
#include "base/dtype.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace hexllm::cpu {
namespace {

// All entries but those of Dots and matmul, from the functions in namespace
// `ns`.
#define HX_OPS(ns)                                                           \
  .rms_norm = ns::RmsNorm, .layer_norm = ns::LayerNorm, .rope = ns::Rope,    \
  .attention = ns::Attention, .add = ns::Add, .mul = ns::Mul,                \
  .scale = ns::Scale, .activate = ns::Activate, .gated_mul = ns::GatedMul,   \
  .softcap = ns::Softcap, .matmul_q = {}, .quantize_rows = ns::QuantizeRows, \
  .code_matmul = nullptr, .round_codes = ns::RoundCodes,                     \
  .round_f16 = ns::RoundF16, .softmax = ns::Softmax,                         \
  .chip_softmax = ns::ChipSoftmax, .batch_matmul = ns::BatchMatMul

// The kernels that are made of integer dot products.
struct Dots {
  Isa isa;
  MatMulQFn q4_1;
  MatMulQFn q8_0;
  void (*code_matmul)(const CodeMatMulArgs&);
};
#define HX_DOTS(isa, ns) \
  Dots { isa, ns::MatMulQ4_1Q, ns::MatMulQ8_0Q, ns::CodeMatMul }

constexpr KernelTable WithDots(KernelTable table, const Dots& dots) {
  table.isa = dots.isa;
  table.matmul_q[static_cast<size_t>(DType::kQ4_1)] = dots.q4_1;
  table.matmul_q[static_cast<size_t>(DType::kQ8_0)] = dots.q8_0;
  table.code_matmul = dots.code_matmul;
  return table;
}

struct MatMulEntry {
  DType dtype;
  MatMulFn function;
};

// `table` with the matmul of each weight type.
template <size_t kCount>
constexpr KernelTable WithMatMul(KernelTable table,
                                 const MatMulEntry (&entries)[kCount]) {
  for (const MatMulEntry& entry : entries) {
    table.matmul[static_cast<size_t>(entry.dtype)] = entry.function;
  }
  return table;
}

#define HX_WEIGHT_TYPE(name) {DType::k##name, ref::MatMul##name},
constexpr MatMulEntry kRefMatMul[] = {
#include "backend/cpu/kernels/weight_types.def"
};
#undef HX_WEIGHT_TYPE
constexpr KernelTable kRef = WithDots(
    WithMatMul({.isa = Isa::kScalar, .matmul = {}, HX_OPS(ref)}, kRefMatMul),
    HX_DOTS(Isa::kScalar, ref));

#if defined(__x86_64__)

#define HX_WEIGHT_TYPE(name) {DType::k##name, avx2::MatMul##name},
constexpr MatMulEntry kAvx2MatMul[] = {
#include "backend/cpu/kernels/weight_types.def"
};
#undef HX_WEIGHT_TYPE
constexpr KernelTable kAvx2 = WithDots(
    WithMatMul({.isa = Isa::kAvx2, .matmul = {}, HX_OPS(avx2)}, kAvx2MatMul),
    HX_DOTS(Isa::kAvx2, avx2));

#define HX_WEIGHT_TYPE(name) {DType::k##name, avx512::MatMul##name},
constexpr MatMulEntry kAvx512MatMul[] = {
#include "backend/cpu/kernels/weight_types.def"
};
#undef HX_WEIGHT_TYPE
constexpr KernelTable kAvx512 =
    WithDots(WithMatMul({.isa = Isa::kAvx512, .matmul = {}, HX_OPS(avx512)},
                        kAvx512MatMul),
             HX_DOTS(Isa::kAvx512, avx512));
constexpr KernelTable kAvx512Vnni =
    WithDots(kAvx512, HX_DOTS(Isa::kAvx512Vnni, avx512vnni));

// The compilers' checks include that the operating system saves the registers.
bool HasAvx2() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool has_f16c =
      __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return has_f16c && __builtin_cpu_supports("avx2") &&
         __builtin_cpu_supports("fma");
}

bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
}

bool HasAvx512Vnni() {
  return HasAvx512() && __builtin_cpu_supports("avx512vnni");
}

const KernelTable* FindNative(Isa isa) {
  if (isa == Isa::kAvx2 && HasAvx2()) return &kAvx2;
  if (isa == Isa::kAvx512 && HasAvx512()) return &kAvx512;
  if (isa == Isa::kAvx512Vnni && HasAvx512Vnni()) return &kAvx512Vnni;
  return nullptr;
}

#elif defined(__aarch64__)

#define HX_WEIGHT_TYPE(name) {DType::k##name, neon::MatMul##name},
constexpr MatMulEntry kNeonMatMul[] = {
#include "backend/cpu/kernels/weight_types.def"
};
#undef HX_WEIGHT_TYPE
constexpr KernelTable kNeon = WithDots(
    WithMatMul({.isa = Isa::kNeon, .matmul = {}, HX_OPS(neon)}, kNeonMatMul),
    HX_DOTS(Isa::kNeon, neon));
constexpr KernelTable kNeonDot =
    WithDots(kNeon, HX_DOTS(Isa::kNeonDot, neondot));

// The dot product instructions of Armv8.2 (FEAT_DotProd), as the kernel reports
// them; elsewhere than on Linux (and Android) nobody is asked.
bool HasDotProduct() {
#if defined(__linux__)
  constexpr unsigned long kAsimdDp = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kAsimdDp) != 0;
#else
  return false;
#endif
}

const KernelTable* FindNative(Isa isa) {
  if (isa == Isa::kNeonDot && HasDotProduct()) return &kNeonDot;
  return isa == Isa::kNeon ? &kNeon : nullptr;
}

#else

const KernelTable* FindNative(Isa) { return nullptr; }

#endif

}  // namespace

int64_t MatMulScratchFloats(int64_t k) { return MatMulScratch(k); }

int64_t AttentionScratchFloats(int64_t group, int64_t past, int64_t step) {
  return group * ScoreStride(past + step);
}

const KernelTable* FindKernels(Isa isa) {
  return isa == Isa::kScalar ? &kRef : FindNative(isa);
}

const KernelTable& BestKernels() {
  for (const Isa isa : {Isa::kNeonDot, Isa::kNeon, Isa::kAvx512Vnni,
                        Isa::kAvx512, Isa::kAvx2}) {
    const KernelTable* table = FindKernels(isa);
    if (table != nullptr) return *table;
  }
  return kRef;
}

}  // namespace hexllm::cpu
