#include "backend/cpu/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "backend/cpu/engine.h"
#include "backend/cpu/plan.h"
#include "ir/interpret.h"
#include "tests/support/run_graph.h"
#include "tests/support/tiny_decoder.h"

namespace hexllm::cpu {
namespace {

using artifact::Lifetime;
using artifact::LogitsRows;
using artifact::SegmentKind;
using ir::OpKind;
using testing::F32Type;
using ::testing::HasSubstr;
using testing::kTinyLayers;
using testing::LowerForTest;
using testing::MakeTinyDecoder;
using testing::TestArtifact;
using testing::TinyDecoder;

Role XRole() { return {.kind = RoleKind::kEmbedding}; }
Role Tap(std::string name) {
  return {.kind = RoleKind::kTap, .index = 0, .name = std::move(name)};
}

std::shared_ptr<TestArtifact> MustLower(const ir::Module& module) {
  auto artifact = LowerForTest(module);
  if (!artifact.ok()) CheckFailed("lower", 0, artifact.error().message.c_str());
  return *artifact;
}

Plan PlanOf(const TestArtifact& artifact, size_t graph = 0) {
  auto plan =
      ParsePlan(artifact.Segment(artifact.manifest().graphs[graph].program));
  HX_CHECK(plan.ok());
  return *plan;
}

int64_t Count(const Plan& plan, PlanOp op) {
  return std::count_if(plan.code.begin(), plan.code.end(),
                       [&](const Instruction& i) { return i.op == op; });
}

std::vector<std::string> SegmentNames(const TestArtifact& artifact) {
  std::vector<std::string> names;
  for (const auto& segment : artifact.manifest().segments) {
    names.push_back(segment.name);
  }
  return names;
}

// A graph of T = 3 rows under construction.
struct GraphUnderTest {
  ir::Module module;
  ir::Graph& graph;

  explicit GraphUnderTest(int64_t step_tokens = 3)
      : graph(module.graphs.emplace_back()) {
    graph.name = "g";
    graph.step_tokens = step_tokens;
    graph.context_tokens = step_tokens;
  }
  ir::ValueId Input(Shape shape) {
    return graph.AddInput(XRole(), F32Type(shape));
  }
  ir::ValueId Constant(std::string name, DType dtype, Shape shape) {
    const ir::ConstantId id = module.constants.Add(
        ir::MakeRandomConstant(std::move(name), {dtype, std::move(shape)}));
    return graph.AddConstant(id, module.constants[id]);
  }
  ir::ValueId Node(OpKind op, std::vector<ir::ValueId> in,
                   ir::Attrs attrs = {}) {
    return graph.AddNode(op, std::move(in), std::move(attrs), "node");
  }
  // Runs the graph on one random input and compares with the interpreter.
  void ExpectSameAsInterpreter() const {
    ir::PseudoRandom random("lower_test");
    std::vector<ir::HostTensor> inputs;
    for (const ir::GraphIo& io : graph.inputs) {
      inputs.push_back(testing::RandomF32(graph.type(io.value).shape, random));
    }
    auto engine = CreateEngine({.threads = 1});
    ASSERT_TRUE(engine.ok());
    const auto found = testing::RunOnEngine(module, **engine, inputs);
    ASSERT_TRUE(found.ok()) << found.error().message;
    const auto expected = ir::Interpret(module, graph, inputs);
    for (size_t i = 0; i < expected.size(); ++i) {
      testing::ExpectTensor((*found)[i], expected[i], 1e-5);
    }
  }
};

// --- Memory ---

TEST(Lower, OutputsAreWrittenInPlace) {
  const Plan plan = PlanOf(*MustLower(MakeTinyDecoder(4, 8)));
  EXPECT_EQ(Count(plan, PlanOp::kCopyRows), 0);
  EXPECT_EQ(Count(plan, PlanOp::kStoreK), kTinyLayers);
  EXPECT_EQ(Count(plan, PlanOp::kStoreV), kTinyLayers);
  for (const Instruction& instruction : plan.code) {
    if (instruction.op != PlanOp::kStoreK) continue;
    EXPECT_EQ(instruction.out.kind, OperandKind::kOutput) << instruction.name;
  }
}

// With one token a transpose only renames axes: the projections write keys and
// values to the graph outputs, and RoPE turns the keys where they are.
TEST(Lower, OneTokenNeedsNoTranspose) {
  const Plan plan = PlanOf(*MustLower(MakeTinyDecoder(1, 8)));
  EXPECT_EQ(Count(plan, PlanOp::kStoreK), 0);
  EXPECT_EQ(Count(plan, PlanOp::kStoreV), 0);
  EXPECT_EQ(Count(plan, PlanOp::kCopyRows), 0);
  const auto writes_output = [](const Instruction& instruction) {
    return instruction.out.kind == OperandKind::kOutput;
  };
  EXPECT_EQ(std::count_if(plan.code.begin(), plan.code.end(), writes_output),
            3 * kTinyLayers + 1);
}

TEST(Lower, ElementWiseOpsReuseWhatDies) {
  GraphUnderTest g;
  ir::ValueId x = g.Input({3, 16});
  x = g.Node(OpKind::kSilu, {x});
  const ir::ValueId kept = g.Node(OpKind::kSilu, {x});
  x = g.Node(OpKind::kAdd, {kept, x});
  x = g.Node(OpKind::kMul, {x, kept});
  x = g.Node(OpKind::kSilu, {x});
  g.graph.AddOutput(Tap("out"), g.Node(OpKind::kAdd, {x, kept}));
  const Plan plan = PlanOf(*MustLower(g.module));
  // The chain lives in the output, `kept` in the arena.
  EXPECT_EQ(plan.arena_bytes, 3 * 16 * sizeof(float));
  g.ExpectSameAsInterpreter();
}

// x is read as a whole by the matmul, so its residual cannot take its place.
TEST(Lower, AResidualThatIsAlsoTheInputStays) {
  GraphUnderTest g;
  const ir::ValueId x = g.Node(OpKind::kSilu, {g.Input({3, 32})});
  const ir::ValueId w = g.Constant("w", DType::kF32, {32, 32});
  const ir::ValueId y = g.Node(OpKind::kLinearAdd, {x, w, x});
  g.graph.AddOutput(Tap("out"), g.Node(OpKind::kSilu, {y}));
  const Plan plan = PlanOf(*MustLower(g.module));
  EXPECT_NE(plan.code[1].in[0], plan.code[1].out);
  g.ExpectSameAsInterpreter();
}

TEST(Lower, ReshapesCostNothing) {
  GraphUnderTest g;
  ir::ValueId x = g.Node(OpKind::kSilu, {g.Input({3, 16})});
  for (const Shape& shape : {Shape{3, 4, 4}, Shape{12, 4}, Shape{3, 16}}) {
    x = g.Node(OpKind::kReshape, {x}, {{ir::AttrName::kShape, shape}});
  }
  g.graph.AddOutput(Tap("out"), g.Node(OpKind::kSilu, {x}));
  EXPECT_EQ(PlanOf(*MustLower(g.module)).code.size(), 2u);
  g.ExpectSameAsInterpreter();
}

// Rows of [T*H, D] are no step rows: everything is computed, padding too.
TEST(Lower, RowsThatAreNoStepRowsAreAlwaysComputed) {
  GraphUnderTest g;
  const ir::ValueId heads = g.Node(OpKind::kReshape, {g.Input({3, 64})},
                                   {{ir::AttrName::kShape, Shape{6, 32}}});
  const ir::ValueId w = g.Constant("w", DType::kF32, {8, 32});
  g.graph.AddOutput(Tap("out"), g.Node(OpKind::kLinear, {heads, w}));
  const Plan plan = PlanOf(*MustLower(g.module));
  EXPECT_EQ(plan.code[0].rows, (RowRange{.first = 3, .count = 6}));
  g.ExpectSameAsInterpreter();
}

TEST(Lower, SlicesKnowTheirStepRows) {
  GraphUnderTest g;
  ir::ValueId x = g.Node(OpKind::kSilu, {g.Input({3, 16})});
  x = g.Node(
      OpKind::kSliceRows, {x},
      {{ir::AttrName::kBegin, int64_t{1}}, {ir::AttrName::kCount, int64_t{2}}});
  g.graph.AddOutput(Tap("out"), g.Node(OpKind::kSilu, {x}));
  const Plan plan = PlanOf(*MustLower(g.module));
  EXPECT_EQ(plan.code.back().rows, (RowRange{.first = 1, .count = 2}));
  g.ExpectSameAsInterpreter();
}

TEST(Lower, AValueMayBeSeveralOutputsOrAnInput) {
  GraphUnderTest g;
  const ir::ValueId x = g.Input({3, 4, 8});
  const ir::ValueId y = g.Node(OpKind::kSilu, {x});
  const ir::ValueId k =
      g.Node(OpKind::kTranspose, {y}, {{ir::AttrName::kPerm, Shape{1, 2, 0}}});
  g.graph.AddOutput(Tap("x"), x);
  g.graph.AddOutput(Tap("y"), y);
  g.graph.AddOutput(Tap("k"), k);
  g.graph.AddOutput(Tap("k again"), k);
  EXPECT_EQ(Count(PlanOf(*MustLower(g.module)), PlanOp::kCopyRows), 2);
  g.ExpectSameAsInterpreter();
}

// --- Weights ---

TEST(Lower, GraphsShareTheirWeights) {
  TinyDecoder decoder;
  decoder.AddGraph("prefill", 4, 8);
  decoder.AddGraph("kv", 1, 8);
  const ir::Module module = std::move(decoder).Take();
  const auto artifact = MustLower(module);
  const std::vector<std::string> names = SegmentNames(*artifact);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(names.size(), module.constants.size() + 2);
  EXPECT_EQ(names[names.size() - 2], "plan/prefill");
  EXPECT_EQ(names.back(), "plan/kv");
  EXPECT_EQ(names[0], "weights/model.embed_tokens.weight");
}

TEST(Lower, WeightsThatNoGraphUsesStayOut) {
  GraphUnderTest g;
  g.module.constants.Add(
      ir::MakeRandomConstant("unused", {DType::kF32, {4, 4}}));
  const ir::ValueId w = g.Constant("used", DType::kF32, {4, 32});
  g.graph.AddOutput(Tap("out"), g.Node(OpKind::kLinear, {g.Input({3, 32}), w}));
  EXPECT_EQ(SegmentNames(*MustLower(g.module)),
            (std::vector<std::string>{"weights/used", "plan/g"}));
}

TEST(Lower, NamesOfSegmentsAreUnique) {
  GraphUnderTest g;
  ir::ValueId x = g.Input({3, 32});
  for (const char* name : {"w", "w#2", "w"}) {
    x = g.Node(OpKind::kLinear, {x, g.Constant(name, DType::kF32, {32, 32})});
  }
  g.graph.AddOutput(Tap("out"), x);
  EXPECT_EQ(SegmentNames(*MustLower(g.module)),
            (std::vector<std::string>{"weights/w", "weights/w#2", "weights/w#3",
                                      "plan/g"}));
}

// Stored rows are handed over as views; copies are made of what is reordered,
// widened or owned by the module.
TEST(Lower, StoredBytesAreBorrowed) {
  std::vector<float> stored(4 * 32);
  for (size_t i = 0; i < stored.size(); ++i) {
    stored[i] = static_cast<float>(i) / 100;
  }
  GraphUnderTest g;
  ir::ValueId x = g.Input({3, 32});
  const auto add = [&](std::string name, std::vector<int64_t> rows) {
    ir::Constant constant;
    constant.name = std::move(name);
    constant.type = {DType::kF32, {4, 32}};
    constant.bytes = std::as_bytes(std::span(stored));
    constant.rows = std::move(rows);
    const ir::ConstantId id = g.module.constants.Add(std::move(constant));
    g.graph.AddOutput(
        Tap("out" + std::to_string(g.graph.outputs.size())),
        g.Node(OpKind::kLinear,
               {x, g.graph.AddConstant(id, g.module.constants[id])}));
  };
  add("as_stored", {});
  add("reordered", {2, 0, 3, 1});
  const auto artifact = MustLower(g.module);
  EXPECT_EQ(artifact->lifetimes,
            (std::vector<Lifetime>{Lifetime::kArtifact, Lifetime::kCall,
                                   Lifetime::kCall}));
  const auto* moved =
      reinterpret_cast<const float*>(artifact->Segment(1).data());
  EXPECT_EQ(moved[0], stored[2 * 32]);
  EXPECT_EQ(moved[32], stored[0]);
  g.ExpectSameAsInterpreter();
}

TEST(Lower, NormsAndBiasesBecomeFloat) {
  GraphUnderTest g;
  const ir::ValueId norm = g.Constant("norm", DType::kBF16, {32});
  const ir::ValueId w = g.Constant("w", DType::kQ8_0, {8, 32});
  const ir::ValueId bias = g.Constant("bias", DType::kF16, {8});
  const ir::ValueId x =
      g.Node(OpKind::kRmsNorm, {g.Input({3, 32}), norm},
             {{ir::AttrName::kEps, 1e-5}, {ir::AttrName::kWeightOffset, 0.0}});
  g.graph.AddOutput(Tap("out"), g.Node(OpKind::kLinear, {x, w, bias}));
  const Plan plan = PlanOf(*MustLower(g.module));
  std::vector<DType> dtypes;
  for (const PlanWeight& weight : plan.weights) dtypes.push_back(weight.dtype);
  EXPECT_EQ(dtypes,
            (std::vector<DType>{DType::kF32, DType::kQ8_0, DType::kF32}));
  g.ExpectSameAsInterpreter();
}

TEST(Lower, SameModuleSameBytes) {
  const auto a = MustLower(MakeTinyDecoder(4, 8));
  const auto b = MustLower(MakeTinyDecoder(4, 8));
  ASSERT_EQ(SegmentNames(*a), SegmentNames(*b));
  for (uint32_t i = 0; i < a->manifest().segments.size(); ++i) {
    EXPECT_EQ(AsText(a->Segment(i)), AsText(b->Segment(i))) << i;
  }
}

// --- Manifest ---

TEST(Lower, EntryDescribesTheGraph) {
  const auto artifact = MustLower(MakeTinyDecoder(4, 8));
  const artifact::GraphEntry& entry = artifact->manifest().graphs[0];
  EXPECT_EQ(entry.name, "prefill");
  EXPECT_EQ(entry.kind, GraphKind::kPrefill);
  EXPECT_EQ(entry.step_tokens, 4u);
  EXPECT_EQ(entry.context_tokens, 8u);
  EXPECT_EQ(entry.backend, "cpu");
  EXPECT_EQ(entry.logits_rows, LogitsRows::kAll);
  EXPECT_EQ(artifact->manifest().segments[entry.program].kind,
            SegmentKind::kCpuPlan);
  EXPECT_EQ(entry.inputs[0].dtype, DType::kI32);
  for (const artifact::IoSpec& spec : entry.inputs) {
    const bool mask = spec.role.kind == RoleKind::kMask;
    EXPECT_EQ(spec.mask_hidden, mask ? 0xff800000u : 0u);
    EXPECT_EQ(spec.mask_visible, 0u);
  }
}

// Logits of `rows` rows, or none.
LogitsRows RowsOf(int64_t step_tokens, int64_t rows) {
  GraphUnderTest g(step_tokens);
  ir::ValueId x = g.Input({step_tokens, 32});
  const Role role = rows == 0 ? Tap("x") : Role{.kind = RoleKind::kLogits};
  if (rows == 1 && step_tokens > 1) {
    x = g.Node(OpKind::kSliceRows, {x},
               {{ir::AttrName::kBegin, step_tokens - 1},
                {ir::AttrName::kCount, int64_t{1}}});
  }
  g.graph.AddOutput(role, x);
  return MustLower(g.module)->manifest().graphs[0].logits_rows;
}

TEST(Lower, CountsLogitsRows) {
  EXPECT_EQ(RowsOf(4, 0), LogitsRows::kNone);
  EXPECT_EQ(RowsOf(4, 1), LogitsRows::kLast);
  EXPECT_EQ(RowsOf(4, 4), LogitsRows::kAll);
  EXPECT_EQ(RowsOf(1, 1), LogitsRows::kAll);
}

// --- Refusals (ops: backend/conformance_test.cc) ---

TEST(Lower, WritesNothingWhenAGraphIsRefused) {
  TinyDecoder decoder;
  decoder.AddGraph("kv", 1, 8);
  ir::Module module = std::move(decoder).Take();
  ir::Graph& bad = module.graphs.emplace_back();
  bad.name = "bad";
  bad.step_tokens = 3;
  const ir::ValueId x = bad.AddInput(XRole(), F32Type({3, 1, 2, 1, 2}));
  bad.AddOutput(
      Tap("t"),
      bad.AddNode(OpKind::kTranspose, {x},
                  {{ir::AttrName::kPerm, Shape{4, 3, 2, 1, 0}}}, "flip"));
  TestArtifact sink;
  NullProgress progress;
  const auto lowered = Lower(module, sink, progress);
  ASSERT_FALSE(lowered.ok());
  EXPECT_THAT(lowered.error().message,
              HasSubstr("graph 'bad': 'flip' = transpose(f32[3,1,2,1,2])"));
  EXPECT_TRUE(sink.manifest().segments.empty());
}

}  // namespace
}  // namespace hexllm::cpu
