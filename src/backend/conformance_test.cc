// Every op of the IR on every backend against the interpreter: op x weight type
// x shape x instruction set, then whole random graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "backend/cpu/engine.h"
#include "ir/interpret.h"
#include "tests/support/op_cases.h"
#include "tests/support/random_graph.h"
#include "tests/support/run_graph.h"

namespace hexllm {
namespace {

using cpu::Isa;
using ir::HostTensor;
using ir::OpKind;
using testing::CasesOf;
using testing::OpCase;

// Largest |found - expected| / max(1, |expected|) against the interpreter,
// which sums in double and rounds once. Inputs lie in -1 .. 1, weights in -0.5
// .. 0.5.
struct Tolerance {
  OpKind op;
  double limit;
  const char* reason;
};
constexpr Tolerance kTolerances[] = {
    {OpKind::kEmbedding, 0, "the same dequantization"},
    {OpKind::kLinear, 4e-6, "float sums of 512 products: partial sums near 10"},
    {OpKind::kLinearAdd, 4e-6, "as linear, one more rounding"},
    {OpKind::kRmsNorm, 1e-6, "float mean, float square root"},
    {OpKind::kRope, 2e-7, "two products and a sum, rounded one by one"},
    {OpKind::kAttention, 1e-6, "float scores, polynomial exp, float sums"},
    {OpKind::kReshape, 0, "moves only"},
    {OpKind::kTranspose, 0, "moves only"},
    {OpKind::kSliceRows, 0, "moves only"},
    {OpKind::kAdd, 0, "one correctly rounded operation"},
    {OpKind::kMul, 0, "one correctly rounded operation"},
    {OpKind::kScale, 1e-7, "the factor is rounded to float first"},
    {OpKind::kSilu, 2e-7, "polynomial exp"},
    {OpKind::kGelu, 3e-7, "polynomial tanh and erf"},
    {OpKind::kSoftcap, 2e-7, "polynomial tanh"},
    {OpKind::kGatedMul, 3e-7, "the activation, one more rounding"},
    {OpKind::kMatMul, 1e-6, "the scale is rounded to float first"},
    {OpKind::kConcat, 0, "moves only"},
    {OpKind::kSoftmax, 1e-6, "polynomial exp, float sum"},
    {OpKind::kConvert, 0, "without an encoding it does nothing"},
    {OpKind::kLayerNorm, 2e-6, "float means, float square root"},
};
// Random graphs chain up to dozens of ops, norms among them.
constexpr double kGraphTolerance = 2e-5;

// What the CPU cannot do, and says so. A case that works is a failure here.
std::vector<OpCase> UnsupportedCases() {
  return {
      testing::cases::Transpose({2, 3, 1, 4, 5}, {4, 3, 2, 1, 0}),
      {.name = "matmul f64",
       .op = OpKind::kLinear,
       .inputs = {testing::Act({2, 32}), testing::Const(DType::kF64, {4, 32})}},
      {.name = "computed weight",
       .op = OpKind::kLinear,
       .inputs = {testing::Act({2, 32}), testing::Act({4, 32})}},
      {.name = "constant activation",
       .op = OpKind::kAdd,
       .inputs = {testing::Act({2, 32}),
                  testing::Const(DType::kF32, {2, 32})}}};
}

const Tolerance* FindTolerance(OpKind op) {
  const auto* found =
      std::find_if(std::begin(kTolerances), std::end(kTolerances),
                   [&](const Tolerance& row) { return row.op == op; });
  return found == std::end(kTolerances) ? nullptr : found;
}

std::vector<uint32_t> Bits(const HostTensor& tensor) {
  std::vector<uint32_t> bits;
  for (const float value : tensor.floats) {
    bits.push_back(std::bit_cast<uint32_t>(value));
  }
  return bits;
}

std::unique_ptr<Engine> MakeEngine(const cpu::EngineOptions& options) {
  auto engine = cpu::CreateEngine(options);
  return engine.ok() ? *std::move(engine) : nullptr;
}

class OpConformance : public ::testing::TestWithParam<std::tuple<Isa, OpKind>> {
 protected:
  void SetUp() override {
    const Isa isa = std::get<0>(GetParam());
    engine_ = MakeEngine({.threads = 1, .isa = isa});
    if (engine_ == nullptr) GTEST_SKIP() << "this CPU has no " << IsaName(isa);
    threaded_ = MakeEngine({.threads = 2, .isa = isa, .grain_work = 1});
  }
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Engine> threaded_;
};

TEST_P(OpConformance, MatchesTheInterpreter) {
  const OpKind op = std::get<1>(GetParam());
  const Tolerance* tolerance = FindTolerance(op);
  ASSERT_NE(tolerance, nullptr) << "no tolerance for this op";
  const std::vector<OpCase> cases = CasesOf(op);
  ASSERT_FALSE(cases.empty()) << "no conformance case for this op";
  for (const OpCase& op_case : cases) {
    SCOPED_TRACE(op_case.name);
    const ir::Module module = MakeOpModule(op_case);
    const auto inputs = MakeOpInputs(op_case);
    const auto expected = ir::Interpret(module, module.graphs[0], inputs);
    const auto found = testing::RunOnEngine(module, *engine_, inputs);
    ASSERT_TRUE(found.ok()) << found.error().message;
    testing::ExpectTensor((*found)[0], expected[0], tolerance->limit);
    const auto threaded = testing::RunOnEngine(module, *threaded_, inputs);
    ASSERT_TRUE(threaded.ok()) << threaded.error().message;
    EXPECT_EQ(Bits((*threaded)[0]), Bits((*found)[0])) << "two threads";
  }
}

std::vector<OpKind> OpKinds() {
  std::vector<OpKind> kinds;
  for (const ir::OpInfo& info : ir::AllOps()) kinds.push_back(info.kind);
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, OpConformance,
    ::testing::Combine(::testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512,
                                         Isa::kNeon),
                       ::testing::ValuesIn(OpKinds())),
    [](const auto& param) {
      return std::string(IsaName(std::get<0>(param.param))) + "_" +
             std::string(ir::GetOpInfo(std::get<1>(param.param)).name);
    });

TEST(CpuUnsupported, IsRefusedByLowering) {
  for (const OpCase& op_case : UnsupportedCases()) {
    const ir::Module module = MakeOpModule(op_case);
    const auto lowered = testing::LowerForTest(module);
    ASSERT_FALSE(lowered.ok()) << op_case.name << " works now";
    EXPECT_EQ(lowered.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(lowered.error().message, ::testing::HasSubstr(op_case.name));
    EXPECT_THAT(lowered.error().message, ::testing::HasSubstr("'node' = "));
  }
}

// Tensors of a checkpoint may begin anywhere; a memory artifact borrows them.
TEST(CpuWeights, MayBeUnaligned) {
  for (const OpCase& op_case : CasesOf(OpKind::kLinear)) {
    SCOPED_TRACE(op_case.name);
    const auto artifact = testing::LowerForTest(MakeOpModule(op_case));
    ASSERT_TRUE(artifact.ok());
    const ByteSpan weight = (*artifact)->Segment(0);
    const std::vector<std::byte> copy(weight.begin(), weight.end());
    std::vector<HostTensor> outputs;
    for (const size_t offset : {size_t{0}, size_t{1}}) {
      (*artifact)->Replace(0, copy, offset);
      const auto engine = MakeEngine({.threads = 1});
      auto graph = testing::BoundGraph::Load(*engine, *artifact, 0);
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      graph->SetInput(0, MakeOpInputs(op_case)[0]);
      ASSERT_TRUE(graph->graph().Execute({}).ok());
      outputs.push_back(graph->GetOutput(0));
    }
    EXPECT_EQ(Bits(outputs[0]), Bits(outputs[1]));
  }
}

// Random graphs may hold transposes that the CPU has no form for; those are
// refused, all others agree.
TEST(CpuRandomGraphs, MatchTheInterpreter) {
  const auto engine = MakeEngine({.threads = 2, .grain_work = 1});
  ASSERT_NE(engine, nullptr);
  int compared = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ir::Module module = testing::MakeRandomGraph({.seed = seed});
    const ir::Graph& graph = module.graphs[0];
    const auto inputs = testing::RandomInputs(graph, seed);
    const auto found = testing::RunOnEngine(module, *engine, inputs);
    if (!found.ok()) {
      ASSERT_EQ(found.error().code, ErrorCode::kUnsupported);
      ASSERT_THAT(found.error().message, ::testing::HasSubstr("transpose("));
      continue;
    }
    const auto expected = ir::Interpret(module, graph, inputs);
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(RoleToString(graph.outputs[i].role));
      testing::ExpectTensor((*found)[i], expected[i], kGraphTolerance);
    }
    ++compared;
  }
  EXPECT_GE(compared, 100);
}

}  // namespace
}  // namespace hexllm
