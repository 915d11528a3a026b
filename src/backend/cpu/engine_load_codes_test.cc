// Hostile plans of graphs with encodings: as engine_load_test, for the
// instructions that only such graphs have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "backend/cpu/engine.h"
#include "backend/cpu/plan.h"
#include "tests/support/random_encoded_graph.h"
#include "tests/support/run_graph.h"

namespace hexllm::cpu {
namespace {

using testing::EncodingStyle;
using ::testing::HasSubstr;
using testing::TestArtifact;

// A small graph that has every instruction of encodings in one style or
// another.
constexpr uint64_t kSeed = 2;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// The plan of a graph with encodings, which the tests change.
class HostileCodes : public ::testing::TestWithParam<EncodingStyle> {
 protected:
  void SetUp() override {
    auto made = testing::MakeRandomEncodedGraph(kSeed, GetParam());
    testing::RoundAsChips(made.module, 8);
    auto artifact = testing::LowerForTest(made.module);
    ASSERT_TRUE(artifact.ok()) << artifact.error().message;
    artifact_ = *artifact;
    program_ = artifact_->manifest().graphs[0].program;
    auto plan = ParsePlan(artifact_->Segment(program_));
    ASSERT_TRUE(plan.ok());
    plan_ = *plan;
    auto engine = CreateEngine({.threads = 1});
    ASSERT_TRUE(engine.ok());
    engine_ = *std::move(engine);
  }

  Status Load() {
    artifact_->Replace(program_, AsBytes(SerializePlan(plan_)));
    return engine_->Load(artifact_, 0).status();
  }

  void ExpectRefused(const std::string& text) {
    const Status status = Load();
    ASSERT_FALSE(status.ok()) << "loaded without: " << text;
    EXPECT_THAT(status.error().message, HasSubstr(text));
  }

  // The first instruction with this op, or null.
  Instruction* First(PlanOp op) {
    for (Instruction& instruction : plan_.code) {
      if (instruction.op == op) return &instruction;
    }
    return nullptr;
  }

  std::shared_ptr<TestArtifact> artifact_;
  uint32_t program_ = 0;
  Plan plan_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(HostileCodes, UnchangedLoads) {
  const Status status = Load();
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST_P(HostileCodes, Numbers) {
  const Plan good = plan_;
  for (size_t i = 0; i < good.code.size(); ++i) {
    for (size_t n = 0; n < good.code[i].ints.size(); ++n) {
      for (const int64_t value : {kMost, kLeast}) {
        plan_ = good;
        plan_.code[i].ints[n] = value;
        ExpectRefused("instruction " + std::to_string(i));
      }
    }
    for (size_t n = 0; n < good.code[i].floats.size(); ++n) {
      plan_ = good;
      plan_.code[i].floats[n] = std::numeric_limits<float>::infinity();
      ExpectRefused("a number is not finite");
    }
  }
}

TEST_P(HostileCodes, ScalesThatAreNone) {
  const Plan good = plan_;
  for (const PlanOp op : {PlanOp::kDecode, PlanOp::kEncode, PlanOp::kRound,
                          PlanOp::kRowCodes, PlanOp::kCodeMatMul}) {
    for (const float scale : {0.0f, -1.0f, 1e-40f, 3e38f}) {
      plan_ = good;
      Instruction* instruction = First(op);
      if (instruction == nullptr) break;
      instruction->floats[0] = scale;
      ExpectRefused("scale");
    }
  }
}

// Every operand of every instruction, replaced by one of each kind: refused, or
// as good as the one before.
TEST_P(HostileCodes, Operands) {
  const Plan good = plan_;
  for (size_t i = 0; i < good.code.size(); ++i) {
    for (size_t n = 0; n <= good.code[i].in.size(); ++n) {
      for (const Operand& operand :
           {Operand{OperandKind::kArena, good.arena_bytes + 64},
            Operand{OperandKind::kArena, 1}, Operand{OperandKind::kInput, 999},
            Operand{OperandKind::kOutput, 999},
            Operand{OperandKind::kWeight, good.weights.size()}}) {
        plan_ = good;
        Instruction& instruction = plan_.code[i];
        (n < instruction.in.size() ? instruction.in[n] : instruction.out) =
            operand;
        ExpectRefused("instruction " + std::to_string(i));
      }
    }
  }
}

TEST_P(HostileCodes, WeightsInTheOtherLayout) {
  const Plan good = plan_;
  int changed = 0;
  for (size_t i = 0; i < good.weights.size(); ++i) {
    plan_ = good;
    PlanWeight& weight = plan_.weights[i];
    const bool rows = weight.layout == WeightLayout::kRows;
    weight.layout = rows ? WeightLayout::kPanels : WeightLayout::kRows;
    EXPECT_FALSE(Load().ok()) << "weight " << i;
    plan_ = good;
    plan_.weights[i].rows = kMost;
    EXPECT_FALSE(Load().ok()) << "weight " << i;
    plan_.weights[i].rows = good.weights[i].rows;
    plan_.weights[i].cols = kMost;
    EXPECT_FALSE(Load().ok()) << "weight " << i;
    ++changed;
  }
  EXPECT_GT(changed, 2);
}

TEST_P(HostileCodes, PanelsThatAreNotAligned) {
  for (const PlanWeight& weight : plan_.weights) {
    if (weight.layout != WeightLayout::kPanels) continue;
    const ByteSpan bytes = artifact_->Segment(weight.segment);
    const std::vector<std::byte> copy(bytes.begin(), bytes.end());
    artifact_->Replace(weight.segment, copy, /*offset=*/32);
    return ExpectRefused("lies at no multiple of 64");
  }
  EXPECT_EQ(GetParam(), EncodingStyle::kHalf);
}

// Any bytes: no crash, no read outside; what loads also runs.
TEST_P(HostileCodes, MutatedBytes) {
  const std::string good = SerializePlan(plan_);
  std::mt19937 random(1);
  int loaded = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string bytes = good;
    for (uint64_t i = random() % 3 + 1; i > 0; --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    }
    artifact_->Replace(program_, AsBytes(bytes));
    auto bound = testing::BoundGraph::Load(*engine_, artifact_, 0);
    if (!bound.ok()) continue;
    ++loaded;
    EXPECT_TRUE(bound->graph().Execute({}).ok());
  }
  EXPECT_GT(loaded, 0);
}

// The plans above are of use only if they have the instructions.
TEST(HostileCodesCoverage, PlansHaveEveryInstructionOfEncodings) {
  std::set<PlanOp> seen;
  for (const EncodingStyle style :
       {EncodingStyle::kStatic, EncodingStyle::kHalf,
        EncodingStyle::kDynamic}) {
    auto made = testing::MakeRandomEncodedGraph(kSeed, style);
    testing::RoundAsChips(made.module, 8);
    const auto artifact = testing::LowerForTest(made.module);
    ASSERT_TRUE(artifact.ok());
    const auto plan = ParsePlan(
        (*artifact)->Segment((*artifact)->manifest().graphs[0].program));
    ASSERT_TRUE(plan.ok());
    for (const Instruction& i : plan->code) seen.insert(i.op);
  }
  for (int op = static_cast<int>(PlanOp::kDecode); op < kNumPlanOps; ++op) {
    EXPECT_TRUE(seen.contains(static_cast<PlanOp>(op))) << "op " << op;
  }
}

constexpr std::string_view kStyleNames[] = {"static", "half", "dynamic"};

INSTANTIATE_TEST_SUITE_P(Styles, HostileCodes,
                         ::testing::Values(EncodingStyle::kStatic,
                                           EncodingStyle::kHalf,
                                           EncodingStyle::kDynamic),
                         [](const auto& param) {
                           return std::string(
                               kStyleNames[static_cast<size_t>(param.param)]);
                         });

}  // namespace
}  // namespace hexllm::cpu
