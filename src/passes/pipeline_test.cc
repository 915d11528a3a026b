#include "passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ir/text.h"
#include "tests/support/tiny_decoder.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using testing::MakeTinyDecoder;

int CountNodes(const ir::Graph& graph, ir::OpKind op) {
  return static_cast<int>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(),
                    [op](const ir::Node& node) { return node.op == op; }));
}

TEST(PipelineTest, UnknownTargetIsUnsupported) {
  ir::Module module = MakeTinyDecoder(1, 4);
  const Status status = RunPipeline(module, "toaster\n", {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(status.error().message,
            "no passes for target 'toaster\\x0a'; known: cpu, htp");
}

TEST(PipelineTest, InvalidModuleIsBadInput) {
  ir::Module module = MakeTinyDecoder(1, 4);
  module.graphs[0].step_tokens = 0;
  const Status status = RunPipeline(module, "cpu", {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kBadInput);
}

TEST(PipelineTest, ShowsEachStage) {
  ir::Module module = MakeTinyDecoder(1, 4);
  std::vector<std::string> stages;
  std::string last;
  const auto dump = [&](const PassStage& stage, const ir::Module& shown) {
    EXPECT_EQ(stage.index, static_cast<int>(stages.size()));
    stages.emplace_back(stage.pass);
    last = ir::Print(shown);
    return OkStatus();
  };
  ASSERT_TRUE(RunPipeline(module, "cpu", {.dump = dump}).ok());
  EXPECT_THAT(stages,
              ElementsAre("input", "dead_code", "simplify_reshape",
                          "fold_scale", "fuse_gated_mul", "fuse_linear_add"));
  EXPECT_EQ(last, ir::Print(module));
}

TEST(PipelineTest, StopsWhenTheDumpFails) {
  ir::Module module = MakeTinyDecoder(1, 4);
  const auto dump = [](const PassStage& stage, const ir::Module&) -> Status {
    if (stage.index < 2) return OkStatus();
    return Error{ErrorCode::kEnvironment, "disk full"};
  };
  const Status status = RunPipeline(module, "cpu", {.dump = dump});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "disk full");
}

TEST(PipelineTest, EveryPassOfATargetIsInTheTable) {
  std::set<std::string_view> names;
  for (const Pass& pass : AllPasses()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name << " occurs twice";
    EXPECT_NE(pass.run, nullptr);
  }
  std::set<std::string_view> used;
  for (const std::string_view target : {"cpu", "htp"}) {
    const auto passes = PassesOf(target);
    ASSERT_TRUE(passes.ok());
    for (const Pass& pass : *passes) {
      EXPECT_TRUE(names.contains(pass.name)) << pass.name;
      used.insert(pass.name);
    }
  }
  EXPECT_EQ(used, names) << "a pass that no target runs";
}

// Per layer: two residual sums and a gate are fused away; at T = 1 no transpose
// is left.
TEST(PipelineTest, FusesADecoder) {
  ir::Module module = MakeTinyDecoder(1, 4);
  ASSERT_TRUE(RunPipeline(module, "cpu", {}).ok());
  const ir::Graph& graph = module.graphs[0];
  const int layers = static_cast<int>(testing::kTinyLayers);
  EXPECT_EQ(CountNodes(graph, ir::OpKind::kLinearAdd), 2 * layers);
  EXPECT_EQ(CountNodes(graph, ir::OpKind::kGatedMul), layers);
  EXPECT_EQ(CountNodes(graph, ir::OpKind::kAdd), 0);
  EXPECT_EQ(CountNodes(graph, ir::OpKind::kMul), 0);
  EXPECT_EQ(CountNodes(graph, ir::OpKind::kTranspose), 0);
}

TEST(PipelineTest, KeepsTheSignatureAndProvenance) {
  ir::Module module = MakeTinyDecoder(3, 8);
  const ir::Graph before = module.graphs[0];
  ASSERT_TRUE(RunPipeline(module, "cpu", {}).ok());
  const ir::Graph& after = module.graphs[0];
  for (auto list : {&ir::Graph::inputs, &ir::Graph::outputs}) {
    ASSERT_EQ((after.*list).size(), (before.*list).size());
    for (size_t i = 0; i < (after.*list).size(); ++i) {
      EXPECT_EQ((after.*list)[i].role, (before.*list)[i].role);
      EXPECT_EQ(after.type((after.*list)[i].value),
                before.type((before.*list)[i].value));
    }
  }
  const auto named = [&](std::string_view name) {
    return std::any_of(after.values.begin(), after.values.end(),
                       [&](const ir::Value& v) { return v.name == name; });
  };
  EXPECT_TRUE(named("model.layers.1"));
  EXPECT_TRUE(named("model.layers.1.mlp.gated"));
}

// Names of what a graph computes; moved values share the name of what they
// move. A name that occurs twice fails the test.
std::set<std::string> ComputedNames(const ir::Graph& graph) {
  std::set<std::string> names;
  for (const ir::Node& node : graph.nodes) {
    const bool moves =
        node.op == ir::OpKind::kReshape || node.op == ir::OpKind::kTranspose ||
        node.op == ir::OpKind::kSliceRows || node.op == ir::OpKind::kConcat;
    if (moves) continue;
    const std::string& name = graph[node.output].name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  return names;
}

// They are the keys of observed ranges and of encodings.
TEST(PipelineTest, ComputedNamesAreUniqueAndThoseOfAllGraphs) {
  testing::TinyDecoder decoder;
  decoder.AddGraph("prefill_3", 3, 8);
  decoder.AddGraph("prefill_8", 8, 8);
  decoder.AddGraph("kv", 1, 8);
  ir::Module module = std::move(decoder).Take();
  ASSERT_TRUE(RunPipeline(module, "htp", {}).ok());
  const std::set<std::string> names = ComputedNames(module.graphs[0]);
  for (const ir::Graph& graph : module.graphs)
    EXPECT_EQ(ComputedNames(graph), names) << graph.name;
  // The name of TinyDecoder's attention is "....heads".
  const std::string prefix = "model.layers.1.self_attn.heads";
  for (const std::string ending : {".scores", ".masked_scores", ".probs",
                                   ".attention", ".k_cache", ".v_cache"}) {
    EXPECT_TRUE(names.contains(prefix + ending)) << ending;
  }
}

// A prefill graph without logits: the last layer's attention is dead, its cache
// is not and has its name.
TEST(PipelineTest, CachesOfDeadAttentionsHaveTheirNames) {
  testing::TinyDecoder decoder;
  decoder.AddGraph("prefill_3", 3, 8);
  decoder.AddGraph("kv", 1, 8);
  ir::Module module = std::move(decoder).Take();
  ASSERT_EQ(module.graphs[0].outputs.back().role.kind, RoleKind::kLogits);
  module.graphs[0].outputs.pop_back();
  ASSERT_TRUE(RunPipeline(module, "htp", {}).ok());
  const std::set<std::string> prefill = ComputedNames(module.graphs[0]);
  const std::set<std::string> kv = ComputedNames(module.graphs[1]);
  EXPECT_TRUE(
      std::includes(kv.begin(), kv.end(), prefill.begin(), prefill.end()));
  const std::string prefix = "model.layers.1.self_attn.heads";
  EXPECT_TRUE(prefill.contains(prefix + ".k_cache"));
  EXPECT_TRUE(prefill.contains(prefix + ".v_cache"));
  EXPECT_FALSE(prefill.contains(prefix + ".probs"));
}

// Why there is no pass for them.
TEST(PipelineTest, DecodersHaveNoCommonSubexpressions) {
  const ir::Module module = MakeTinyDecoder(3, 8);
  const ir::Graph& graph = module.graphs[0];
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const ir::Node& a = graph.nodes[i];
      const ir::Node& b = graph.nodes[j];
      EXPECT_FALSE(a.op == b.op && a.inputs == b.inputs && a.attrs == b.attrs)
          << graph[a.output].name;
    }
  }
}

}  // namespace
}  // namespace hexllm
