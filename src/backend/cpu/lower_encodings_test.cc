// What encodings become in a plan and in the manifest. That they compute the
// right numbers: backend/encoded_conformance_test.cc.
#include "backend/cpu/lower_encodings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "backend/cpu/engine.h"
#include "backend/cpu/lower.h"
#include "backend/lower_entry.h"
#include "base/quantize.h"
#include "ir/interpret.h"
#include "tests/support/run_graph.h"
#include "tests/support/tiny_decoder.h"

namespace hexllm::cpu {
namespace {

using ir::Encoding;
using ir::OpKind;
using testing::F32Type;
using ::testing::HasSubstr;
using testing::LowerForTest;
using testing::TestArtifact;

Role Tap(std::string name) {
  return {.kind = RoleKind::kTap, .index = 0, .name = std::move(name)};
}

Encoding U16() {
  return {.dtype = DType::kU16, .scales = {1e-4f}, .zero_points = {30000}};
}

Encoding ChannelI8(int64_t rows) {
  return {.dtype = DType::kI8,
          .axis = 0,
          .scales = std::vector<float>(static_cast<size_t>(rows), 0.005f)};
}

// A graph of T = 3 rows and one input x[3,64].
struct EncodedGraph {
  ir::Module module;
  ir::Graph& graph;
  ir::ValueId x;

  explicit EncodedGraph(std::optional<Encoding> encoding = std::nullopt)
      : graph(module.graphs.emplace_back()) {
    graph.name = "g";
    graph.step_tokens = 3;
    graph.context_tokens = 4;
    x = graph.AddInput({.kind = RoleKind::kEmbedding}, F32Type({3, 64}));
    graph[x].encoding = std::move(encoding);
  }
  ir::ValueId Weight(std::string name, Shape shape,
                     std::optional<Encoding> encoding) {
    ir::Constant constant = ir::MakeRandomConstant(
        std::move(name), {.dtype = DType::kF32, .shape = std::move(shape)});
    constant.encoding = std::move(encoding);
    return Add(std::move(constant));
  }
  ir::ValueId Add(ir::Constant constant) {
    const ir::ConstantId id = module.constants.Add(std::move(constant));
    return graph.AddConstant(id, module.constants[id]);
  }
  ir::ValueId Node(OpKind op, std::vector<ir::ValueId> in,
                   std::optional<Encoding> encoding = std::nullopt,
                   ir::Attrs attrs = {}) {
    const ir::ValueId out =
        graph.AddNode(op, std::move(in), std::move(attrs), "node");
    graph[out].encoding = std::move(encoding);
    return out;
  }
  void Output(ir::ValueId value) {
    graph.AddOutput(Tap(std::to_string(graph.outputs.size())), value);
  }
};

std::shared_ptr<TestArtifact> MustLower(const ir::Module& module) {
  auto artifact = LowerForTest(module);
  if (!artifact.ok()) CheckFailed("lower", 0, artifact.error().message.c_str());
  return *artifact;
}

Plan PlanOf(const TestArtifact& artifact) {
  auto plan =
      ParsePlan(artifact.Segment(artifact.manifest().graphs[0].program));
  HX_CHECK(plan.ok());
  return *plan;
}

std::vector<PlanOp> Ops(const Plan& plan) {
  std::vector<PlanOp> ops;
  for (const Instruction& instruction : plan.code)
    ops.push_back(instruction.op);
  return ops;
}

void ExpectRefused(const ir::Module& module, ErrorCode code,
                   const std::string& text) {
  const auto lowered = LowerForTest(module);
  ASSERT_FALSE(lowered.ok()) << "lowered without: " << text;
  EXPECT_EQ(lowered.error().code, code);
  EXPECT_THAT(lowered.error().message, HasSubstr(text));
}

// --- Inputs are prepared once ---

TEST(LowerEncodings, LinearsShareTheCodesOfTheirInput) {
  EncodedGraph g;
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_1}) {
    const std::string name(DTypeName(dtype));
    g.Output(g.Node(OpKind::kLinear,
                    {g.x, g.Weight(name, {16, 64}, Encoding{.dtype = dtype})}));
  }
  EXPECT_EQ(
      Ops(PlanOf(*MustLower(g.module))),
      (std::vector{PlanOp::kQuantizeRows, PlanOp::kMatMulQ, PlanOp::kMatMulQ}));

  EncodedGraph h(U16());
  for (const char* name : {"q", "k", "v"}) {
    h.Output(h.Node(OpKind::kLinear,
                    {h.x, h.Weight(name, {16, 64}, ChannelI8(16))}, U16()));
  }
  const std::vector<PlanOp> ops = Ops(PlanOf(*MustLower(h.module)));
  EXPECT_EQ(std::count(ops.begin(), ops.end(), PlanOp::kRowCodes), 1);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), PlanOp::kDecode), 1);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), PlanOp::kCodeMatMul), 3);
}

// Moves keep the grid; a convert to another one is a rounding.
TEST(LowerEncodings, OnlyWhatChangesTheGridIsRounded) {
  EncodedGraph g(U16());
  Encoding other = U16();
  other.zero_points = {0};
  ir::ValueId y = g.Node(OpKind::kConvert, {g.x}, U16());
  y = g.Node(OpKind::kReshape, {y}, U16(),
             {{ir::AttrName::kShape, Shape{3, 8, 8}}});
  g.Output(g.Node(OpKind::kConvert, {y}, other));
  EXPECT_EQ(Ops(PlanOf(*MustLower(g.module))),
            (std::vector{PlanOp::kDecode, PlanOp::kRound, PlanOp::kEncode}));
}

TEST(LowerEncodings, SumsOverRowsComputePaddingToo) {
  EncodedGraph g;
  const ir::ValueId y = g.Node(OpKind::kSilu, {g.x});
  EXPECT_FALSE(NeedsAllRows(g.graph));
  g.Output(g.Node(OpKind::kSoftmax, {y}));
  EXPECT_TRUE(NeedsAllRows(g.graph));
  for (const Instruction& instruction : PlanOf(*MustLower(g.module)).code) {
    EXPECT_EQ(instruction.rows, (RowRange{.first = 3, .count = 3}));
  }
}

// --- Weights ---

TEST(LowerEncodings, WeightsAreStoredAsCodes) {
  EncodedGraph g(U16());
  const ir::ValueId w = g.Weight("w", {20, 64}, ChannelI8(20));
  const ir::ValueId wide = g.Weight(
      "wide", {20, 64}, Encoding{.dtype = DType::kI16, .scales = {2e-5f}});
  const ir::ValueId bias = g.Weight("bias", {20}, std::nullopt);
  g.Output(g.Node(OpKind::kLinear, {g.x, w, bias}, U16()));
  g.Output(g.Node(OpKind::kLinear, {g.x, wide}, U16()));
  const auto artifact = MustLower(g.module);
  std::vector<std::string> segments;
  for (const auto& segment : artifact->manifest().segments) {
    segments.push_back(segment.name + " " + std::to_string(segment.bytes));
  }
  segments.pop_back();  // the plan
  // 2 panels of 16 rows of 64 codes; one plane or two.
  EXPECT_EQ(segments,
            (std::vector<std::string>{
                "weights/w 2048", "weights/w.scales 80", "weights/w.sums 80",
                "weights/bias.codes 80", "weights/wide 4096",
                "weights/wide.scales 80", "weights/wide.sums 80"}));
}

// A table that is the head as well has two constants with the same bytes.
TEST(LowerEncodings, ATiedTableIsStoredOnce) {
  ir::Module module;
  ir::Graph& graph = module.graphs.emplace_back();
  graph.name = "g";
  graph.step_tokens = graph.context_tokens = 3;
  const ir::ConstantId table = module.constants.Add(
      ir::MakeRandomConstant("table", {DType::kQ4_1, {40, 64}}));
  ir::Constant twin = module.constants[table];
  twin.encoding = Encoding{.dtype = DType::kQ4_1};
  const ir::ConstantId head = module.constants.Add(std::move(twin));
  const ir::ValueId token = graph.AddInput(
      {.kind = RoleKind::kToken}, {.dtype = DType::kI32, .shape = {3}});
  const ir::ValueId x = graph.AddNode(
      OpKind::kEmbedding,
      {token, graph.AddConstant(table, module.constants[table])}, {}, "x");
  const ir::ValueId y = graph.AddNode(
      OpKind::kLinear, {x, graph.AddConstant(head, module.constants[head])}, {},
      "y");
  graph.AddOutput(Tap("x"), x);
  graph.AddOutput(Tap("y"), y);
  EXPECT_EQ(MustLower(module)->manifest().segments.size(), 2u);  // and the plan
  const auto engine = CreateEngine({.threads = 1});
  const std::vector inputs = {testing::I32({3}, {0, 17, 39})};
  const auto found = testing::RunOnEngine(module, **engine, inputs);
  ASSERT_TRUE(found.ok()) << found.error().message;
  const auto wanted = ir::Interpret(module, graph, inputs);
  testing::ExpectTensor((*found)[0], wanted[0]);
  testing::ExpectTensor((*found)[1], wanted[1]);
}

TEST(LowerEncodings, StoredBlocksGoThroughUnchanged) {
  for (const DType dtype : {DType::kQ4_1, DType::kQ8_0}) {
    ASSERT_TRUE(IsQuantizable(dtype));
    ir::Constant constant = ir::MakeRandomConstant("w", {dtype, {5, 64}});
    constant.rows = {4, 0, 1, 3, 2};
    constant.encoding = Encoding{.dtype = dtype};
    EncodedGraph g;
    const ir::ValueId w = g.Add(constant);
    g.Output(g.Node(OpKind::kLinear, {g.x, w}));
    const auto engine = CreateEngine({.threads = 1});
    ir::PseudoRandom random("x");
    const std::vector inputs = {testing::RandomF32({3, 64}, random)};
    const auto found = testing::RunOnEngine(g.module, **engine, inputs);
    ASSERT_TRUE(found.ok()) << found.error().message;
    testing::ExpectTensor((*found)[0],
                          ir::Interpret(g.module, g.graph, inputs)[0]);
  }
}

// --- Manifest ---

artifact::IoSpec MaskSpec(std::optional<Encoding> encoding) {
  EncodedGraph g;
  const ir::ValueId mask =
      g.graph.AddInput({.kind = RoleKind::kMask}, F32Type({3, 4}));
  g.graph[mask].encoding = std::move(encoding);
  const auto spec = MakeIoSpec(g.graph, g.graph.inputs.back());
  HX_CHECK(spec.ok());
  return *spec;
}

TEST(LowerEncodings, MasksAreInCodes) {
  const auto u8 = MaskSpec(
      Encoding{.dtype = DType::kU8, .scales = {0.5f}, .zero_points = {255}});
  EXPECT_EQ(u8.dtype, DType::kU8);
  EXPECT_EQ(u8.mask_visible, 255u);
  EXPECT_EQ(u8.mask_hidden, 0u);
  const auto half = MaskSpec(Encoding{.dtype = DType::kF16});
  EXPECT_EQ(half.dtype, DType::kF16);
  EXPECT_EQ(half.mask_visible, 0u);
  EXPECT_EQ(half.mask_hidden, 0xfbffu);  // -65504
  EXPECT_EQ(MaskSpec(std::nullopt).mask_hidden, 0xff800000u);
}

TEST(LowerEncodings, InputsAndOutputsHaveTheirForm) {
  EncodedGraph g(U16());
  g.Output(g.Node(OpKind::kSilu, {g.x},
                  Encoding{.dtype = DType::kI8, .scales = {0.25f}}));
  g.Output(g.Node(OpKind::kSilu, {g.x}, Encoding{.dtype = DType::kF16}));
  const auto lowered = MustLower(g.module);
  const artifact::GraphEntry& entry = lowered->manifest().graphs[0];
  EXPECT_EQ(entry.inputs[0].dtype, DType::kU16);
  EXPECT_EQ(entry.inputs[0].encoding,
            (artifact::IoEncoding{.scale = 1e-4f, .zero_point = 30000}));
  EXPECT_EQ(entry.outputs[0].dtype, DType::kI8);
  EXPECT_EQ(entry.outputs[0].encoding,
            (artifact::IoEncoding{.scale = 0.25f, .zero_point = 0}));
  EXPECT_EQ(entry.outputs[1].dtype, DType::kF16);
  EXPECT_FALSE(entry.outputs[1].encoding.has_value());
}

// Codes of weights are numbers where the input is one of halves.
TEST(LowerEncodings, HalvesAreMultipliedByTheNumbersOfCodes) {
  const Encoding half = {.dtype = DType::kF16};
  EncodedGraph g(half);
  const ir::ValueId w = g.Weight("w", {16, 64}, ChannelI8(16));
  g.Output(g.Node(OpKind::kLinear, {g.x, w}, half));
  const auto engine = CreateEngine({.threads = 1});
  ir::PseudoRandom random("x");
  std::vector inputs = {testing::RandomF32({3, 64}, random)};
  RoundToEncoding(half, inputs[0].type.shape, inputs[0].floats);
  const auto found = testing::RunOnEngine(g.module, **engine, inputs);
  ASSERT_TRUE(found.ok()) << found.error().message;
  testing::ExpectTensor((*found)[0],
                        ir::Interpret(g.module, g.graph, inputs)[0]);
}

// --- Refusals ---

TEST(LowerEncodings, RefusesWhatItHasNoFormFor) {
  for (const Encoding& encoding :
       {Encoding{.dtype = DType::kI32, .scales = {1}},
        Encoding{.dtype = DType::kU8, .axis = 0, .scales = {1, 1, 1}},
        Encoding{.dtype = DType::kU8, .scales = {1e-40f}}}) {
    EncodedGraph g;
    g.Output(g.Node(OpKind::kSilu, {g.x}, encoding));
    ExpectRefused(g.module, ErrorCode::kUnsupported,
                  "the encoding of value 'node'");
  }
}

TEST(LowerEncodings, RefusesCodesThatMeetNumbers) {
  EncodedGraph g;
  g.Output(
      g.Node(OpKind::kLinear, {g.x, g.Weight("w", {16, 64}, ChannelI8(16))}));
  ExpectRefused(g.module, ErrorCode::kUnsupported, "codes of 8 or 16 bits");
  EncodedGraph h(U16());
  const ir::ValueId residual = h.Node(OpKind::kSilu, {h.x}, U16());
  h.Output(h.Node(OpKind::kLinearAdd,
                  {h.x, h.Weight("w", {64, 64}, ChannelI8(64)), residual},
                  U16()));
  ExpectRefused(h.module, ErrorCode::kUnsupported, "rounded before");
}

TEST(LowerEncodings, RefusesMasksThatHideNothing) {
  EncodedGraph g;
  const ir::ValueId mask =
      g.graph.AddInput({.kind = RoleKind::kMask}, F32Type({3, 4}));
  g.graph[mask].encoding =
      Encoding{.dtype = DType::kU8, .scales = {1}, .zero_points = {7}};
  g.Output(g.Node(OpKind::kSilu, {mask}));
  ExpectRefused(g.module, ErrorCode::kUnsupported, "of a mask");
}

TEST(LowerEncodings, NumbersThatAreNotFiniteAreNamed) {
  const float bad[64] = {0, std::numeric_limits<float>::quiet_NaN()};
  for (const DType dtype : {DType::kQ8_0, DType::kI8}) {
    ir::Constant w{.name = "broken",
                   .type = {DType::kF32, {1, 64}},
                   .bytes = std::as_bytes(std::span(bad))};
    w.encoding = dtype == DType::kI8 ? ChannelI8(1) : Encoding{.dtype = dtype};
    EncodedGraph g(U16());
    g.Output(g.Node(OpKind::kLinear, {g.x, g.Add(std::move(w))}, U16()));
    ExpectRefused(g.module, ErrorCode::kBadInput, "weights/broken: row 0");
  }
}

}  // namespace
}  // namespace hexllm::cpu
