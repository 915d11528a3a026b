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

// Bits of the logits of SomeTokens, in steps of kSteps[graph].
std::vector<uint32_t> LogitBits(const EngineOptions& options, size_t graph) {
  TinyDecoder decoder;
  for (const int64_t step : kSteps) {
    decoder.AddGraph("step_" + std::to_string(step), step, kContext);
  }
  auto artifact = LowerForTest(std::move(decoder).Take());
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

class EngineSteps : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!CreateEngine({.threads = 1, .isa = GetParam()}).ok()) {
      GTEST_SKIP() << "this CPU has no " << IsaName(GetParam());
    }
  }
};

TEST_P(EngineSteps, RowsDoNotDependOnTheStepSize) {
  const EngineOptions options{.threads = 1, .isa = GetParam()};
  const std::vector<uint32_t> one = LogitBits(options, 0);
  ASSERT_EQ(one.size(), 32u * kTinyVocab);
  EXPECT_EQ(LogitBits(options, 1), one);
  EXPECT_EQ(LogitBits(options, 2), one);
}

TEST_P(EngineSteps, RowsDoNotDependOnTheNumberOfThreads) {
  for (size_t graph = 0; graph < std::size(kSteps); ++graph) {
    const auto one = LogitBits({.threads = 1, .isa = GetParam()}, graph);
    for (const int threads : {2, 3}) {
      const EngineOptions options{
          .threads = threads, .isa = GetParam(), .grain_work = 1};
      EXPECT_EQ(LogitBits(options, graph), one) << threads << " threads";
    }
  }
}

TEST_P(EngineSteps, RowsDoNotDependOnTheInstructionSet) {
  EXPECT_EQ(LogitBits({.threads = 1, .isa = GetParam()}, 1),
            LogitBits({.threads = 1, .isa = Isa::kScalar}, 1));
}

INSTANTIATE_TEST_SUITE_P(Isa, EngineSteps,
                         ::testing::Values(Isa::kScalar, Isa::kAvx2,
                                           Isa::kAvx512, Isa::kNeon),
                         [](const auto& param) {
                           return std::string(IsaName(param.param));
                         });

}  // namespace
}  // namespace hexllm::cpu
