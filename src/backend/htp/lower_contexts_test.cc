#include "backend/htp/lower_contexts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/ir_tensors.h"

namespace hexllm::htp {
namespace {

using ::testing::ElementsAre;
using testing::F32Type;
using ::testing::HasSubstr;

// One linear with a weight of [rows,columns] codes of 8 bits.
void AddGraph(ir::Module& module, const std::string& name, uint32_t shard,
              ir::ConstantId weight) {
  ir::Graph& graph = module.graphs.emplace_back();
  graph.name = name;
  graph.shard = shard;
  const ir::ValueId x =
      graph.AddInput({RoleKind::kHiddenIn},
                     F32Type({1, module.constants[weight].type.shape[1]}));
  graph.AddOutput(
      {RoleKind::kHiddenOut},
      graph.AddNode(ir::OpKind::kLinear,
                    {x, graph.AddConstant(weight, module.constants[weight])},
                    {}, "linear"));
}

// All rows are one stored row: large in name only.
ir::ConstantId AddWeight(ir::Module& module, int64_t rows, int64_t columns) {
  const auto data = std::make_shared<const std::string>(
      static_cast<size_t>(columns) * sizeof(float), '\0');
  return module.constants.Add(
      {.name = "w",
       .type = {DType::kF32, {rows, columns}},
       .bytes = AsBytes(*data),
       .owned = data,
       .rows = std::vector<int64_t>(static_cast<size_t>(rows), 0),
       .encoding = ir::Encoding{.dtype = DType::kI8, .scales = {1}}});
}

// A prefill and a kv graph in each of two shards.
ir::Module TwoShards() {
  ir::Module module;
  const ir::ConstantId weight = AddWeight(module, 4, 8);
  AddGraph(module, "prefill_4_s0", 0, weight);
  AddGraph(module, "prefill_4_s1", 1, weight);
  AddGraph(module, "kv_s0", 0, weight);
  AddGraph(module, "kv_s1", 1, weight);
  return module;
}

std::vector<std::string> NamesOf(const std::string& soc, ContextUse use) {
  const auto plans = PlanContexts(TwoShards(), FindSoc(soc).value(), use);
  EXPECT_TRUE(plans.ok()) << plans.error().message;
  std::vector<std::string> names;
  for (const ContextPlan& plan : *plans) {
    const bool shared = plan.sharing == WeightSharing::kOn;
    EXPECT_EQ(shared, plan.graphs.size() > 1) << plan.name;
    names.push_back(plan.name + (plan.for_simulator ? " x86" : ""));
  }
  return names;
}

TEST(PlanContexts, GraphsOfAShardShareTheirWeights) {
  EXPECT_THAT(NamesOf("SM8750", ContextUse::kDevice),
              ElementsAre("context/0", "context/1"));
}

TEST(PlanContexts, OnX86EachGraphStandsAlone) {
  EXPECT_THAT(NamesOf("SM8750", ContextUse::kSimulator),
              ElementsAre("context/prefill_4_s0", "context/kv_s0",
                          "context/prefill_4_s1", "context/kv_s1"));
  EXPECT_THAT(NamesOf("SM8750", ContextUse::kBoth),
              ElementsAre("context/0", "context/prefill_4_s0 x86",
                          "context/kv_s0 x86", "context/1",
                          "context/prefill_4_s1 x86", "context/kv_s1 x86"));
}

// One binary serves both where nothing is shared.
TEST(PlanContexts, OldChipsCannotShare) {
  for (const ContextUse use : {ContextUse::kDevice, ContextUse::kBoth}) {
    EXPECT_THAT(NamesOf("SM8450", use),
                ElementsAre("context/prefill_4_s0", "context/kv_s0",
                            "context/prefill_4_s1", "context/kv_s1"));
  }
}

TEST(PlanContexts, WhatTheChipCannotAddressIsRefused) {
  ir::Module module;
  // 4 GiB of codes.
  const ir::ConstantId large =
      AddWeight(module, int64_t{1} << 16, int64_t{1} << 16);
  AddGraph(module, "kv", 0, large);
  const auto plans =
      PlanContexts(module, FindSoc("SM8750").value(), ContextUse::kDevice);
  ASSERT_FALSE(plans.ok());
  EXPECT_EQ(plans.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(plans.error().message, HasSubstr("--num-sharding"));
}

}  // namespace
}  // namespace hexllm::htp
