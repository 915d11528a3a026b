#include "base/dtype.h"

#include <gtest/gtest.h>

#include <set>

namespace hexllm {
namespace {

TEST(DTypeTable, IsInEnumOrderWithUniqueNames) {
  std::set<std::string_view> names;
  std::set<int32_t> gguf_types;
  for (size_t i = 0; i < AllDTypes().size(); ++i) {
    const DTypeInfo& info = AllDTypes()[i];
    EXPECT_EQ(static_cast<size_t>(info.dtype), i);
    EXPECT_EQ(&GetDTypeInfo(info.dtype), &info);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(FindDTypeByName(info.name), info.dtype);
    EXPECT_GE(info.block_elems, 1u);
    EXPECT_GE(info.block_bytes, 1u);
    if (info.gguf_type < 0) continue;
    EXPECT_TRUE(gguf_types.insert(info.gguf_type).second) << info.name;
    EXPECT_EQ(FindDTypeByGgufType(static_cast<uint32_t>(info.gguf_type)),
              info.dtype);
  }
}

// Artifacts store these numbers.
TEST(DTypeTable, KeepsItsNumbers) {
  EXPECT_EQ(static_cast<int>(DType::kF32), 0);
  EXPECT_EQ(static_cast<int>(DType::kF16), 1);
  EXPECT_EQ(static_cast<int>(DType::kBF16), 2);
  EXPECT_EQ(static_cast<int>(DType::kU64), 12);
  EXPECT_EQ(static_cast<int>(DType::kQ4_0), 13);
  EXPECT_EQ(static_cast<int>(DType::kQ6_K), 22);
}

TEST(DTypeTable, FindsNothingForUnknownTypes) {
  EXPECT_EQ(FindDTypeByName("f8"), std::nullopt);
  EXPECT_EQ(FindDTypeByName(""), std::nullopt);
  EXPECT_EQ(FindDTypeByGgufType(16), std::nullopt);
  // -1 marks "not in GGUF" and must not be found as a type number.
  EXPECT_EQ(FindDTypeByGgufType(UINT32_MAX), std::nullopt);
}

TEST(DTypeTable, ChecksTheEnum) {
  EXPECT_EXIT((void)GetDTypeInfo(static_cast<DType>(200)),
              ::testing::ExitedWithCode(70), "");
}

TEST(NumElements, MultipliesOrGivesNothing) {
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements({2, 3}), 6);
  EXPECT_EQ(NumElements({2, 0}), 0);
  EXPECT_EQ(NumElements({2, -1}), std::nullopt);
  EXPECT_EQ(NumElements({1ll << 32, 1ll << 31}), std::nullopt);
  EXPECT_EQ(NumElements({INT64_MAX}), INT64_MAX);
}

TEST(StorageBytes, CountsWholeBlocks) {
  EXPECT_EQ(StorageBytes(DType::kF32, {}), 4u);
  EXPECT_EQ(StorageBytes(DType::kBF16, {2, 3}), 12u);
  EXPECT_EQ(StorageBytes(DType::kQ4_0, {2, 64}), 72u);
  EXPECT_EQ(StorageBytes(DType::kQ6_K, {256}), 210u);
  // Rows, not the whole tensor, are made of blocks.
  EXPECT_EQ(StorageBytes(DType::kQ4_0, {32, 31}), std::nullopt);
  EXPECT_EQ(StorageBytes(DType::kQ4_0, {64, 16}), std::nullopt);
  EXPECT_EQ(StorageBytes(DType::kQ4_0, {}), std::nullopt);
  EXPECT_EQ(StorageBytes(DType::kF32, {-4}), std::nullopt);
  EXPECT_EQ(StorageBytes(DType::kF64, {1ll << 61}), std::nullopt);
}

TEST(ShapeToString, UsesBrackets) {
  EXPECT_EQ(ShapeToString({}), "[]");
  EXPECT_EQ(ShapeToString({2, 3}), "[2,3]");
}

}  // namespace
}  // namespace hexllm
