#include <gtest/gtest.h>

#include "base/dequantize.h"
#include "tests/support/kernel_cases.h"

namespace hexllm::cpu::testing {
namespace {

std::vector<const KernelTable*> AllKernels() {
  std::vector<const KernelTable*> tables = VectorKernels();
  tables.push_back(&ScalarKernels());
  return tables;
}

TEST(KernelTable, ScalarIsAlwaysThere) {
  ASSERT_NE(FindKernels(Isa::kScalar), nullptr);
  EXPECT_EQ(FindKernels(Isa::kScalar)->isa, Isa::kScalar);
}

TEST(KernelTable, BestIsAvailable) {
  const KernelTable& best = BestKernels();
  EXPECT_EQ(FindKernels(best.isa), &best);
}

TEST(KernelTable, NeverOfAnotherArchitecture) {
  EXPECT_TRUE(FindKernels(Isa::kNeon) == nullptr ||
              FindKernels(Isa::kAvx2) == nullptr);
  if (FindKernels(Isa::kAvx512) != nullptr) {
    EXPECT_NE(FindKernels(Isa::kAvx2), nullptr);
  }
}

// A weight type is one that DequantizeRow takes and that a model stores: all
// but f64. Integers and bool have no entry.
TEST(KernelTable, HasEveryWeightTypeAndNoOther) {
  for (const KernelTable* table : AllKernels()) {
    for (const DTypeInfo& info : AllDTypes()) {
      const bool weight = IsFloatLike(info.dtype) && info.dtype != DType::kF64;
      EXPECT_EQ(table->matmul[static_cast<size_t>(info.dtype)] != nullptr,
                weight)
          << IsaName(table->isa) << " " << info.name;
      EXPECT_EQ(std::ranges::count(kWeightTypes, info.dtype), weight ? 1 : 0)
          << info.name;
    }
  }
}

TEST(KernelTable, RoundsActivationsForQ4_1AndQ8_0) {
  for (const KernelTable* table : AllKernels()) {
    for (const DTypeInfo& info : AllDTypes()) {
      EXPECT_EQ(table->matmul_q[static_cast<size_t>(info.dtype)] != nullptr,
                info.dtype == DType::kQ4_1 || info.dtype == DType::kQ8_0)
          << IsaName(table->isa) << " " << info.name;
    }
  }
}

// A set that adds instructions to another needs it.
TEST(KernelTable, ExtensionsHaveTheirBase) {
  if (FindKernels(Isa::kAvx512Vnni) != nullptr) {
    EXPECT_NE(FindKernels(Isa::kAvx512), nullptr);
  }
  if (FindKernels(Isa::kNeonDot) != nullptr) {
    EXPECT_NE(FindKernels(Isa::kNeon), nullptr);
  }
}

TEST(KernelTable, HasEveryOp) {
  for (const KernelTable* table : AllKernels()) {
    EXPECT_TRUE(table->rms_norm && table->layer_norm && table->rope &&
                table->attention && table->add && table->mul && table->scale &&
                table->activate && table->gated_mul && table->softcap &&
                table->quantize_rows && table->code_matmul &&
                table->round_codes && table->round_f16 && table->softmax &&
                table->batch_matmul)
        << IsaName(table->isa);
  }
}

}  // namespace
}  // namespace hexllm::cpu::testing
