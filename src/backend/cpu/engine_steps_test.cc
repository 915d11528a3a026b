// The promise that kv == hybrid == lookahead == any number of threads rests on:
// a row of a step has the same bits however the tokens are cut into steps.
#include <gtest/gtest.h>

#include <bit>

#include "backend/cpu/engine.h"
#include "tests/support/decoder_steps.h"

namespace hexllm::cpu {
namespace {

using hexllm::testing::BoundGraph;
using hexllm::testing::DecoderSteps;
using hexllm::testing::kTinyVocab;
using hexllm::testing::LowerForTest;
using hexllm::testing::TinyDecoder;

constexpr int64_t kContext = 40;
constexpr int64_t kSteps[] = {1, 7, 32};

std::vector<int32_t> SomeTokens() {
  std::vector<int32_t> tokens(32);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>((i * i + 3 * i) % kTinyVocab);
  }
  return tokens;
}

std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) {
    bits.push_back(std::bit_cast<uint32_t>(value));
  }
  return bits;
}

// What the weights of linears are.
enum class Weights { kStored, kBlocks };

// Gives the weights of linears whose rows are whole blocks an encoding; not so
// the head, which is the embedding table as well.
void EncodeWeights(ir::Module& module) {
  int encoded = 0;
  for (const ir::Node& node : module.graphs[0].nodes) {
    if (node.op != ir::OpKind::kLinear) continue;
    const ir::ConstantId w = module.graphs[0][node.inputs[1]].constant;
    const ir::Constant& constant = module.constants[w];
    if (RowElems(constant) % 32 != 0) continue;
    if (constant.name.find("embed_tokens") != std::string::npos) continue;
    const DType dtype = ++encoded % 2 == 0 ? DType::kQ4_1 : DType::kQ8_0;
    module.constants.SetEncoding(w, {.dtype = dtype});
  }
  EXPECT_GT(encoded, 5);
}

// Bits of the logits of SomeTokens, in steps of kSteps[graph].
std::vector<uint32_t> LogitBits(const EngineOptions& options, size_t graph,
                                Weights weights) {
  TinyDecoder decoder;
  for (const int64_t step : kSteps) {
    decoder.AddGraph("step_" + std::to_string(step), step, kContext);
  }
  ir::Module module = std::move(decoder).Take();
  if (weights == Weights::kBlocks) EncodeWeights(module);
  auto artifact = LowerForTest(module);
  if (!artifact.ok()) {
    ADD_FAILURE() << artifact.error().message;
    return {};
  }
  auto engine = CreateEngine(options);
  EXPECT_TRUE(engine.ok());
  auto bound = BoundGraph::Load(**engine, *artifact, graph);
  if (!bound.ok()) {
    ADD_FAILURE() << bound.error().message;
    return {};
  }
  return Bits(DecoderSteps(*bound).Run(SomeTokens()));
}

class EngineSteps : public ::testing::TestWithParam<std::tuple<Isa, Weights>> {
 protected:
  void SetUp() override {
    if (!CreateEngine({.threads = 1, .isa = isa()}).ok()) {
      GTEST_SKIP() << "this CPU has no " << IsaName(isa());
    }
  }
  Isa isa() const { return std::get<0>(GetParam()); }
  Weights weights() const { return std::get<1>(GetParam()); }
};

TEST_P(EngineSteps, RowsDoNotDependOnTheStepSize) {
  const EngineOptions options{.threads = 1, .isa = isa()};
  const std::vector<uint32_t> one = LogitBits(options, 0, weights());
  ASSERT_EQ(one.size(), 32u * kTinyVocab);
  EXPECT_EQ(LogitBits(options, 1, weights()), one);
  EXPECT_EQ(LogitBits(options, 2, weights()), one);
}

TEST_P(EngineSteps, RowsDoNotDependOnTheNumberOfThreads) {
  for (size_t graph = 0; graph < std::size(kSteps); ++graph) {
    const auto one = LogitBits({.threads = 1, .isa = isa()}, graph, weights());
    for (const int threads : {2, 3}) {
      const EngineOptions options{
          .threads = threads, .isa = isa(), .grain_work = 1};
      EXPECT_EQ(LogitBits(options, graph, weights()), one)
          << threads << " threads";
    }
  }
}

TEST_P(EngineSteps, RowsDoNotDependOnTheInstructionSet) {
  EXPECT_EQ(LogitBits({.threads = 1, .isa = isa()}, 1, weights()),
            LogitBits({.threads = 1, .isa = Isa::kScalar}, 1, weights()));
}

INSTANTIATE_TEST_SUITE_P(
    Isa, EngineSteps,
    ::testing::Combine(::testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512,
                                         Isa::kAvx512Vnni, Isa::kNeon,
                                         Isa::kNeonDot),
                       ::testing::Values(Weights::kStored, Weights::kBlocks)),
    [](const auto& param) {
      const bool blocks = std::get<1>(param.param) == Weights::kBlocks;
      return std::string(IsaName(std::get<0>(param.param))) +
             (blocks ? "_blocks" : "_stored");
    });

}  // namespace
}  // namespace hexllm::cpu
