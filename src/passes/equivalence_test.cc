// Passes keep what graphs compute: random graphs give the same outputs, bit for
// bit, before and after each of them; where a pass rounds in other places, as
// its tolerance says.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ir/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "tests/support/random_encoded_graph.h"
#include "tests/support/random_graph.h"

namespace hexllm {
namespace {

using testing::EncodingStyle;
using testing::ExpectTensor;
using testing::MakeRandomEncodedGraph;
using testing::MakeRandomGraph;
using testing::RandomInputs;

constexpr uint64_t kSeeds = 80;

// Largest |difference| / max(1, |value|). Attention keeps scores and weights in
// double; taken apart, they are rounded to float, and later ops go on with
// that: 6e-8 a step, norms of small rows enlarge it.
constexpr double kDecomposed = 1e-5;

double ToleranceOf(std::string_view pass) {
  return pass == "decompose_attention" ? kDecomposed : 0;
}

std::vector<ir::HostTensor> Outputs(const ir::Module& module, uint64_t seed) {
  const ir::Graph& graph = module.graphs[0];
  return ir::Interpret(module, graph, RandomInputs(graph, seed));
}

void ExpectSameOutputs(const std::vector<ir::HostTensor>& found,
                       const std::vector<ir::HostTensor>& wanted,
                       double tolerance = 0) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectTensor(found[i], wanted[i], tolerance);
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
      ExpectSameOutputs(Outputs(rewritten, seed), wanted,
                        ToleranceOf(pass.name));
      changed[pass.name] += ir::Print(rewritten) != ir::Print(module);
    }
  }
  for (const Pass& pass : AllPasses())
    EXPECT_GE(changed[pass.name], 10) << pass.name << " has too little to do";
}

// A rewrite must not lose the rounding of an encoding.
TEST(PassEquivalenceTest, EachPassOnEncodedGraphs) {
  for (const EncodingStyle style :
       {EncodingStyle::kStatic, EncodingStyle::kHalf,
        EncodingStyle::kDynamic}) {
    for (uint64_t seed = 0; seed < kSeeds / 4; ++seed) {
      const auto made = MakeRandomEncodedGraph(seed, style);
      const std::vector<ir::HostTensor> wanted =
          ir::Interpret(made.module, made.module.graphs[0], made.inputs);
      for (const Pass& pass : AllPasses()) {
        // Its intermediate roundings move codes of later activations.
        if (pass.name == "decompose_attention") continue;
        SCOPED_TRACE(std::string(pass.name) + " on seed " +
                     std::to_string(seed));
        ir::Module rewritten = made.module;
        ASSERT_TRUE(pass.run(rewritten).ok());
        ASSERT_TRUE(ir::Verify(rewritten).ok());
        ExpectSameOutputs(
            ir::Interpret(rewritten, rewritten.graphs[0], made.inputs), wanted);
      }
    }
  }
}

TEST(PassEquivalenceTest, CpuPipeline) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    ir::Module module = MakeRandomGraph({.seed = seed});
    const std::vector<ir::HostTensor> wanted = Outputs(module, seed);
    ASSERT_TRUE(RunPipeline(module, "cpu", {}).ok());
    ExpectSameOutputs(Outputs(module, seed), wanted);
  }
}

// What the attentions of a graph have shown.
void NoteAttentions(const ir::Graph& graph, std::map<std::string, int>& seen) {
  for (const ir::Node& node : graph.nodes) {
    if (node.op != ir::OpKind::kAttention) continue;
    const int64_t heads = graph.type(node.inputs[0]).shape[1];
    const int64_t kv_heads = graph.type(node.inputs[1]).shape[0];
    seen["C == T"] += graph.context_tokens == graph.step_tokens;
    seen["C > T"] += graph.context_tokens > graph.step_tokens;
    seen["T == 1"] += graph.step_tokens == 1;
    seen["T > 1"] += graph.step_tokens > 1;
    seen["G == H"] += heads == kv_heads;
    seen["G < H"] += heads > kv_heads;
    seen["G == 1"] += kv_heads == 1;
    seen["softcap"] += ir::FloatAttr(node.attrs, ir::AttrName::kSoftcap) > 0;
    const ir::ValueId logits = graph.FindIo({.kind = RoleKind::kLogits});
    seen["last row"] +=
        graph.step_tokens > 1 && graph.type(logits).shape[0] == 1;
  }
}

TEST(PassEquivalenceTest, HtpPipeline) {
  std::map<std::string, int> seen;
  for (uint64_t seed = 0; seed < 2 * kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    ir::Module module = MakeRandomGraph({.seed = seed});
    NoteAttentions(module.graphs[0], seen);
    const std::vector<ir::HostTensor> wanted = Outputs(module, seed);
    ASSERT_TRUE(RunPipeline(module, "htp", {}).ok());
    for (const ir::Node& node : module.graphs[0].nodes)
      EXPECT_NE(node.op, ir::OpKind::kAttention);
    ExpectSameOutputs(Outputs(module, seed), wanted, kDecomposed);
  }
  EXPECT_EQ(seen.size(), 9u);
  for (const auto& [what, count] : seen) EXPECT_GE(count, 5) << what;
}

}  // namespace
}  // namespace hexllm
