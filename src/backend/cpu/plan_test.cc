#include "backend/cpu/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hexllm::cpu {
namespace {

using ::testing::HasSubstr;

Plan SomePlan() {
  return {
      .arena_bytes = 128,
      .step_tokens = 4,
      .context_tokens = 9,
      .weights = {{.segment = 3,
                   .dtype = DType::kQ8_0,
                   .rows = 7,
                   .cols = 32,
                   .layout = WeightLayout::kPanels}},
      .code = {{.op = PlanOp::kRope,
                .in = {{OperandKind::kArena, 64}, {}, {OperandKind::kInput, 1}},
                .out = {OperandKind::kOutput, 2},
                .rows = {.first = 1, .count = 3},
                .ints = {2, 4, 1},
                .floats = {0.5f},
                .name = "q"}}};
}

TEST(Plan, SurvivesTheRoundTrip) {
  const Plan plan = SomePlan();
  const std::string bytes = SerializePlan(plan);
  const auto read = ParsePlan(AsBytes(bytes));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->arena_bytes, plan.arena_bytes);
  EXPECT_EQ(read->step_tokens, plan.step_tokens);
  EXPECT_EQ(read->context_tokens, plan.context_tokens);
  ASSERT_EQ(read->weights.size(), 1u);
  EXPECT_EQ(read->weights[0].segment, 3u);
  EXPECT_EQ(read->weights[0].dtype, DType::kQ8_0);
  EXPECT_EQ(read->weights[0].rows, 7);
  EXPECT_EQ(read->weights[0].cols, 32);
  EXPECT_EQ(read->weights[0].layout, WeightLayout::kPanels);
  ASSERT_EQ(read->code.size(), 1u);
  EXPECT_EQ(read->code[0].op, PlanOp::kRope);
  EXPECT_EQ(read->code[0].in, plan.code[0].in);
  EXPECT_EQ(read->code[0].out, plan.code[0].out);
  EXPECT_EQ(read->code[0].rows, plan.code[0].rows);
  EXPECT_EQ(read->code[0].ints, plan.code[0].ints);
  EXPECT_EQ(read->code[0].floats, plan.code[0].floats);
  EXPECT_EQ(read->code[0].name, "q");
  EXPECT_EQ(SerializePlan(*read), bytes);
}

TEST(Plan, EveryPrefixIsRefused) {
  const std::string bytes = SerializePlan(SomePlan());
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy, so that sanitizers see a read beyond it.
    const std::vector<char> part(bytes.begin(),
                                 bytes.begin() + static_cast<long>(size));
    const auto read = ParsePlan(std::as_bytes(std::span(part)));
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
  }
}

void ExpectRefused(const Plan& plan, const std::string& text) {
  const auto read = ParsePlan(AsBytes(SerializePlan(plan)));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(read.error().message, HasSubstr(text));
}

TEST(Plan, UnknownNumbersAreRefused) {
  Plan plan = SomePlan();
  plan.code[0].op = static_cast<PlanOp>(kNumPlanOps);
  ExpectRefused(plan,
                "instruction 0: unknown op " + std::to_string(kNumPlanOps));
  plan = SomePlan();
  plan.code[0].in[1].kind = static_cast<OperandKind>(9);
  ExpectRefused(plan, "instruction 0: unknown operand kind 9");
  plan = SomePlan();
  plan.weights[0].dtype = static_cast<DType>(200);
  ExpectRefused(plan, "weight 0: unknown dtype 200");
  plan = SomePlan();
  plan.weights[0].layout = static_cast<WeightLayout>(2);
  ExpectRefused(plan, "weight 0: unknown layout 2");
}

}  // namespace
}  // namespace hexllm::cpu
