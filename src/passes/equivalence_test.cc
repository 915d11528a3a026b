// Passes keep what graphs compute: random graphs give the same outputs, bit for
// bit, before and after each of them.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ir/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "tests/support/random_graph.h"

namespace hexllm {
namespace {

using testing::ExpectTensor;
using testing::MakeRandomGraph;
using testing::RandomInputs;

constexpr uint64_t kSeeds = 80;

std::vector<ir::HostTensor> Outputs(const ir::Module& module, uint64_t seed) {
  const ir::Graph& graph = module.graphs[0];
  return ir::Interpret(module, graph, RandomInputs(graph, seed));
}

void ExpectSameOutputs(const std::vector<ir::HostTensor>& found,
                       const std::vector<ir::HostTensor>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectTensor(found[i], wanted[i]);
  }
}

TEST(RandomGraphTest, IsVerifiedAndFinite) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const ir::Module module = MakeRandomGraph({.seed = seed});
    const Status status = ir::Verify(module);
    ASSERT_TRUE(status.ok())
        << "seed " << seed << ": " << status.error().message;
    for (const ir::HostTensor& output : Outputs(module, seed)) {
      for (const float value : output.floats)
        ASSERT_TRUE(std::isfinite(value)) << "seed " << seed;
    }
    EXPECT_EQ(ir::Print(module), ir::Print(MakeRandomGraph({.seed = seed})));
  }
}

TEST(RandomGraphTest, TextRoundTrip) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const ir::Module module = MakeRandomGraph({.seed = seed});
    auto again = ir::Parse(ir::Print(module));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(ir::Print(*again), ir::Print(module));
    ExpectSameOutputs(Outputs(*again, seed), Outputs(module, seed));
  }
}

TEST(PassEquivalenceTest, EachPassAlone) {
  std::map<std::string_view, int> changed;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const ir::Module module = MakeRandomGraph({.seed = seed});
    const std::vector<ir::HostTensor> wanted = Outputs(module, seed);
    for (const Pass& pass : AllPasses()) {
      SCOPED_TRACE(std::string(pass.name) + " on seed " + std::to_string(seed));
      ir::Module rewritten = module;
      ASSERT_TRUE(pass.run(rewritten).ok());
      const Status status = ir::Verify(rewritten);
      ASSERT_TRUE(status.ok()) << status.error().message;
      ExpectSameOutputs(Outputs(rewritten, seed), wanted);
      changed[pass.name] += ir::Print(rewritten) != ir::Print(module);
    }
  }
  for (const Pass& pass : AllPasses())
    EXPECT_GE(changed[pass.name], 10) << pass.name << " has too little to do";
}

TEST(PassEquivalenceTest, WholePipeline) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    ir::Module module = MakeRandomGraph({.seed = seed});
    const std::vector<ir::HostTensor> wanted = Outputs(module, seed);
    ASSERT_TRUE(RunPipeline(module, "cpu", {}).ok());
    ExpectSameOutputs(Outputs(module, seed), wanted);
  }
}

}  // namespace
}  // namespace hexllm
