// The residual stream in half precision: what becomes f16, and what is next to
// it.
#include "quant/residual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/verify.h"
#include "quant/decoder_testing.h"
#include "quant/range.h"

namespace hexllm::quant {
namespace {

using ::hexllm::testing::TinyLlama;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kDown1 = "model.layers.1.mlp.down_proj";
const ir::Encoding kHalf = {.dtype = DType::kF16};

class ResidualTest : public ::testing::Test {
 protected:
  Result<std::vector<std::string>> Assign(const ResolvedRecipe& recipe,
                                          std::set<std::string> terms = {}) {
    return AssignEncodings(decoder_.module, {.recipe = &recipe,
                                             .ranges = &ranges_,
                                             .half_residual = true,
                                             .half_terms = std::move(terms)});
  }
  const ir::Graph& kv() const { return decoder_.module.graphs[1]; }

  LoweredDecoder decoder_{TinyLlama(), "htp"};
  Ranges ranges_ = Calibrate(decoder_.module);
};

TEST_F(ResidualTest, TheStreamAndItsNormsAreHalves) {
  const auto warnings = Assign(RecipeOf("16a8w"));
  ASSERT_TRUE(warnings.ok()) << warnings.error().message;
  ASSERT_TRUE(ir::Verify(decoder_.module).ok());
  for (const char* name :
       {"model.embed_tokens", "model.layers.0.attention_residual",
        "model.layers.1", "model.layers.1.input_layernorm", "model.norm",
        "model.layers.1.term"}) {
    EXPECT_EQ(EncodingOf(kv(), name), kHalf) << name;
  }
  EXPECT_EQ(EncodingOf(kv(), kDown1),
            ActivationEncoding(ranges_.at(kDown1).range, 16, false));
}

// The HTP multiplies halves with halves, of gamma as a whole.
TEST_F(ResidualTest, WeightsOfItsNormsAreHalvesWithTheirOffset) {
  const auto norm = [this]() -> ir::Node& {
    ir::Graph& graph = decoder_.module.graphs[1];
    return *std::ranges::find_if(graph.nodes, [&](const ir::Node& node) {
      return graph[node.output].name == "model.layers.1.input_layernorm";
    });
  };
  const auto weight = [&]() -> const ir::Constant& {
    return decoder_.module.constants[kv()[norm().inputs[1]].constant];
  };
  std::vector<float> wanted = ir::ReadConstant(weight()).floats;
  for (float& value : wanted) value += 1;
  for (ir::Attr& attr : norm().attrs)
    if (attr.name == ir::AttrName::kWeightOffset) attr.value = 1.0;
  ASSERT_TRUE(Assign(RecipeOf("16a8w")).ok());
  ASSERT_TRUE(ir::Verify(decoder_.module).ok());
  EXPECT_EQ(weight().encoding, kHalf);
  EXPECT_EQ(ir::ReadConstant(weight()).floats, wanted);
  EXPECT_EQ(ir::FloatAttr(norm().attrs, ir::AttrName::kWeightOffset), 0);
}

// One convert for q, k and v, named by the first.
TEST_F(ResidualTest, LinearsThatReadOneNormShareItsCodes) {
  ASSERT_TRUE(Assign(RecipeOf("16a8w")).ok());
  const std::string layer = "model.layers.1.self_attn.";
  EXPECT_EQ(EncodingOf(kv(), layer + "q_proj.input"),
            ActivationEncoding(
                ranges_.at("model.layers.1.input_layernorm").range, 16, false));
  EXPECT_EQ(FindValue(kv(), layer + "k_proj.input"), nullptr);
  EXPECT_EQ(FindValue(kv(), layer + "v_proj.input"), nullptr);
}

TEST_F(ResidualTest, TermsInHalvesNeedNoConvert) {
  ASSERT_TRUE(Assign(RecipeOf("16a8w"), {kDown1}).ok());
  EXPECT_EQ(EncodingOf(kv(), kDown1), kHalf);
  EXPECT_EQ(FindValue(kv(), "model.layers.1.term"), nullptr);
  EXPECT_NE(FindValue(kv(), "model.layers.0.term"), nullptr);
}

// The sum of a term in halves is one of halves, whatever the stream is in.
TEST_F(ResidualTest, CodesTakeTermsAndProductsInHalves) {
  const ResolvedRecipe recipe = RecipeOf("16a8w");
  ASSERT_TRUE(AssignEncodings(decoder_.module, {.recipe = &recipe,
                                                .ranges = &ranges_,
                                                .half_terms = {kDown1},
                                                .half_inputs = {kDown1}})
                  .ok());
  const auto verified = ir::Verify(decoder_.module);
  ASSERT_TRUE(verified.ok()) << verified.error().message;
  const std::string layer = "model.layers.1";
  for (const char* name :
       {".mlp.gated.factor", ".mlp.gated", ".mlp.down_proj", ".term", ".sum"}) {
    EXPECT_EQ(EncodingOf(kv(), layer + name), kHalf) << name;
  }
  EXPECT_EQ(FindValue(kv(), kDown1 + ".input"), nullptr);
  for (const char* name : {"model.layers.1", "model.layers.1.mlp.up_proj",
                           "model.layers.0.mlp.gated", "model.layers.0"}) {
    EXPECT_EQ(EncodingOf(kv(), name),
              ActivationEncoding(ranges_.at(name).range, 16, false))
        << name;
  }
}

TEST_F(ResidualTest, NumbersBeyondHalvesAreRefused) {
  ranges_["model.layers.0"].range.max = 70000;
  const auto found = Assign(RecipeOf("16a8w"));
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(found.error().message,
              AllOf(HasSubstr("'model.layers.0'"), HasSubstr("65504"),
                    HasSubstr("\"activations\"")));
}

TEST_F(ResidualTest, RangeIsOfTheStreamAlone) {
  ranges_["model.layers.0"].range = {-7, 900};
  ranges_[kDown1].range = {-5000, 5000};
  const Range range = ResidualRange(decoder_.module, ranges_);
  EXPECT_EQ(range, (Range{-7, 900}));
}

TEST_F(ResidualTest, CoarseTermsAreFarAboveTheMedian) {
  const ResolvedRecipe recipe = RecipeOf("16a8w");
  EXPECT_THAT(CoarseTerms(decoder_.module, ranges_, recipe), IsEmpty());
  const float median = ranges_.at("model.layers.0.mlp.down_proj").range.max;
  ranges_[kDown1].range = {0, 1000 * median};
  EXPECT_THAT(CoarseTerms(decoder_.module, ranges_, recipe),
              ElementsAre(kDown1));
  EXPECT_THAT(CoarseInputs(decoder_.module, ranges_, recipe), IsEmpty());
  const std::string product = "model.layers.1.mlp.gated";
  ranges_[product].range = {0, 1000 * ranges_.at(product).range.max};
  EXPECT_THAT(CoarseInputs(decoder_.module, ranges_, recipe),
              ElementsAre(kDown1));
  // What halves cannot hold stays in codes: the product, the stream beside it.
  ranges_[product].range.max = 70000;
  EXPECT_THAT(CoarseInputs(decoder_.module, ranges_, recipe), IsEmpty());
  ranges_["model.layers.1.attention_residual"].range.min = -70000;
  EXPECT_THAT(CoarseTerms(decoder_.module, ranges_, recipe), IsEmpty());
  ranges_["model.layers.1.attention_residual"].range.min = -1;
  // The HTP has no product of halves and blocks.
  EXPECT_THAT(CoarseTerms(decoder_.module, ranges_, RecipeOf("16a4w_block")),
              IsEmpty());
}

}  // namespace
}  // namespace hexllm::quant
