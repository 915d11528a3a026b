// Attention by heads computes what grouped attention computes. On the HTP:
// decoder_test.cc.
#include "backend/htp/lower_heads.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/interpret.h"
#include "ir/verify.h"
#include "quant/decoder_testing.h"

namespace hexllm::htp {
namespace {

constexpr int64_t kHeads = 4;  // of TinyLlama
constexpr int64_t kLayers = 2;

int64_t Count(const ir::Graph& graph, ir::OpKind op) {
  return std::ranges::count(graph.nodes, op, &ir::Node::op);
}

void SetKvHeads(int64_t count, testing::TinyLlama& model) {
  model.config["num_key_value_heads"] = count;
  for (const char* layer : {"0", "1"}) {
    for (const char* name : {"k", "v"}) {
      model.Add("model.layers." + std::string(layer) + ".self_attn." + name +
                    "_proj.weight",
                {4 * count, 16});
    }
  }
}

TEST(FasterForm, ByTokensHeadsAndGeneration) {
  testing::TinyLlama model;
  const quant::LoweredDecoder shared(model, "htp");
  const ir::Graph& prefill = shared.module.graphs[0];
  const ir::Graph& kv = shared.module.graphs[1];
  EXPECT_EQ(FasterForm(prefill, 79), AttentionForm::kByHeads);
  EXPECT_EQ(FasterForm(kv, 79), AttentionForm::kGrouped);
  EXPECT_EQ(FasterForm(kv, 75), AttentionForm::kByHeads);

  SetKvHeads(kHeads, model);
  const quant::LoweredDecoder own(model, "htp");
  EXPECT_EQ(FasterForm(own.module.graphs[1], 79), AttentionForm::kByHeads);
}

// Splits all graphs of the model; their numbers stay.
void ExpectSameWhenSplit(const testing::TinyLlama& model,
                         const quant::ResolvedRecipe& recipe) {
  quant::LoweredDecoder decoder(model, "htp");
  ir::Module& module = decoder.module;
  const quant::Ranges ranges = quant::Calibrate(module);
  ASSERT_TRUE(
      quant::AssignEncodings(module, {.recipe = &recipe, .ranges = &ranges})
          .ok());
  for (ir::Graph& graph : module.graphs) {
    const auto inputs = quant::MadeUpInputs(graph, -60000);
    const auto grouped = ir::Interpret(module, graph, inputs);
    graph = SplitHeads(module, graph);
    const Status valid = ir::Verify(module);
    ASSERT_TRUE(valid.ok()) << valid.error().message;
    EXPECT_EQ(Count(graph, ir::OpKind::kSoftmax), kLayers * kHeads);
    EXPECT_EQ(Count(graph, ir::OpKind::kMatMul), 2 * kLayers * kHeads);
    const auto by_heads = ir::Interpret(module, graph, inputs);
    ASSERT_EQ(by_heads.size(), grouped.size());
    for (size_t i = 0; i < grouped.size(); ++i)
      EXPECT_EQ(by_heads[i].floats, grouped[i].floats) << graph.name << i;
  }
}

class SplitHeadsTest
    : public ::testing::TestWithParam<std::pair<std::string_view, int>> {};

TEST_P(SplitHeadsTest, ComputesTheSameCodes) {
  ExpectSameWhenSplit(testing::TinyLlama(),
                      quant::RecipeOf(GetParam().first, GetParam().second));
}

// One KV head lies in memory as tokens do; with as many as query heads, those
// of a single token do.
TEST(SplitHeads, ComputesTheSameWithOneAndWithAllKvHeads) {
  for (const int64_t count : {int64_t{1}, kHeads}) {
    testing::TinyLlama model;
    SetKvHeads(count, model);
    ExpectSameWhenSplit(model, quant::RecipeOf("16a8w", 8));
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, SplitHeadsTest,
                         ::testing::Values(std::pair("16a8w", 8),
                                           std::pair("16a8w", 16),
                                           std::pair("8a8w", 8),
                                           std::pair("fp16", 16)),
                         [](const auto& scheme) {
                           return "s" + std::string(scheme.param.first) +
                                  "_cache" +
                                  std::to_string(scheme.param.second);
                         });

}  // namespace
}  // namespace hexllm::htp
