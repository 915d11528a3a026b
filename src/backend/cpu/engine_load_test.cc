// Hostile plans: every number of a plan is changed to something senseless and
// must be refused by name, and any bytes at all must be survived.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "backend/cpu/engine.h"
#include "backend/cpu/plan.h"
#include "tests/support/run_graph.h"
#include "tests/support/tiny_decoder.h"

namespace hexllm::cpu {
namespace {

using ::testing::HasSubstr;
using testing::TestArtifact;

constexpr int64_t kStep = 4;

// A valid artifact with the tiny decoder, whose plan the tests change.
class HostilePlan : public ::testing::Test {
 protected:
  void SetUp() override {
    auto artifact = testing::LowerForTest(
        testing::MakeTinyDecoder(kStep, /*context_tokens=*/8));
    ASSERT_TRUE(artifact.ok());
    artifact_ = *artifact;
    program_ = artifact_->manifest().graphs[0].program;
    auto plan = ParsePlan(artifact_->Segment(program_));
    ASSERT_TRUE(plan.ok());
    plan_ = *plan;
    auto engine = CreateEngine({.threads = 1});
    ASSERT_TRUE(engine.ok());
    engine_ = *std::move(engine);
  }

  // The first instruction with this op.
  Instruction& First(PlanOp op) {
    for (Instruction& instruction : plan_.code) {
      if (instruction.op == op) return instruction;
    }
    CheckFailed(__FILE__, __LINE__, "no such instruction");
  }

  Status Load() {
    artifact_->Replace(program_, AsBytes(SerializePlan(plan_)));
    return engine_->Load(artifact_, 0).status();
  }

  void ExpectRefused(const std::string& text,
                     ErrorCode code = ErrorCode::kBadInput) {
    const Status status = Load();
    ASSERT_FALSE(status.ok()) << "loaded without: " << text;
    EXPECT_EQ(status.error().code, code);
    EXPECT_THAT(status.error().message, HasSubstr(text));
    EXPECT_THAT(status.error().message, HasSubstr("segment 'plan/prefill'"));
  }

  std::shared_ptr<TestArtifact> artifact_;
  uint32_t program_ = 0;
  Plan plan_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(HostilePlan, UnchangedLoads) {
  const Status status = Load();
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST_F(HostilePlan, Head) {
  plan_.step_tokens = 5;
  ExpectRefused("plan for 5 of 8 tokens");
  plan_.step_tokens = kStep;
  plan_.context_tokens = int64_t{1} << 40;
  ExpectRefused("tokens");
  plan_.context_tokens = 8;
  plan_.arena_bytes = uint64_t{1} << 50;
  ExpectRefused("arena of");
  plan_.arena_bytes = 0;
  ExpectRefused("do not fit the arena of 0 bytes");
}

TEST_F(HostilePlan, Weights) {
  const PlanWeight good = plan_.weights[0];
  PlanWeight& weight = plan_.weights[0];
  weight.segment = program_;
  ExpectRefused("weight 0: segment");
  weight.segment = 0xffffffff;
  ExpectRefused("holds no weights");
  weight = good;
  ++weight.rows;
  ExpectRefused("does not fit");
  weight.rows = std::numeric_limits<int64_t>::max();
  weight.cols = std::numeric_limits<int64_t>::max();
  ExpectRefused("does not fit");
  weight.rows = -good.rows;
  weight.cols = -good.cols;
  ExpectRefused("does not fit");
  weight.rows = 0;
  ExpectRefused("does not fit");
  weight = good;
  weight.dtype = DType::kI16;  // as large as f16, and no number to multiply
  ExpectRefused("does not fit");
}

TEST_F(HostilePlan, WeightTypeWithoutKernel) {
  Instruction& matmul = First(PlanOp::kMatMul);
  PlanWeight& weight = plan_.weights[matmul.in[1].index];
  weight.dtype = DType::kF64;
  const std::vector<double> data(
      static_cast<size_t>(weight.rows * weight.cols));
  artifact_->Replace(weight.segment, std::as_bytes(std::span(data)));
  ExpectRefused("no kernel for f64", ErrorCode::kUnsupported);
}

TEST_F(HostilePlan, Rows) {
  for (const RowRange rows :
       {RowRange{0, 0}, RowRange{0, -4}, RowRange{-1, 2}, RowRange{1, 4},
        RowRange{5, 1}, RowRange{3, std::numeric_limits<int64_t>::max()},
        RowRange{kStep, std::numeric_limits<int64_t>::max()}}) {
    First(PlanOp::kAdd).rows = rows;
    ExpectRefused("rows from row");
  }
}

TEST_F(HostilePlan, AttentionOfPartOfTheStep) {
  First(PlanOp::kAttention).rows = {.first = 1, .count = 3};
  ExpectRefused("all rows of the step");
}

TEST_F(HostilePlan, OperandsOfTheWrongKind) {
  Instruction& add = First(PlanOp::kAdd);
  const Operand good = add.in[0];
  add.in[0] = {};
  ExpectRefused("input 0: expected activations");
  add.in[0] = {OperandKind::kWeight, 0};
  ExpectRefused("input 0: expected activations");
  add.in[0] = {OperandKind::kInput, 0};  // token ids
  ExpectRefused("input 0: expected f32, found i32");
  add.in[0] = {OperandKind::kInput, 1000};
  ExpectRefused("found number 1000");
  add.in[0] = good;
  add.out = {OperandKind::kInput, 1};
  ExpectRefused("output: expected scratch memory or a graph output");
  add.out = {};
  ExpectRefused("output: expected scratch");
}

TEST_F(HostilePlan, OperandsOutsideTheArena) {
  Instruction& add = First(PlanOp::kAdd);
  for (const uint64_t offset :
       {plan_.arena_bytes, plan_.arena_bytes - 64, uint64_t{1},
        std::numeric_limits<uint64_t>::max() - 63}) {
    add.in[1] = {OperandKind::kArena, offset};
    ExpectRefused("input 1:");
  }
}

TEST_F(HostilePlan, WeightOperands) {
  Instruction& matmul = First(PlanOp::kMatMul);
  const Operand good = matmul.in[1];
  matmul.in[1] = {OperandKind::kWeight, plan_.weights.size()};
  ExpectRefused("input 1: expected one of the plan's weights");
  matmul.in[1] = good;
  // A matrix as a bias.
  matmul.in[2] = good;
  ExpectRefused("input 2: expected");
  // A norm by a matrix.
  matmul.in[2] = {};
  First(PlanOp::kRmsNorm).in[1] = good;
  ExpectRefused("input 1: expected");
}

TEST_F(HostilePlan, TokensFromElsewhere) {
  Instruction& embed = First(PlanOp::kEmbed);
  embed.in[0] = {OperandKind::kArena, 0};
  ExpectRefused("input 0: expected an i32 graph input");
  embed.in[0] = {OperandKind::kInput, 1};  // rope_cos
  ExpectRefused("input 0: expected an i32 graph input");
  embed.in[0] = {OperandKind::kInput, 99};
  ExpectRefused("input 0: expected an i32 graph input");
}

TEST_F(HostilePlan, HowMuchThereIsOfEach) {
  Instruction& add = First(PlanOp::kAdd);
  add.in.pop_back();
  ExpectRefused("expected 2 to 2 inputs");
  add.in.resize(1000);
  ExpectRefused("expected 2 to 2 inputs");
  add.in.resize(2);
  add.ints.clear();
  ExpectRefused("numbers");
  add.ints = {1, 2};
  ExpectRefused("numbers");
}

// Each number of each op, out of its range.
TEST_F(HostilePlan, Numbers) {
  const Plan good = plan_;
  for (size_t i = 0; i < good.code.size(); ++i) {
    for (size_t n = 0; n < good.code[i].ints.size(); ++n) {
      for (const int64_t value :
           {int64_t{-1}, int64_t{1} << 25, std::numeric_limits<int64_t>::min(),
            std::numeric_limits<int64_t>::max()}) {
        plan_ = good;
        plan_.code[i].ints[n] = value;
        ExpectRefused("instruction " + std::to_string(i));
      }
    }
    for (size_t n = 0; n < good.code[i].floats.size(); ++n) {
      plan_ = good;
      plan_.code[i].floats[n] = std::numeric_limits<float>::quiet_NaN();
      ExpectRefused("a number is not finite");
    }
  }
}

TEST_F(HostilePlan, HeadsThatDoNotDivide) {
  Instruction& attention = First(PlanOp::kAttention);
  attention.ints[1] = 3;
  ExpectRefused("4 query heads on 3 KV heads");
  attention.ints[1] = 2;
  attention.floats[1] = -1;
  ExpectRefused("softcap -1");
}

TEST_F(HostilePlan, RotatesMoreThanThereIs) {
  First(PlanOp::kRope).ints[2] = 3;
  ExpectRefused("rotates 6 of 4");
}

TEST_F(HostilePlan, OutputThatNothingWrites) {
  plan_.code.pop_back();
  ExpectRefused("nothing writes output logits");
}

// Any bytes: no crash, no read outside; what loads also runs.
TEST_F(HostilePlan, MutatedBytes) {
  const std::string good = SerializePlan(plan_);
  std::mt19937 random(1);
  int loaded = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (uint64_t i = random() % 3 + 1; i > 0; --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    }
    artifact_->Replace(program_, AsBytes(bytes));
    auto bound = testing::BoundGraph::Load(*engine_, artifact_, 0);
    if (!bound.ok()) continue;
    ++loaded;
    EXPECT_TRUE(bound->graph().Execute({.begin = 1}).ok());
  }
  EXPECT_GT(loaded, 0);  // names and offsets within the arena
}

}  // namespace
}  // namespace hexllm::cpu
